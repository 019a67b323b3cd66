//! Errors of tests and shards.

/// Reason why rows could not be tested, or shards not joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Stored results, or their statistics, are invalid or do not fit together.
    #[error("{0}")]
    Invalid(String),

    /// A file could not be read or written.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// A statistic could not be computed.
    #[error(transparent)]
    Stats(#[from] stats::Error),
}

impl Error {
    pub(crate) fn of_row(row: &str, fault: impl std::fmt::Display) -> Self {
        Self::Invalid(format!("row `{row}` cannot be tested: {fault}"))
    }
}
