//! Result files: which of them a command draws, and where that goes.
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use records::{Checked, Row, Signature, is_shard, read_checked};

use crate::Error;

/// What stands before the number of segments in the name of a limited run's file.
const FIRST: &str = "-first-";

/// What a command was told to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The results of a subject.
    Subject {
        /// Its name.
        subject: String,
        /// The folder with the results of all subjects.
        results: PathBuf,
        /// The split that was scored; the standard files if absent.
        split: Option<String>,
    },
    /// One result file.
    File {
        /// The file.
        path: PathBuf,
        /// The folder with the results of all subjects, where a file that it needs may be.
        results: PathBuf,
    },
}

/// A result file with its signature.
#[derive(Debug, Clone)]
pub struct ResultFile {
    /// The CSV file.
    pub path: PathBuf,
    /// Name of the subject.
    pub subject: String,
    /// Where its rows come from, if there is a signature.
    pub signature: Option<Signature>,
    /// What its name adds to that of the standard file, such as `first-500`; empty for the latter.
    addition: String,
    is_torn: bool,
}

impl Source {
    /// The results of a subject, its standard files.
    pub fn subject(results: &Path, subject: &str) -> Self {
        Self::Subject { subject: subject.to_owned(), results: results.to_owned(), split: None }
    }

    /// The folder with the results of all subjects.
    pub fn results(&self) -> &Path {
        match self {
            Self::Subject { results, .. } | Self::File { results, .. } => results,
        }
    }

    /// The file that holds the results of `experiment`: the one that was named, or the subject's standard one or, where
    /// that is not there, that of the run over most segments.
    ///
    /// # Errors
    /// If there is none, or a signature cannot be read.
    pub fn one(&self, experiment: &'static str) -> Result<ResultFile, Error> {
        let (subject, results, split) = match self {
            Self::File { path, .. } => return ResultFile::named(path, experiment),
            Self::Subject { subject, results, split } => (subject, results, split.as_deref()),
        };
        let folder = folder(results, subject, experiment)?;
        let own = split.map(|split| format!("{experiment}-{split}"));
        for (path, is_named) in by_size(&folder, experiment, own.as_deref())? {
            let file = ResultFile::of(path, subject, experiment)?;
            if is_named || split.is_none_or(|split| file.split() == Some(split)) {
                return Ok(file);
            }
        }
        let path = folder.join(format!("{}.csv", own.as_deref().unwrap_or(experiment)));
        Err(Error::NoResults { path, experiment, subject: subject.clone() })
    }

    /// All files with results of `experiment` on the split, or on any, whose names start with `stem`, shortest names first;
    /// there may be none.
    ///
    /// # Errors
    /// If the folder or a signature cannot be read.
    pub fn all(&self, experiment: &'static str, stem: &str) -> Result<Vec<ResultFile>, Error> {
        let (subject, results, split) = match self {
            Self::File { path, .. } => {
                let file = ResultFile::named(path, experiment);
                let is_other = matches!(file, Err(Error::Fault { .. }))
                    || file.as_ref().is_ok_and(|file| file.signature.is_none() && !is_of(stem, &file_name(path)));
                return if is_other { Ok(Vec::new()) } else { Ok(vec![file?]) };
            }
            Self::Subject { subject, results, split } => (subject, results, split.as_deref()),
        };
        let folder = folder(results, subject, experiment)?;
        let mut names: Vec<_> = names(&folder)?.into_iter().filter(|name| is_of(stem, name)).collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        let files = names.into_iter().map(|name| ResultFile::of(folder.join(name), subject, experiment));
        let files: Vec<_> = files.collect::<Result<_, _>>()?;
        let is_meant = |file: &ResultFile| split.is_none_or(|split| file.split() == Some(split));
        Ok(files.into_iter().filter(is_meant).collect())
    }
}

impl ResultFile {
    /// A file of a subject.
    pub(crate) fn of(path: PathBuf, subject: &str, experiment: &str) -> Result<Self, Error> {
        let signature = Signature::read(&Signature::path_beside(&path))?;
        if let Some(part) = signature.as_ref().and_then(|signature| signature.part.as_ref()) {
            let shard = part.shard;
            return Err(Error::fault(
                &path,
                format!("has the rows of shard {shard} only: `just merge` joins it with the others"),
            ));
        }
        let addition = addition(&path, experiment);
        Ok(Self { path, subject: subject.to_owned(), signature, addition, is_torn: false })
    }

    /// A file that was named, which must be of this experiment.
    fn named(path: &Path, experiment: &'static str) -> Result<Self, Error> {
        let folder = path.parent().and_then(Path::file_name);
        let folder = folder.map_or("results".to_owned(), |name| name.to_string_lossy().into_owned());
        let file = Self::of(path.to_owned(), &folder, experiment)?;
        file.check_experiment(experiment)?;
        let subject = file.identity().map_or(folder, |identity| identity.subject.clone());
        Ok(Self { subject, ..file })
    }

    fn check_experiment(&self, experiment: &str) -> Result<(), Error> {
        match self.identity().map(|identity| &identity.experiment) {
            Some(found) if found != experiment => Err(Error::fault(
                &self.path,
                format!("is of `{found}`, but this is drawn from results of `{experiment}`"),
            )),
            _ => Ok(()),
        }
    }

    /// The same whose standard name is `stem`.
    pub(crate) fn with_standard(self, stem: &str) -> Self {
        Self { addition: addition(&self.path, stem), ..self }
    }

    /// The rows of a file of `experiment`, all of them as the runs wrote them if the signature says what these were.
    ///
    /// # Errors
    /// If the file cannot be read, was changed since it was complete, has a signature of another experiment, or rows that
    /// cannot be.
    pub fn rows<R: Row>(&mut self, experiment: &str) -> Result<Vec<R>, Error> {
        self.check_experiment(experiment)?;
        let Checked { rows, is_torn } = read_checked(&self.path, self.signature.as_ref())?;
        self.is_torn = is_torn;
        Ok(rows)
    }

    /// Where its tables and figures go.
    pub fn figures(&self) -> PathBuf {
        self.path.with_file_name("figures")
    }

    /// Name of what is drawn from it, without extension: `table1`, or `table1-first-500` if it is not the standard file.
    pub fn stem(&self, name: &str) -> String {
        if self.addition.is_empty() { name.to_owned() } else { format!("{name}-{}", self.addition) }
    }

    /// A sentence where the signature cannot vouch for the rows.
    pub fn remark(&self) -> Option<String> {
        let name = file_name(&self.path);
        let torn = self.is_torn.then(|| format!("the last line of `{name}` is torn and left out"));
        let state = match &self.signature {
            None => Some(format!("split unknown: no signature beside `{name}`")),
            Some(_) if self.is_unfinished() => {
                Some(format!("`{name}` is not finished: the run was killed or is still going"))
            }
            Some(Signature { complete: None, .. }) => {
                Some(format!("`{name}` is not checked: it is older than checksums of complete files"))
            }
            Some(_) => None,
        };
        let both: Vec<_> = torn.into_iter().chain(state).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether the name is `<stem>.csv` or `<stem>-<addition>.csv`.
fn is_of(stem: &str, name: &str) -> bool {
    let rest = name.strip_suffix(".csv").and_then(|name| name.strip_prefix(stem));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The file's stem without `standard`, where it starts with that.
fn addition(path: &Path, standard: &str) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let rest = stem.strip_prefix(standard).filter(|rest| rest.is_empty() || rest.starts_with('-'));
    rest.map_or(stem.clone(), |rest| rest.trim_start_matches('-').to_owned())
}

/// `<stem>.csv` and `<named>.csv`, then `<stem>-first-<N>.csv` and `<named>-first-<N>.csv`, greatest N first, as far as
/// they are there, and whether it is the latter of the two.
fn by_size(folder: &Path, stem: &str, named: Option<&str>) -> Result<Vec<(PathBuf, bool)>, Error> {
    let size = |name: &str, stem: &str| {
        let rest = name.strip_suffix(".csv")?.strip_prefix(stem)?;
        if rest.is_empty() { Some(usize::MAX) } else { rest.strip_prefix(FIRST)?.parse().ok() }
    };
    let both = |name: String| {
        let as_named = named.and_then(|named| size(&name, named)).map(|size| (size, true));
        let (size, is_named) = as_named.or_else(|| Some((size(&name, stem)?, false)))?;
        Some((std::cmp::Reverse(size), is_named, name))
    };
    let mut found: Vec<_> = names(folder)?.into_iter().filter_map(both).collect();
    found.sort();
    Ok(found.into_iter().map(|(_, is_named, name)| (folder.join(name), is_named)).collect())
}

/// Names of the files in a folder, but for those of shards, which are parts of results.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let entries =
        std::fs::read_dir(folder).map_err(|source| Error::Read { path: folder.to_owned(), source })?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| !is_shard(Path::new(name))).collect())
}

/// The folder of a subject, if it is there; `experiment` would make it.
fn folder(results: &Path, subject: &str, experiment: &'static str) -> Result<PathBuf, Error> {
    if !is_plain_name(subject) {
        return Err(Error::Asked(format!(
            "`{subject}` is not the name of a subject: it is the name of a folder in the results, such as `demo-translation`"
        )));
    }
    let folder = results.join(subject);
    if !folder.is_dir() {
        let names = subjects(results)?;
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Error::Asked(format!(
            "unknown subject `{subject}`: `{}` has {known}; make it with `{experiment} experiments/{subject}.toml`",
            results.display()
        )));
    }
    Ok(folder)
}

/// Whether a name from a file or an argument can be part of a file's name and of nothing else.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && !name.contains(['/', '\\', ':'])
        && !name.contains(char::is_control)
}

/// Names of the folders in `results`, sorted; none if it does not exist.
///
/// # Errors
/// If it cannot be read.
pub fn subjects(results: &Path) -> Result<Vec<String>, Error> {
    let entries = match std::fs::read_dir(results) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::Read { path: results.to_owned(), source }),
    };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    Ok(names)
}
