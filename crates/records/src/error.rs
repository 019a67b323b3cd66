//! Errors of result files.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Reason why a result file could not be read, continued or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process is writing the file.
    #[error("`{}` is being written by another process: wait for it or choose another file with the experiment's --output", path.display())]
    InUse {
        /// The CSV file.
        path: PathBuf,
    },

    /// A file is invalid, or does not fit its use.
    #[error("{0}")]
    Invalid(String),

    /// Two rows disagree on a value that must be equal in the whole file.
    #[error("`{}` mixes runs: {column} is {expected} but {found}", path.display())]
    Mixed {
        /// The CSV file.
        path: PathBuf,
        /// The column in question.
        column: &'static str,
        /// Value of one row, and the row.
        expected: String,
        /// Value of the row that differs, and the row.
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
    /// Builds the error of a file: its path, then the fault.
    pub(crate) fn of(path: &Path, fault: impl Display) -> Self {
        Self::Invalid(format!("`{}` {fault}", path.display()))
    }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
