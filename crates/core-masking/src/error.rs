//! What can go wrong between a checkpoint folder and a forward pass.
use std::path::PathBuf;

use words::excerpt;

use crate::HeadId;

/// Why a model could not be loaded, saved or asked for a head.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant names its fields")]
pub enum Error {
    /// A checkpoint with two names for one tensor.
    #[error("`{}` holds both `{}` and `{}`, which mean one tensor", path.display(), excerpt(first), excerpt(second))]
    AmbiguousTensor { path: PathBuf, first: String, second: String },

    /// A configuration, or a checkpoint, that no model can be built from.
    #[error("`{}`: {fault}", path.display())]
    Config { path: PathBuf, fault: String },

    /// A checkpoint that is no safetensors file, or a torn one.
    #[error("`{}` is not a complete safetensors file", path.display())]
    Format { path: PathBuf, source: safetensors::SafeTensorError },

    /// A configuration that is not the JSON that was expected.
    #[error("cannot understand `{}`", path.display())]
    Json { path: PathBuf, source: serde_json::Error },

    /// A tensor that the configuration asks for and the checkpoint lacks.
    #[error("`{}` lacks tensor `{name}`", path.display())]
    MissingTensor { path: PathBuf, name: String },

    /// A head is at fault.
    #[error(transparent)]
    Heads(#[from] heads::Error),

    /// A model does not obey its gates.
    #[error(
        "masking head {id} is not the same as zeros in its columns of the output projection: the outputs differ by {gap:e} of \
         the greatest, so this model is read wrongly"
    )]
    GatesFail {
        /// The head that was masked.
        id: HeadId,
        /// As a share of the greatest output.
        gap: f64,
    },

    /// A model whose numbers are finite and whose results are not.
    #[error("the model computes NaN: its weights are too large for the precision")]
    NotANumber,

    /// A model whose layers relevance has no rules for.
    #[error(
        "relevance has rules for layers with normalisation behind each sublayer alone, and `{family}` has others"
    )]
    NoRelevance { family: &'static str },

    /// A removal that leaves no model of the same kind.
    #[error("what is left is no smaller model of the same kind: {fault}")]
    NotUniform { fault: String },

    /// A checkpoint with a value that no training should leave behind.
    #[error("`{}`: tensor `{}` holds NaN or infinite values", path.display(), excerpt(name))]
    NotFinite { path: PathBuf, name: String },

    /// A token or segment that the embeddings have no row for.
    #[error("{what} {id} lies outside the embeddings, which have {size} rows")]
    OutOfTable { what: &'static str, id: u32, size: i64 },

    /// A file that could not be read.
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },

    /// A checkpoint tensor that does not fit the configuration.
    #[error("`{}`: tensor `{name}` is {}, but the configuration asks for {expected:?}", path.display(), excerpt(&format!("{found:?}")))]
    Shape { path: PathBuf, name: String, expected: Vec<i64>, found: Vec<i64> },

    /// A tensor that should be a copy of another, or of a table, and is not.
    #[error("`{}`: tensor `{name}` is not {of}, and untied tensors are not supported", path.display())]
    Tied { path: PathBuf, name: String, of: String },

    /// A sentence that the model has no positions for.
    #[error("a {side} of {length} tokens is longer than the {positions} positions of the model")]
    TooLong { side: &'static str, length: usize, positions: usize },

    /// A tensor in the checkpoint that the model has no place for.
    #[error("`{}` holds tensor `{}`, which this model has no place for", path.display(), excerpt(name))]
    UnexpectedTensor { path: PathBuf, name: String },

    /// A file that could not be written.
    #[error("cannot write `{}`", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
