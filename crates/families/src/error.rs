//! Errors between a checkpoint folder and a forward pass.
use std::path::{Path, PathBuf};

use words::excerpt;

/// Reason why a model could not be loaded, saved or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant names its fields")]
pub enum Error {
    /// A file that no model can be built from.
    #[error("`{}`: {fault}", path.display())]
    File { path: PathBuf, fault: String },

    /// A head that does not exist, or similar.
    #[error(transparent)]
    Heads(#[from] heads::Error),

    /// An input or a request that this model does not support.
    #[error("{0}")]
    Input(String),

    /// Finite weights with infinite or NaN results.
    #[error("the model computes NaN: its weights are too large for the precision")]
    NotANumber,

    /// A file that could not be read.
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },

    /// A file that could not be written.
    #[error("cannot write `{}`", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

impl Error {
    /// Makes an error about a file.
    pub fn file(path: &Path, fault: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), fault: fault.into() }
    }

    /// Makes an error about a tensor, whose name comes from the file.
    pub fn tensor(path: &Path, name: &str, fault: &str) -> Self {
        Self::file(path, format!("tensor `{}` {fault}", excerpt(name)))
    }

    /// Makes an error about unexpected JSON, in one line without the file's control characters.
    pub fn json(path: &Path, fault: &serde_json::Error) -> Self {
        Self::file(path, format!("cannot parse it: {}", excerpt(&fault.to_string())))
    }

    /// Makes an error about an input of `length` tokens, such as a `text`, with too few positions for it.
    pub fn too_long(input: &str, length: usize, positions: usize) -> Self {
        Self::Input(format!(
            "a {input} of {length} tokens is longer than the {positions} positions of the model"
        ))
    }

    /// Makes an error about a `token` or `segment` for which the embeddings have no row.
    pub fn out_of_table(what: &str, id: u32, rows: i64) -> Self {
        Self::Input(format!("{what} {id} is outside the embeddings, which have {rows} rows"))
    }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
