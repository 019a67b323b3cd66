//! Sentences with trees, for experiments on the functions of heads.
use std::path::PathBuf;

use serde::Deserialize;

use corpus::splits::check;

/// Input of `head-functions`. It has no influence on training or scores.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FunctionsSpec {
    /// Files of sentences with gold trees in CoNLL-U, plain or gzip, relative to the data folder; they follow each other.
    pub trees: Option<Vec<PathBuf>>,
    /// Most frequent tokens that are not rare; 500, as in the paper, if absent.
    pub frequent: Option<usize>,
    /// Name for `just fetch`, if they can be fetched.
    pub fetch: Option<String>,
}

impl FunctionsSpec {
    /// Refuses values that make no sense: the fault, in words.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let has_trees = self.trees.is_some();
        check(&[
            ("functions.trees names no file", self.trees.as_ref().is_none_or(|trees| !trees.is_empty())),
            ("functions.fetch is for functions.trees", has_trees || self.fetch.is_none()),
            ("[functions] says nothing: give trees or frequent", has_trees || self.frequent.is_some()),
        ])
    }
}
