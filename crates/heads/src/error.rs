//! Errors about names of heads.
use crate::names::UnknownName;

/// Reason why a name is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that is not a head, a duplicate head, or a head that cannot be removed; the message gives the valid range.
    #[error("{0}")]
    Head(String),

    /// A name that is not allowed.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
}
