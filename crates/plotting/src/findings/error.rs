//! Errors about results that cannot be shown, which do not prevent others from being shown.
use heads::experiment::{ABLATE_ONE, Experiment};
use std::error::Error as StdError;
use std::path::{Path, PathBuf};

use crate::findings::source::ResultFile;

/// A [`Result`](std::result::Result) with the [`Error`] of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why results cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An experiment was not run, did not store its segments, or has no rows of an attention type.
    #[error("{0}")]
    NotMeasured(String),

    /// A file belongs to another experiment.
    #[error("{0}")]
    OtherExperiment(String),

    /// Rows or signatures are invalid.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// A file or a name cannot be used; others may be valid.
    #[error("{0}")]
    Invalid(String),
}

/// Returns an error for a file; `fault` follows its name in the message.
pub(crate) fn faulty(path: &Path, fault: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("`{}` {fault}", path.display()))
}

pub(crate) fn unreadable<E: StdError>(path: &Path) -> impl FnOnce(E) -> Error {
    within(|| format!("cannot read `{}`", path.display()))
}

/// Returns an error that begins with what could not be done.
pub(crate) fn within<E: StdError>(what: impl FnOnce() -> String) -> impl FnOnce(E) -> Error {
    |source| Error::Invalid(format!("{}: {}", what(), words::in_full(&source)))
}

/// Returns an error for numbers of a file that cannot be compared.
pub fn incomparable(file: &ResultFile) -> impl FnOnce(stats::Error) -> Error {
    within(|| format!("cannot compare the numbers of `{}`", file.path.display()))
}

/// Returns the command that runs an experiment on a setup, such as `headcount heads demo-translation`.
pub(crate) fn command(experiment: &str, subject: &str) -> String {
    let (name, options) = experiment.split_once(' ').unwrap_or((experiment, ""));
    let command = Experiment::named(name).map_or(name, |experiment| experiment.command);
    format!("{} {command} {subject} {options}", words::front()).trim_end().to_owned()
}

pub(crate) fn no_results(path: PathBuf, experiment: &str, subject: &str) -> Error {
    let (path, command) = (path.display(), command(experiment, subject));
    Error::NotMeasured(format!("`{path}` does not exist: measure it with `{command}`"))
}

/// Returns an error for a file without segments, whose rows therefore cannot be compared with each other.
pub(crate) fn no_segments(file: &ResultFile) -> Error {
    Error::NotMeasured(format!("`{}` has no statistics of its segments next to it", file.path.display()))
}

/// Returns an error for a sweep of a single run.
pub fn no_replicates(file: &ResultFile) -> Error {
    let (path, command) = (file.path.display(), command(ABLATE_ONE.name, &file.subject));
    Error::NotMeasured(format!(
        "`{path}` has no other runs next to it: measure them with `{command} --replicate all`"
    ))
}

/// Returns an error for an experiment that was measured with only one kind of ablation.
pub fn no_kinds(file: &ResultFile, experiment: &str) -> Error {
    let (path, command) = (file.path.display(), command(experiment, &file.subject));
    Error::NotMeasured(format!(
        "`{path}` has no other kind of ablation next to it: measure one with `{command} --ablation mean`"
    ))
}

/// Returns an error for a sweep that measured every head on all segments.
pub fn no_looks(file: &ResultFile) -> Error {
    let (path, command) = (file.path.display(), command(crate::findings::experiment::SWEEP, &file.subject));
    Error::NotMeasured(format!(
        "`{path}` has no looks: measure a sweep that stops early with `{command} --until-decided`"
    ))
}

/// Returns an error for a file without rows of an attention type.
pub fn no_attention(file: &ResultFile, asked: &str, present: &[&str]) -> Error {
    let (path, present) = (file.path.display(), present.join(", "));
    Error::NotMeasured(format!("no rows for attention type {asked}: `{path}` has {present}"))
}

/// Files that could not be shown, in the order in which they were found.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// One message per file.
    pub faults: Vec<String>,
}

impl LeftOut {
    /// Returns what was read, or notes the fault and returns `None`.
    pub fn keep<T>(&mut self, read: Result<T>) -> Option<T> {
        read.map_err(|error| self.note(words::in_full(&error))).ok()
    }

    /// Notes a fault, unless it has been noted before.
    pub fn note(&mut self, fault: String) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Like [`keep`](Self::keep), but does not note that something was not measured.
    pub fn keep_if_there<T>(&mut self, read: Result<T>) -> Option<T> {
        if matches!(read, Err(Error::NotMeasured(_))) { None } else { self.keep(read) }
    }

    /// Reads several files; leaves out unreadable ones, and returns none if the experiment was not run.
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

    #[test]
    fn an_error_is_noted_once_and_missing_measurements_only_on_request() {
        let mut left_out = LeftOut::default();
        for _ in 0..2 {
            let unreadable = unreadable(Path::new("x.csv"))(std::io::Error::other("no disk"));
            assert!(left_out.keep_if_there::<()>(Err(unreadable)).is_none());
        }
        assert_eq!(left_out.faults, ["cannot read `x.csv`: no disk"]);
        let nothing = || Err::<(), _>(no_results(PathBuf::from("x.csv"), "ablate-one", "demo"));
        assert!(left_out.keep_if_there(nothing()).is_none() && left_out.faults.len() == 1);
        assert!(left_out.keep(nothing()).is_none() && left_out.faults.len() == 2);
        assert_eq!(left_out.keep(Ok(7)), Some(7));
    }
}
