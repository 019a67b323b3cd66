//! Result files: which of them a command draws, where that goes, and whether they hold what their runs wrote.
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use records::{Row, is_shard, read_rows, sha256_file};

use crate::Error;
use crate::origin::Origin;

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
    /// What the signature says; nothing without one.
    pub origin: Origin,
    /// What its name adds to that of the standard file, such as `first-500`; empty for the latter.
    addition: String,
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
            if is_named || split.is_none_or(|split| file.origin.split() == Some(split)) {
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
                return match ResultFile::named(path, experiment) {
                    Ok(file) if file.origin.identity().is_some() || is_of(stem, &file_name(path)) => {
                        Ok(vec![file])
                    }
                    Ok(_) | Err(Error::OtherExperiment { .. }) => Ok(Vec::new()),
                    Err(error) => Err(error),
                };
            }
            Self::Subject { subject, results, split } => (subject, results, split.as_deref()),
        };
        let folder = folder(results, subject, experiment)?;
        let mut names: Vec<_> = names(&folder)?.into_iter().filter(|name| is_of(stem, name)).collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        let files = names.into_iter().map(|name| ResultFile::of(folder.join(name), subject, experiment));
        let files: Vec<_> = files.collect::<Result<_, _>>()?;
        let is_meant = |file: &ResultFile| split.is_none_or(|split| file.origin.split() == Some(split));
        Ok(files.into_iter().filter(is_meant).collect())
    }
}

impl ResultFile {
    /// A file without a signature.
    pub fn unsigned(subject: &str, path: &str) -> Self {
        let (subject, path) = (subject.to_owned(), PathBuf::from(path));
        Self { path, subject, origin: Origin::default(), addition: String::new() }
    }

    /// A file of a subject.
    pub(crate) fn of(path: PathBuf, subject: &str, experiment: &str) -> Result<Self, Error> {
        let origin = Origin::beside(&path)?;
        let addition = addition(&path, experiment);
        Ok(Self { path, subject: subject.to_owned(), origin, addition })
    }

    /// A file that was named, which must be of this experiment.
    fn named(path: &Path, experiment: &'static str) -> Result<Self, Error> {
        let origin = Origin::beside(path)?;
        let identity = origin.identity();
        if let Some(found) =
            identity.map(|identity| &identity.experiment).filter(|&found| found != experiment)
        {
            return Err(Error::OtherExperiment { path: path.to_owned(), found: found.clone(), experiment });
        }
        let folder = path.parent().and_then(Path::file_name);
        let folder = folder.map_or("results".to_owned(), |name| name.to_string_lossy().into_owned());
        let subject = identity.map_or(folder, |identity| identity.subject.clone());
        Ok(Self { path: path.to_owned(), subject, addition: addition(path, experiment), origin })
    }

    /// The same whose standard name is `stem`.
    pub(crate) fn with_standard(self, stem: &str) -> Self {
        Self { addition: addition(&self.path, stem), ..self }
    }

    /// The rows, all of them as the runs wrote them if the signature says what these were.
    ///
    /// # Errors
    /// If the file cannot be read, or was changed since it was complete.
    pub fn rows<R: Row>(&self) -> Result<Vec<R>, Error> {
        let rows = read_rows(&self.path);
        let Some(complete) = self.origin.complete() else { return Ok(rows?) };
        if sha256_file(&self.path)? == complete.sha256 {
            return Ok(rows?);
        }
        let found = match rows {
            Ok(rows) if rows.len() != complete.rows => {
                format!("it has {} rows instead of {}", rows.len(), complete.rows)
            }
            _ => "its checksum is not the one in its signature".to_owned(),
        };
        Err(Error::Edited { path: self.path.clone(), found })
    }

    /// Where its tables and figures go.
    pub fn figures(&self) -> PathBuf {
        self.path.with_file_name("figures")
    }

    /// Name of what is drawn from it, without extension: `table1`, or `table1-first-500` if it is not the standard file.
    pub fn stem(&self, name: &str) -> String {
        if self.is_standard() { name.to_owned() } else { format!("{name}-{}", self.addition) }
    }

    /// Whether it is the standard file of its experiment.
    pub fn is_standard(&self) -> bool {
        self.addition.is_empty()
    }

    /// Subject and split as a reader should see them: `demo-translation (demo language), test`.
    pub fn title(&self) -> String {
        self.origin.title(&self.subject)
    }

    /// A sentence where the signature cannot vouch for the rows.
    pub fn remark(&self) -> Option<String> {
        self.origin.remark(&file_name(&self.path))
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
        return Err(Error::SubjectName(subject.to_owned()));
    }
    let folder = results.join(subject);
    if !folder.is_dir() {
        let names = subjects(results)?;
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let (subject, results) = (subject.to_owned(), results.to_owned());
        return Err(Error::UnknownSubject { subject, results, known, experiment });
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
pub(crate) fn subjects(results: &Path) -> Result<Vec<String>, Error> {
    let entries = match std::fs::read_dir(results) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::Read { path: results.to_owned(), source }),
    };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}
