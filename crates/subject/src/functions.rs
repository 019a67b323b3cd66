//! Settings for experiments on the functions of heads.
use std::path::PathBuf;

use serde::Deserialize;

use corpus::splits::check;

/// Input of `head-functions`. It does not influence training or scores.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FunctionsSpec {
    /// Files of sentences with gold trees in CoNLL-U, plain or gzip, relative to the data folder; they are concatenated.
    pub trees: Option<Vec<PathBuf>>,
    /// Number of most frequent tokens that do not count as rare; defaults to 500, as in the paper.
    pub frequent: Option<usize>,
    /// Name for `just fetch`; absent if the files cannot be fetched.
    pub fetch: Option<String>,
}

impl FunctionsSpec {
    pub(crate) fn validate(&self) -> Result<(), String> {
        let has_trees = self.trees.is_some();
        check(&[
            ("functions.trees names no file", self.trees.as_ref().is_none_or(|trees| !trees.is_empty())),
            ("functions.fetch is for functions.trees", has_trees || self.fetch.is_none()),
            ("[functions] is empty: set trees or frequent", has_trees || self.frequent.is_some()),
        ])
    }
}
