//! Errors of the machine and of training.
use std::io;
use std::path::{Path, PathBuf};

/// Reason why training or another computation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// Any other fault; the message names it and what is allowed.
    #[error("{0}")]
    Invalid(String),

    /// An error in the weights.
    #[error(transparent)]
    Model(#[from] core_masking::Error),

    /// An error in the training curve.
    #[error(transparent)]
    Records(#[from] records::Error),
}

impl Error {
    /// Returns the error for a file that cannot be read.
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::File { action: "read", path: path.to_owned(), source }
    }

    /// Returns the error for a thread that failed.
    pub(crate) fn worker(fault: &str) -> Self {
        Self::Invalid(format!("the computation failed: {fault}"))
    }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::File { action: "write", path, source }
    }
}
