//! Faults between a checkpoint folder and a forward pass.
use std::path::{Path, PathBuf};

use words::excerpt;

/// Reason why a model could not be loaded, saved or asked for something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant names its fields")]
pub enum Error {
    /// A file that no model can be built from.
    #[error("`{}`: {fault}", path.display())]
    File { path: PathBuf, fault: String },

    /// A head is at fault.
    #[error(transparent)]
    Heads(#[from] heads::Error),

    /// An input or a request that this model cannot serve.
    #[error("{0}")]
    Input(String),

    /// A model whose numbers are finite and whose results are not.
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
    /// A fault of a file.
    pub fn file(path: &Path, fault: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), fault: fault.into() }
    }

    /// A fault of one tensor of a file; its name comes from there.
    pub fn tensor(path: &Path, name: &str, fault: &str) -> Self {
        Self::file(path, format!("tensor `{}` {fault}", excerpt(name)))
    }

    /// JSON that is not what was expected, without control characters of the file and not longer than a line.
    pub fn json(path: &Path, fault: &serde_json::Error) -> Self {
        Self::file(path, format!("cannot understand it: {}", excerpt(&fault.to_string())))
    }

    /// An input of `length` tokens, such as a `text`, that the model has no positions for.
    pub fn too_long(input: &str, length: usize, positions: usize) -> Self {
        Self::Input(format!(
            "a {input} of {length} tokens is longer than the {positions} positions of the model"
        ))
    }

    /// A number of a `token` or `segment` that the embeddings have no row for.
    pub fn out_of_table(what: &str, id: u32, rows: i64) -> Self {
        Self::Input(format!("{what} {id} lies outside the embeddings, which have {rows} rows"))
    }
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
