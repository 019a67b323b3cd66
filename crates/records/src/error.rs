//! Errors of result files.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Why a result file could not be read, continued or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process is writing the file.
    #[error("`{}` is being written by another process: wait for it or name another output", path.display())]
    InUse {
        /// The CSV file.
        path: PathBuf,
    },

    /// A file is not what it should be, or does not go with what it is to be used for.
    #[error("{0}")]
    Invalid(String),

    /// Two rows disagree on what must be the same in the whole file.
    #[error("`{}` mixes runs: {column} is {expected} but {found}", path.display())]
    Mixed {
        /// The CSV file.
        path: PathBuf,
        /// The column in question.
        column: &'static str,
        /// Its value in one row, and the row.
        expected: String,
        /// The same of the row that differs.
        found: String,
    },

    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Message of the operating system.
        source: io::Error,
    },

    /// A file or folder could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Message of the operating system.
        source: io::Error,
    },
}

impl Error {
    /// A fault of a file: its path, then the fault.
    pub(crate) fn of(path: &Path, fault: impl Display) -> Self {
        Self::Invalid(format!("`{}` {fault}", path.display()))
    }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
