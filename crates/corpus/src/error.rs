//! Errors of data sets and tokenisers.
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Why a data set or a tokeniser could not be read, written or fetched.
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

    /// A file could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file at fault.
        path: PathBuf,
        /// The message of the system.
        source: io::Error,
    },

    /// Input that is not as it must be. The message is one line that says what, where, and what is allowed.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Makes the error of a file that cannot be read.
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Read { path: path.to_owned(), source }
    }

    /// Makes the error of a file that cannot be written.
    pub(crate) fn writing(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Write { path: path.to_owned(), source }
    }

    /// A fault of a file.
    pub(crate) fn of(path: &Path, reason: impl Display) -> Self {
        Self::Invalid(format!("`{}`: {reason}", path.display()))
    }

    /// A fault of a line, counted from 1.
    pub(crate) fn of_line(path: &Path, line: usize, reason: impl Display) -> Self {
        Self::Invalid(format!("`{}`, line {line}: {reason}", path.display()))
    }

    /// A data set of which nothing is left.
    pub(crate) fn no_examples(path: &Path) -> Self {
        Self::Invalid(format!("`{}` holds no examples", path.display()))
    }

    /// A contradiction in the description of a data set.
    pub(crate) fn of_format(reason: impl Display) -> Self {
        Self::Invalid(format!("the description of a data set's format is wrong: {reason}"))
    }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
