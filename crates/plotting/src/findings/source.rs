//! Finds result files: the one that was asked for, or all that exist.
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use records::{Identity, Row, Signature, is_shard, read_checked};

use crate::findings::error::{Error, Result, command, faulty, no_results, unreadable};
use crate::findings::replicates::of_replicates;
use crate::findings::subject_file::{SubjectFile, SubjectKind};

/// Names of experiments, with which the names of their files begin.
#[expect(missing_docs, reason = "each is named after what it measures")]
pub mod experiment {
    pub const AUDIT: &str = heads::experiment::AUDIT.name;
    pub const BEST_HEADS: &str = heads::experiment::ABLATE_ALL_BUT_ONE.name;
    pub const LLAMA_CPP: &str = heads::experiment::LLAMA_CPP.name;
    pub const METHODS: &str = heads::experiment::COMPARE_METHODS.name;
    pub const DYNAMICS: &str = heads::experiment::TRAINING_DYNAMICS.name;
    pub const FUNCTIONS: &str = heads::experiment::HEAD_FUNCTIONS.name;
    pub const GATES: &str = heads::experiment::TRAIN_GATES.name;
    pub const IMPORTANCE: &str = heads::experiment::IMPORTANCE.name;
    pub const NAMED: &str = heads::experiment::NAMED_HEADS.name;
    pub const PAIR: &str = heads::experiment::CROSS_DOMAIN.name;
    pub const PRUNING: &str = heads::experiment::ITERATIVE_PRUNE.name;
    pub const RELEVANCE: &str = heads::experiment::RELEVANCE.name;
    pub const RETRAINED: &str = heads::experiment::PRUNE_AND_RETRAIN.name;
    pub(crate) const SEARCH: &str = heads::experiment::JOINT_SEARCH.name;
    pub const SPEED: &str = heads::experiment::SPEED_BENCH.name;
    pub const SWEEP: &str = heads::experiment::ABLATE_ONE.name;
    pub const TRAINING: &str = heads::experiment::TRAIN_SUBJECT.name;
    /// File name of the training log.
    pub const TRAINING_LOG: &str = "training";
}

/// Folders to read from.
#[derive(Debug, Clone, clap::Args)]
pub struct Folders {
    /// Folder with the results, which has a folder for each setup
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    pub results: PathBuf,

    /// Folder with the setup files, which name the published numbers to compare with
    #[arg(long, value_name = "FOLDER", default_value = "experiments")]
    pub experiments: PathBuf,
}

/// Request for a result file by path, or for the results of a setup.
#[derive(Debug, Clone)]
pub enum Source {
    /// One file with any name.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Folder of the setup files.
        experiments: PathBuf,
    },
    /// Results of a setup.
    Subject {
        /// Name of the setup, which is also its folder.
        subject: String,
        /// Folder with the results of all setups.
        results: PathBuf,
        /// Facts from the setup file that apply to all its results.
        kind: SubjectKind,
        /// Split of the scores; `None` for any.
        split: Option<String>,
    },
}

/// A result file with its signature.
#[derive(Debug, Clone)]
pub struct ResultFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Setup of the results.
    pub subject: String,
    /// Signature stored next to the file.
    pub signature: Option<Signature>,
    /// Facts from the setup file that apply to all its results.
    pub kind: SubjectKind,
    experiment: String,
    /// What the file name adds to the standard name, such as `first-500`; empty for the standard file.
    addition: String,
    is_torn: bool,
}

impl Folders {
    /// Returns the folders, with the folder of setup files taken from `subject` if that is the path of a setup file.
    pub fn beside(&self, subject: &str) -> Self {
        let path = Path::new(subject).parent().filter(|_| subject.ends_with(".toml"));
        let beside = path.filter(|folder| !folder.as_os_str().is_empty());
        Self { experiments: beside.unwrap_or(&self.experiments).to_owned(), ..self.clone() }
    }

    /// Returns the facts from a setup file that apply to all its results.
    pub fn kind(&self, subject: &str) -> SubjectKind {
        SubjectFile::read(&self.experiments, subject).kind
    }
}

impl Source {
    /// Returns a request for the standard files of a setup.
    pub fn subject(folders: &Folders, subject: &str) -> Self {
        Self::of_kind(folders, subject, folders.kind(subject))
    }

    /// Like [`Source::subject`], for a setup whose file has been read.
    pub fn of_kind(folders: &Folders, subject: &str, kind: SubjectKind) -> Self {
        Self::Subject { subject: subject.to_owned(), results: folders.results.clone(), kind, split: None }
    }

    /// Returns the file of `experiment`: the one that was named, or else the setup's standard file, or the one with most segments.
    pub fn one(&self, experiment: &str) -> Result<ResultFile> {
        let (subject, results, kind, split) = match self {
            Self::File { path, experiments } => return ResultFile::named(path, experiment, experiments),
            Self::Subject { subject, results, kind, split } => (subject, results, *kind, split.as_deref()),
        };
        let folder = folder(results, subject, experiment)?;
        let own = split.map(|split| format!("{experiment}-{split}"));
        // lowest first: most segments, then files that are not named after the split
        let by_size = |name: String| {
            let as_named = own.as_ref().and_then(|own| Some((size(&name, own)?, true)));
            let (size, is_named) = as_named.or_else(|| Some((size(&name, experiment)?, false)))?;
            Some((std::cmp::Reverse(size), is_named, name))
        };
        let mut found: Vec<_> = names(&folder)?.into_iter().filter_map(by_size).collect();
        found.sort();
        for (_, is_named, name) in found {
            let file = ResultFile::of(folder.join(name), subject, experiment, kind)?;
            if is_named || split.is_none_or(|split| file.split() == Some(split)) {
                return Ok(file);
            }
        }
        let name = format!("{}.csv", own.as_deref().unwrap_or(experiment));
        Err(no_results(folder.join(name), experiment, subject))
    }

    /// Like [`Source::one`], but falls back to the first other run with results if the setup's own run has none.
    pub fn of_a_run(&self, experiment: &str) -> Result<ResultFile> {
        let own = self.one(experiment);
        let (Err(Error::NotMeasured(_)), Self::Subject { subject, results, kind, .. }) = (&own, self) else {
            return own;
        };
        let path = results.join(subject).join(format!("{experiment}.csv"));
        let missing = ResultFile::of(path, subject, experiment, *kind)?;
        of_replicates(&missing, experiment)?.into_iter().next().map_or(own, Ok)
    }

    /// Returns the folder for drawings of a file: that of its setup, also for results of another run.
    pub fn figures(&self, file: &ResultFile) -> PathBuf {
        match self {
            Self::File { .. } => file.path.with_file_name("figures"),
            Self::Subject { subject, results, .. } => results.join(subject).join("figures"),
        }
    }

    /// Returns all files with results of `experiment` on the requested split, shortest names first.
    pub fn all(&self, experiment: &str) -> Result<Vec<ResultFile>> {
        let (subject, results, kind, split) = match self {
            Self::File { path, experiments } => {
                return match ResultFile::named(path, experiment, experiments) {
                    Ok(file) if file.signature.is_none() && !is_of(experiment, &file_name(path)) => {
                        Ok(vec![])
                    }
                    Err(Error::OtherExperiment(_)) => Ok(vec![]),
                    file => Ok(vec![file?]),
                };
            }
            Self::Subject { subject, results, kind, split } => (subject, results, *kind, split.as_deref()),
        };
        let folder = folder(results, subject, experiment)?;
        let mut names: Vec<_> = names(&folder)?.into_iter().filter(|name| is_of(experiment, name)).collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        let file = |name| ResultFile::of(folder.join(name), subject, experiment, kind);
        let mut files = names.into_iter().map(file).collect::<Result<Vec<_>>>()?;
        // files of other kinds of ablation are only shown where kinds are compared
        files.retain(|file| file.ablation().is_empty());
        files.retain(|file| split.is_none_or(|split| file.split() == Some(split)));
        Ok(files)
    }
}

impl ResultFile {
    /// Returns a file of a setup and refuses shards. An unreadable signature is reported by [`rows`](Self::rows) and hides no other file.
    pub(crate) fn of(path: PathBuf, subject: &str, experiment: &str, kind: SubjectKind) -> Result<Self> {
        let signature = Signature::read(&Signature::path_beside(&path)).unwrap_or(None);
        if let Some(part) = signature.as_ref().and_then(|signature| signature.part.as_ref()) {
            let shard = part.shard;
            let fault =
                format!("has only the rows of shard {shard}: `{} merge` joins all shards", durable::front());
            return Err(faulty(&path, fault));
        }
        let (addition, experiment, subject) =
            (addition(&path, experiment), experiment.to_owned(), subject.to_owned());
        Ok(Self { path, subject, signature, kind, experiment, addition, is_torn: false })
    }

    pub(crate) fn other(&self, path: PathBuf, experiment: &str) -> Result<Self> {
        Self::of(path, &self.subject, experiment, self.kind)
    }

    /// Returns a file given by path, which must belong to this experiment.
    fn named(path: &Path, experiment: &str, experiments: &Path) -> Result<Self> {
        let folder = path.parent().and_then(Path::file_name);
        let folder = folder.map_or("results".to_owned(), |name| name.to_string_lossy().into_owned());
        let file = Self::of(path.to_owned(), &folder, experiment, SubjectKind::default())?;
        file.check()?;
        let subject = file.identity().map_or(folder, |identity| identity.subject.clone());
        let described = is_plain_name(&subject).then(|| SubjectFile::read(experiments, &subject));
        Ok(Self { subject, kind: described.map(|file| file.kind).unwrap_or_default(), ..file })
    }

    fn check(&self) -> Result<()> {
        let (path, expected) = (self.path.display(), &self.experiment);
        let other = self.identity().map(|identity| &identity.experiment).filter(|found| *found != expected);
        other.map_or(Ok(()), |found| {
            let fault = format!("`{path}` has results of `{found}`, but results of `{expected}` are needed");
            Err(Error::OtherExperiment(fault))
        })
    }

    /// `true` if the file name is `stem`, with or without an addition.
    pub(crate) fn is_named(&self, stem: &str) -> bool {
        is_of(stem, &file_name(&self.path))
    }

    /// Sets the standard name, to which the file name adds something.
    pub(crate) fn with_standard(self, stem: &str) -> Self {
        Self { addition: addition(&self.path, stem), ..self }
    }

    /// Sets the experiment that the file belongs to, if its name differs.
    pub fn with_experiment(self, experiment: &str) -> Self {
        Self { experiment: experiment.to_owned(), ..self }
    }

    /// Returns the checked rows; refuses rows copied from another setup.
    pub fn rows<R: Row>(&mut self) -> Result<Vec<R>> {
        self.check()?;
        let own = &self.subject;
        if let Some(Identity { subject, .. }) = self.identity().filter(|identity| identity.subject != *own) {
            let fault = format!("belongs to setup `{subject}` according to its signature, not to `{own}`");
            return Err(faulty(&self.path, fault));
        }
        if self.signature.is_none() {
            Signature::read(&Signature::path_beside(&self.path))?;
        }
        let checked = read_checked(&self.path, self.signature.as_ref())?;
        self.is_torn = checked.is_torn;
        Ok(checked.rows)
    }

    /// Keeps, among files with equal `same`, the one with most segments.
    pub(crate) fn largest<T: PartialEq>(all: &[Self], same: impl Fn(&Self) -> Option<T>) -> Vec<Self> {
        let segments = |file: &Self| file.limit().unwrap_or(usize::MAX);
        let is_larger =
            |file: &Self, other: &Self| same(file) == same(other) && segments(other) > segments(file);
        let is_largest =
            |file: &&Self| same(file).is_none() || !all.iter().any(|other| is_larger(file, other));
        all.iter().filter(is_largest).cloned().collect()
    }

    /// Returns the suffix of file names for a kind of ablation, such as `-mean` or `-resample-1`; empty for zero ablation.
    pub(crate) fn ablation(&self) -> String {
        let kind = self.argument("ablation").and_then(serde_json::Value::as_str);
        let draw = self.number("draw").map_or(String::new(), |draw| format!("-{draw}"));
        kind.map_or(String::new(), |kind| format!("-{kind}{draw}"))
    }

    /// Adds this file's addition to a name: `table1`, or `table1-first-500` for a file over the first 500 segments.
    pub fn stem(&self, name: &str) -> String {
        if self.addition.is_empty() { name.to_owned() } else { format!("{name}-{}", self.addition) }
    }

    /// Names the torn last line, which is left out of the rows.
    pub fn torn(&self) -> Option<String> {
        self.is_torn.then(|| format!("the last line of `{}`, which is torn", self.path.display()))
    }

    /// Explains why the signature does not vouch for the rows; `None` if it does.
    pub fn remark(&self) -> Option<String> {
        let name = file_name(&self.path);
        let torn = self.is_torn.then(|| format!("the last line of `{name}` is torn and left out"));
        let state = match &self.signature {
            None => Some(format!("split unknown: `{name}` has no signature file next to it")),
            _ if self.is_unfinished() => {
                Some(format!("`{name}` is not finished: the run was killed or is still running"))
            }
            Some(Signature { complete: Some(_), .. }) => None,
            _ => Some(format!("`{name}` is not checked: it is older than checksums of complete files")),
        };
        let both: Vec<_> = torn.into_iter().chain(state).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the addition in `<stem>.csv` or `<stem>-<addition>.csv`.
fn rest<'a>(stem: &str, name: &'a str) -> Option<&'a str> {
    let rest = name.strip_suffix(".csv")?.strip_prefix(stem)?;
    (rest.is_empty() || rest.starts_with('-')).then(|| rest.trim_start_matches('-'))
}

pub(crate) fn is_of(stem: &str, name: &str) -> bool {
    rest(stem, name).is_some()
}

/// Returns the number of segments in `<stem>-sample-<N>.csv` or `<stem>-first-<N>.csv`; the maximum for `<stem>.csv`.
fn size(name: &str, stem: &str) -> Option<usize> {
    let rest = rest(stem, name)?;
    let limit = || rest.strip_prefix("sample-").or_else(|| rest.strip_prefix("first-"));
    if rest.is_empty() { Some(usize::MAX) } else { limit()?.parse().ok() }
}

/// Returns the addition to the standard name, or the whole stem if the name does not begin with it.
fn addition(path: &Path, standard: &str) -> String {
    let name = file_name(path);
    rest(standard, &name).unwrap_or(name.strip_suffix(".csv").unwrap_or(&name)).to_owned()
}

/// Returns the file names in a folder, without shards.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).map_err(unreadable(folder))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| !is_shard(Path::new(name))).collect())
}

/// Returns the folder of a setup; fails with advice to run `experiment` if it does not exist.
pub fn folder(results: &Path, subject: &str, experiment: &str) -> Result<PathBuf> {
    if !is_plain_name(subject) {
        let what = "is not a name of a setup: expected the name of a folder in the results, such as";
        return Err(Error::Invalid(format!("`{subject}` {what} `demo-translation`")));
    }
    let folder = results.join(subject);
    if !folder.is_dir() {
        let names = subjects(results)?;
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let meant = words::did_you_mean(subject, names.iter().map(String::as_str));
        let (results, command) = (results.display(), command(experiment, subject));
        let has = format!("`{results}` has {known}; `{command}` measures it{meant}");
        return Err(Error::Invalid(format!("unknown setup `{subject}`: {has}")));
    }
    Ok(folder)
}

/// Returns the name of a setup, given by name or by the path of its file.
pub fn subject_named(text: &str) -> &str {
    let file = text.strip_suffix(".toml").and_then(|path| path.rsplit(['/', '\\']).next());
    file.unwrap_or(text)
}

/// `true` if a name from a file or an argument is safe as a part of a file name.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && !name.contains(|c: char| "/\\:".contains(c) || c.is_control())
}

/// Returns the sorted names of the setups in `results`; empty if the folder does not exist.
pub fn subjects(results: &Path) -> Result<Vec<String>> {
    let entries = match std::fs::read_dir(results) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable(results))?,
    };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| is_plain_name(name));
    names.sort();
    Ok(names)
}
