//! The error type.

/// Why something could not be drawn or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A figure could not be rasterised or encoded as PNG.
    #[error("cannot draw the figure")]
    Figure(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// A template could not render its values.
    #[error("cannot fill in the template")]
    Template(#[from] minijinja::Error),

    /// A file could not be written or removed.
    #[error(transparent)]
    Write(#[from] durable::Error),
}
