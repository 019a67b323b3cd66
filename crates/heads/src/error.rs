//! Faults of names of heads.
use crate::names::UnknownName;

/// Reason why a name is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that is no head, a head named twice, or one that cannot be taken from the model; the message gives the valid range.
    #[error("{0}")]
    Head(String),

    /// A name that is none of those allowed.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
}
