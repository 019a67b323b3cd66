//! Errors on the machine and in training.
use std::io;
use std::path::{Path, PathBuf};

/// Why a model could not be trained, or a computation not be done.
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
        /// Why not.
        source: io::Error,
    },

    /// Anything else that is not as it must be: what, where, and what is allowed.
    #[error("{0}")]
    Invalid(String),

    /// Weights are at fault.
    #[error(transparent)]
    Model(#[from] core_masking::Error),

    /// The training curve is at fault.
    #[error(transparent)]
    Records(#[from] records::Error),
}

impl Error {
    /// A file that cannot be read.
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::File { action: "read", path: path.to_owned(), source }
    }

    /// A thread of a computation that gave up.
    pub(crate) fn worker(fault: &str) -> Self {
        Self::Invalid(format!("the computation failed: {fault}"))
    }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::File { action: "write", path, source }
    }
}
