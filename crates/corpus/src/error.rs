//! Errors of data sets and tokenizers.
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Why a data set or a tokenizer could not be read, written or fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file at fault.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },

    /// A file could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file at fault.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },

    /// Input is invalid. The message is one line that names the fault, its place and what is allowed.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn writing(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Write { path: path.to_owned(), source }
    }

    pub(crate) fn of(path: &Path, reason: impl Display) -> Self {
        Self::Invalid(format!("`{}`: {reason}", path.display()))
    }

    /// Makes the error for a fault in a line, counted from 1.
    pub(crate) fn of_line(path: &Path, line: usize, reason: impl Display) -> Self {
        Self::Invalid(format!("`{}`, line {line}: {reason}", path.display()))
    }

    pub(crate) fn no_examples(path: &Path) -> Self {
        Self::Invalid(format!("`{}` contains no examples", path.display()))
    }

    /// Makes the error for a contradiction in the description of a data set.
    pub(crate) fn of_format(reason: impl Display) -> Self {
        Self::Invalid(format!("the description of a data set's format is wrong: {reason}"))
    }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
