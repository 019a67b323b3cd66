//! Fault of something that cannot be drawn or written.

/// Fault of something that cannot be drawn or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A figure cannot be turned into pixels, or these not into a PNG file.
    #[error("cannot draw the figure")]
    Figure(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// A template cannot print what it was given.
    #[error("cannot fill in the template")]
    Template(#[from] minijinja::Error),

    /// A file cannot be written or removed.
    #[error(transparent)]
    Write(#[from] durable::Error),
}
