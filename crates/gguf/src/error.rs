//! Errors when reading and writing GGUF files and folders.
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
        /// The error of the operating system.
        source: io::Error,
    },

    /// A file or a folder could not be written.
    #[error(transparent)]
    Write(#[from] durable::Error),

    /// An invalid configuration.
    #[error(transparent)]
    Model(#[from] families::Error),

    /// An invalid tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] corpus::Error),

    /// Invalid input. The message is one line: what, where, and what is allowed.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn of(path: &Path, reason: impl Display) -> Self {
        Self::Invalid(format!("`{}`: {reason}", path.display()))
    }

    /// Makes an error from a library's message about a file, without candle's backtrace lines.
    pub(crate) fn told(path: &Path) -> impl Fn(candle_core::Error) -> Self {
        |error| Self::of(path, excerpt(error.to_string().lines().next().unwrap_or("unknown error")))
    }
}
