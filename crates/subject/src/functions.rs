//! What experiments on the functions of heads read.
use std::path::PathBuf;

use serde::Deserialize;

use crate::spec::check;

/// Sentences with gold trees, for `head-functions`. They have no influence on training or scores.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FunctionsSpec {
    /// Files in CoNLL-U, plain or gzip, relative to the data folder; they follow each other.
    pub trees: Vec<PathBuf>,
    /// Name for `just fetch`, if they can be fetched.
    pub fetch: Option<String>,
}

impl FunctionsSpec {
    /// Refuses values that make no sense: the fault, in words.
    pub(crate) fn validate(&self) -> Result<(), String> {
        check(&[("functions.trees names no file", !self.trees.is_empty())])
    }
}
