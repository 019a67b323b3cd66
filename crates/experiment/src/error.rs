//! Errors of experiments.
use std::path::{Path, PathBuf};

/// Reason why an experiment failed or a model could not be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant names its fields")]
pub enum Error {
    /// An invalid argument, file or folder; the message names it and what is allowed.
    #[error("{0}")]
    Input(String),

    /// A file could not be read or written.
    #[error("cannot {deed} `{}`", path.display())]
    File { deed: &'static str, path: PathBuf, source: std::io::Error },

    /// A result file is invalid.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// Rows could not be tested.
    #[error(transparent)]
    Significance(#[from] significance::Error),

    /// An error in the setup, its model or the machine.
    #[error(transparent)]
    Subject(#[from] subject::Error),
}

impl Error {
    /// Returns an [`Input`](Self::Input) error with this message.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    /// Returns the error for a file that cannot be read.
    pub(crate) fn read(path: &Path, source: std::io::Error) -> Self {
        Self::File { deed: "read", path: path.to_owned(), source }
    }

    /// Returns the error for a file that cannot be written.
    pub(crate) fn write(path: &Path, source: std::io::Error) -> Self {
        Self::File { deed: "write", path: path.to_owned(), source }
    }
}

impl From<core_masking::Error> for Error {
    fn from(error: core_masking::Error) -> Self {
        Self::Subject(error.into())
    }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::write(&path, source)
    }
}

impl From<heads::Error> for Error {
    fn from(error: heads::Error) -> Self {
        Self::Subject(error.into())
    }
}

impl From<training::Error> for Error {
    fn from(error: training::Error) -> Self {
        Self::Subject(error.into())
    }
}
