//! Errors between a subject's TOML file and its scores.
use std::io;
use std::path::{Path, PathBuf};

/// Why a subject could not be opened, trained or scored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A data set or a tokeniser is at fault.
    #[error(transparent)]
    Corpus(#[from] corpus::Error),

    /// A file that cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// A name of heads, or a head that the model does not have.
    #[error(transparent)]
    Heads(#[from] heads::Error),

    /// Anything else that is not as it must be: what, where, and what is allowed.
    #[error("{0}")]
    Invalid(String),

    /// A checkpoint is at fault.
    #[error(transparent)]
    Model(#[from] core_masking::Error),

    /// No split of that name.
    #[error("no split `{split}`: this setup has {}{}", known.join(", "), words::did_you_mean(split, known.iter().map(String::as_str)))]
    NoSuchSplit {
        /// The name.
        split: String,
        /// Names of the splits that there are.
        known: Vec<String>,
    },

    /// A result file is at fault.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// A score could not be computed.
    #[error(transparent)]
    Statistics(#[from] stats::Error),

    /// The model could not be trained, or the machine is at fault.
    #[error(transparent)]
    Training(#[from] training::Error),
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::File { action: "write", path, source }
    }
}

impl Error {
    /// A file that cannot be read.
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::File { action: "read", path: path.to_owned(), source }
    }

    /// A file or a folder with a fault.
    pub(crate) fn at(path: &Path, fault: impl std::fmt::Display) -> Self {
        Self::Invalid(format!("`{}`: {fault}", path.display()))
    }

    /// Logits, or derivatives, beyond the range of numbers.
    pub(crate) fn not_finite() -> Self {
        let what = "the model's logits or their derivatives are not finite";
        Self::Invalid(format!("{what}: the weights or bf16 overflow on this data"))
    }

    /// A subject that is nothing to train.
    pub(crate) fn not_trained(name: &str) -> Self {
        let why = "its model is a checkpoint that is taken as it is";
        Self::Invalid(format!("subject `{name}` is not trained: {why}"))
    }

    /// A split without choices of two that differ in a token.
    pub(crate) fn no_contrasts(split: &str) -> Self {
        Self::Invalid(format!(
            "logits are attributed to heads in questions of a language model with two choices that differ in a token, and split `{split}` \
             has none"
        ))
    }

    /// A second text for a language model.
    pub(crate) fn one_text() -> Self {
        Self::Invalid("a language model reads one text, not a second one".to_owned())
    }

    /// A model through which relevance cannot be followed.
    pub(crate) fn no_relevance() -> Self {
        let why = "norms before each block, rotary positions and products of gates, its source has no rules";
        let what = "relevance is followed through translators and classifiers of texts alone";
        Self::Invalid(format!("{what}: for language models, with {why}"))
    }
}

/// Names as messages show them.
pub(crate) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
