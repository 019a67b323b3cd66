//! Why results cannot be shown, and whether others can.
use std::error::Error as StdError;
use std::path::{Path, PathBuf};

use crate::source::ResultFile;

/// A [`Result`](std::result::Result) with the [`Error`] of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why results cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant names its fields")]
pub enum Error {
    /// A file cannot be shown, which says nothing about others.
    #[error("`{}` {fault}", path.display())]
    Faulty { path: PathBuf, fault: String },

    /// A file has no rows for an attention type.
    #[error("no rows for attention type {asked}: `{}` has {present}", path.display())]
    NoAttention { path: PathBuf, asked: String, present: String },

    /// No comparison has this second split.
    #[error("no comparison with split `{against}`: `{}` has {present}", folder.display())]
    NoComparison { folder: PathBuf, against: String, present: String },

    /// The experiment has not been run on this subject.
    #[error("`{}` does not exist: make it with `{command}`", path.display())]
    NoResults { path: PathBuf, command: String },

    /// The segments of a file are not there, so that its rows cannot be compared with each other.
    #[error("`{}` has no statistics of its segments beside it", path.display())]
    NoSegments { path: PathBuf },

    /// A name that no subject can have.
    #[error(
        "`{name}` is not the name of a subject: it is the name of a folder in the results, such as `demo-translation`"
    )]
    NotASubject { name: String },

    /// A file is of another experiment.
    #[error("`{}` is of `{found}`, but this is drawn from results of `{expected}`", path.display())]
    OtherExperiment { path: PathBuf, found: String, expected: String },

    /// A file or folder cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: Box<dyn StdError + Send + Sync> },

    /// Rows or signatures are not what they should be.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// What is stored of segments cannot be tested.
    #[error(transparent)]
    Significance(#[from] significance::Error),

    /// Numbers cannot be compared.
    #[error(transparent)]
    Stats(#[from] stats::Error),

    /// No subject has this name.
    #[error("unknown subject `{name}`: `{}` has {known}; make it with `{command}`", results.display())]
    UnknownSubject { name: String, results: PathBuf, known: String, command: String },

    /// Another error, and what could not be done because of it.
    #[error("{what}")]
    Within { what: String, source: Box<Self> },
}

impl Error {
    /// The message and those of its sources, joined by colons.
    fn in_full(&self) -> String {
        let causes = std::iter::successors(Some(self as &dyn StdError), |&error| error.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    /// Whether an experiment has not been run, did not store its segments, or has no rows of an attention type.
    fn is_not_measured(&self) -> bool {
        matches!(self, Self::NoResults { .. } | Self::NoSegments { .. } | Self::NoAttention { .. })
    }
}

/// A file that cannot be shown, with what follows its name in the message.
pub(crate) fn faulty(path: &Path, fault: impl Into<String>) -> Error {
    Error::Faulty { path: path.to_owned(), fault: fault.into() }
}

/// A file or folder that cannot be read.
pub(crate) fn unreadable<E: StdError + Send + Sync + 'static>(path: &Path) -> impl FnOnce(E) -> Error {
    |source| Error::Read { path: path.to_owned(), source: source.into() }
}

/// An error, with what could not be done because of it.
pub(crate) fn within<E: Into<Error>>(what: impl FnOnce() -> String) -> impl FnOnce(E) -> Error {
    |source| Error::Within { what: what(), source: Box::new(source.into()) }
}

/// Numbers of a file that cannot be compared.
pub fn incomparable(file: &ResultFile) -> impl FnOnce(stats::Error) -> Error {
    within(|| format!("cannot compare the numbers of `{}`", file.path.display()))
}

/// What a reader types to run an experiment, which may have options, on a subject.
pub(crate) fn command(experiment: &str, subject: &str) -> String {
    format!("{experiment} experiments/{subject}.toml")
}

/// The results of an experiment that has not been run.
pub(crate) fn no_results(path: PathBuf, experiment: &str, subject: &str) -> Error {
    Error::NoResults { path, command: command(experiment, subject) }
}

/// Files that could not be shown and kept nothing else from being shown, in the order in which they were met.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// What is wrong with each.
    pub faults: Vec<String>,
}

impl LeftOut {
    /// What was read; nothing if there was a fault, which is then noted once.
    pub fn keep<T>(&mut self, read: Result<T>) -> Option<T> {
        read.map_err(|error| self.note(error.in_full())).ok()
    }

    /// Notes once what is left out.
    pub fn note(&mut self, fault: String) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// The same where something may not have been measured at all, which needs no note.
    pub fn keep_if_there<T>(&mut self, read: Result<T>) -> Option<T> {
        if read.as_ref().is_err_and(Error::is_not_measured) { None } else { self.keep(read) }
    }

    /// Those of several files that could be read; none where the experiment has not been run.
    pub(crate) fn read_all<T>(
        &mut self,
        files: Result<Vec<ResultFile>>,
        read: impl Fn(ResultFile) -> Result<T>,
    ) -> Vec<T> {
        let files = self.keep_if_there(files).unwrap_or_default();
        files.into_iter().filter_map(|file| self.keep(read(file))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn too_few(what: &str) -> Error {
        within::<stats::Error>(|| what.to_owned())(stats::Error::TooFew)
    }

    #[test]
    fn a_fault_of_one_file_is_noted_once_and_lets_others_be_shown() {
        let mut left_out = LeftOut::default();
        for _ in 0..2 {
            assert!(left_out.keep::<()>(Err(too_few("no test"))).is_none());
            let unreadable = unreadable(Path::new("x.csv"))(std::io::Error::other("no disk"));
            assert!(left_out.keep::<()>(Err(unreadable)).is_none());
        }
        let [one, other] = &left_out.faults[..] else { panic!("{:?}", left_out.faults) };
        assert!(one.starts_with("no test: too few values"), "{one}");
        assert_eq!(other, "cannot read `x.csv`: no disk");
        assert_eq!(left_out.keep(Ok(7)), Some(7));
    }

    #[test]
    fn an_experiment_that_was_not_run_needs_no_note() {
        let mut left_out = LeftOut::default();
        let nothing = || Err::<(), _>(no_results(PathBuf::from("x.csv"), "ablate-one", "demo"));
        assert!(left_out.keep_if_there(nothing()).is_none() && left_out.faults.is_empty());
        let (path, asked, present) = (PathBuf::from("x.csv"), "enc-enc".to_owned(), "self".to_owned());
        let other_type = Err::<(), _>(Error::NoAttention { path, asked, present });
        assert!(left_out.keep_if_there(other_type).is_none() && left_out.faults.is_empty());
        assert!(left_out.keep(nothing()).is_none());
        let expected = "`x.csv` does not exist: make it with `ablate-one experiments/demo.toml`";
        assert_eq!(left_out.faults, [expected]);
    }
}
