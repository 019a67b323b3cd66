//! Faults of names of heads.
use crate::names::UnknownName;

/// Reason why a name is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Heads to be removed that are all there are.
    #[error("no head would be left in the model")]
    NoHeadLeft,

    /// A text that is no head, a head named twice, or one that the model does not have; the message gives the valid range.
    #[error("{0}")]
    Head(String),

    /// A name that is none of those allowed.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
}
