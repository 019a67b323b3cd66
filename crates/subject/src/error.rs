//! Errors of setups, training and scoring.
use std::io;
use std::path::{Path, PathBuf};

/// Why a setup could not be opened, trained or scored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A data set or a tokeniser is invalid.
    #[error(transparent)]
    Corpus(#[from] corpus::Error),

    /// A file could not be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },

    /// A head has an invalid name or does not exist in the model.
    #[error(transparent)]
    Heads(#[from] heads::Error),

    /// All other faults; the message contains what is wrong, where, and what is allowed.
    #[error("{0}")]
    Invalid(String),

    /// A checkpoint is invalid.
    #[error(transparent)]
    Model(#[from] core_masking::Error),

    /// A split does not exist.
    #[error("no split `{split}`: this setup has {}{}", known.join(", "), words::did_you_mean(split, known.iter().map(String::as_str)))]
    NoSuchSplit {
        /// The requested name.
        split: String,
        /// Names of the existing splits.
        known: Vec<String>,
    },

    /// A result file is invalid.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// A score could not be computed.
    #[error(transparent)]
    Statistics(#[from] stats::Error),

    /// Training failed, or the device cannot be used.
    #[error(transparent)]
    Training(#[from] training::Error),
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::File { action: "write", path, source }
    }
}

impl Error {
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::File { action: "read", path: path.to_owned(), source }
    }

    /// A fault in a file or a folder.
    pub(crate) fn at(path: &Path, fault: impl std::fmt::Display) -> Self {
        Self::Invalid(format!("`{}`: {fault}", path.display()))
    }

    /// Logits or derivatives overflowed.
    pub(crate) fn not_finite() -> Self {
        let what = "the model's logits or their derivatives are not finite";
        Self::Invalid(format!("{what}: the weights or bf16 overflow on this data"))
    }

    /// The model is not trained here.
    pub(crate) fn not_trained(name: &str) -> Self {
        let why = "its model is a checkpoint that is used unchanged";
        Self::Invalid(format!("the model of setup `{name}` is not trained: {why}"))
    }

    /// The split has no questions with two choices that differ in a token.
    pub(crate) fn no_contrasts(split: &str) -> Self {
        Self::Invalid(format!(
            "logit attribution needs questions for a language model with two choices that differ in a token, but split `{split}` \
             has none"
        ))
    }

    pub(crate) fn one_text() -> Self {
        Self::Invalid("a language model reads one text, not two".to_owned())
    }

    /// Relevance propagation does not support the model.
    pub(crate) fn no_relevance() -> Self {
        let why = "norms before each block, rotary positions and gated feed-forward networks, its source has no rules";
        let what = "relevance propagation supports only translators and text classifiers";
        Self::Invalid(format!("{what}: for language models, with {why}"))
    }
}

pub(crate) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
