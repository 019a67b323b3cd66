//! The error type.
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Why runs could not be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },

    /// A file has unexpected content, or runs cannot be compared.
    #[error("{0}")]
    Invalid(String),

    /// A statistic could not be computed.
    #[error(transparent)]
    Stats(#[from] stats::Error),

    /// A result file of headcount could not be read.
    #[error(transparent)]
    Stored(#[from] significance::Error),

    /// The page could not be written.
    #[error("{}: {}", .0, .0.source)]
    Write(#[from] durable::Error),

    /// Standard output could not be written.
    #[error(transparent)]
    Print(io::Error),
}

impl Error {
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Read { path: path.to_owned(), source }
    }

    /// Returns a fault in a file.
    pub(crate) fn of(path: &Path, fault: impl Display) -> Self {
        Self::Invalid(format!("`{}`: {fault}", path.display()))
    }

    /// Returns a fault in a line, counted from 1.
    pub(crate) fn of_line(path: &Path, line: usize, fault: impl Display) -> Self {
        Self::of(path, format!("line {line}: {fault}"))
    }
}
