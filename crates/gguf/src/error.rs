//! Errors of GGUF files and of the folders that they become.
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use words::excerpt;

/// Why a file or a folder could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file at fault.
        path: PathBuf,
        /// The message of the system.
        source: io::Error,
    },

    /// A file or a folder could not be written.
    #[error(transparent)]
    Write(#[from] durable::Error),

    /// A configuration that no model has.
    #[error(transparent)]
    Model(#[from] families::Error),

    /// A tokeniser that no program could use.
    #[error(transparent)]
    Tokenizer(#[from] corpus::Error),

    /// Input that is not as it must be. The message is one line that says what, where, and what is allowed.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Read { path: path.to_owned(), source }
    }

    /// A fault of a file.
    pub(crate) fn of(path: &Path, reason: impl Display) -> Self {
        Self::Invalid(format!("`{}`: {reason}", path.display()))
    }

    /// What a library says of a file; candle's errors may go on with lines of a backtrace.
    pub(crate) fn told(path: &Path) -> impl Fn(candle_core::Error) -> Self {
        |error| Self::of(path, excerpt(error.to_string().lines().next().unwrap_or("for no stated reason")))
    }
}
