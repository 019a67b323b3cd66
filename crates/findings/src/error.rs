//! What keeps one thing from being shown, and whether others can be.
use std::path::Path;

use anyhow::{Error, Result};

use crate::source::ResultFile;

/// A fault in results that were read, or were to be.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A file cannot be shown yet, which says nothing about others.
    #[error("{0}")]
    Alone(String),
    /// The experiment has not been run on this subject.
    #[error("{0}")]
    NoResults(String),
    /// What was asked for is not there, or has no such name.
    #[error("{0}")]
    Asked(String),
}

/// A file that cannot be shown, with what follows its name in the message.
pub(crate) fn alone(path: &Path, fault: &str) -> Error {
    Fault::Alone(format!("`{}` {fault}", path.display())).into()
}

/// What a reader types to run an experiment, which may have options, on a subject.
pub(crate) fn command(experiment: &str, subject: &str) -> String {
    format!("{experiment} experiments/{subject}.toml")
}

/// The results of an experiment that has not been run.
pub(crate) fn no_results(path: &Path, experiment: &str, subject: &str) -> Error {
    let (path, command) = (path.display(), command(experiment, subject));
    Fault::NoResults(format!("`{path}` does not exist: make it with `{command}`")).into()
}

/// Whether it says nothing about other files: what a job leaves behind that is running, was killed or has been done again in
/// part, and what was edited or is of another version.
fn leaves_others_alone(error: &Error) -> bool {
    use records::Error::{Changed, Edited, Empty, Header};
    matches!(error.downcast_ref(), Some(Fault::Alone(_) | Fault::NoResults(_)))
        || matches!(error.downcast_ref(), Some(Changed { .. } | Edited { .. } | Empty { .. } | Header { .. }))
        || matches!(error.downcast_ref(), Some(stats::Error::TooFew))
}

/// Files that could not be shown and kept nothing else from being shown, in the order in which they were met.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// What is wrong with each.
    pub faults: Vec<String>,
    /// Whether every fault is noted and nothing else kept from being shown, whatever it says about other files.
    pub takes_all: bool,
}

impl LeftOut {
    /// What was read; nothing if the fault says nothing about other files, which is then noted once.
    pub fn keep<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Err(error) if self.takes_all || leaves_others_alone(&error) => {
                let noted = format!("{error:#}");
                if !self.faults.contains(&noted) {
                    self.faults.push(noted);
                }
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// The same for an experiment that may not have been run at all, which needs no note.
    pub fn keep_if_there<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Err(error) if matches!(error.downcast_ref(), Some(Fault::NoResults(_))) => Ok(None),
            read => self.keep(read),
        }
    }

    /// Those of several files that could be read.
    pub(crate) fn read_all<T>(
        &mut self,
        files: Result<Vec<ResultFile>>,
        read: impl Fn(ResultFile) -> Result<T>,
    ) -> Result<Vec<T>> {
        let files = self.keep(files)?.unwrap_or_default();
        let found: Vec<Option<T>> =
            files.into_iter().map(|file| self.keep(read(file))).collect::<Result<_>>()?;
        Ok(found.into_iter().flatten().collect())
    }
}
