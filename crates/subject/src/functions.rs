//! What experiments on the functions of heads read.
use std::path::PathBuf;

use serde::Deserialize;

use corpus::splits::check;

/// What `head-functions` looks at. It has no influence on training or scores.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_and_the_number_of_frequent_tokens_can_be_given_alone() {
        let fault = |text: &str| toml::from_str::<FunctionsSpec>(text).unwrap().validate().err();
        assert_eq!(fault("frequent = 0"), None);
        assert_eq!(fault("trees = ['a.conllu']\nfetch = 'a'"), None);
        assert_eq!(fault("frequent = 9\ntrees = []").unwrap(), "functions.trees names no file");
        assert_eq!(fault("frequent = 9\nfetch = 'a'").unwrap(), "functions.fetch is for functions.trees");
        assert_eq!(fault("").unwrap(), "[functions] says nothing: give trees or frequent");
        assert!(toml::from_str::<FunctionsSpec>("frequent = -1").is_err());
    }
}
