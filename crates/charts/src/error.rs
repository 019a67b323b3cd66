//! Why something cannot be drawn or written.
use std::io;
use std::path::PathBuf;

/// Why something cannot be drawn or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A figure cannot be turned into pixels.
    #[error("cannot draw the figure")]
    Figure(#[source] resvg::usvg::Error),

    /// A figure has no area, or more pixels than fit into memory.
    #[error("cannot draw the figure: it is empty or too large")]
    Size,

    /// The pixels of a figure cannot be written as PNG.
    #[error("cannot write the figure as PNG")]
    Png(#[from] png::EncodingError),

    /// A file or folder cannot be removed.
    #[error("cannot remove `{}`", path.display())]
    Remove {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// A template cannot print what it was given.
    #[error("cannot fill in the template")]
    Template(#[from] minijinja::Error),

    /// A file or folder cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// Where it was to be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
