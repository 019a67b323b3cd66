//! Tokenisation and detokenisation of the Moses toolkit (Koehn et al. 2007, <https://aclanthology.org/P07-2045>), with which fairseq's
//! translation models were trained.
//!
//! Gives the results of sacremoses 0.2.0, <https://github.com/hplt-project/sacremoses>; no maintained crate does. English, French, German
//! and Russian are complete. Any other language is treated as sacremoses treats unknown languages, with the abbreviations of English, so
//! results differ for languages that sacremoses knows, such as Czech. Character classes depend on the version of Unicode, in sacremoses on
//! Python's.
mod characters;
mod detokenize;
mod normalize;
mod prefixes;
mod tokenize;

use regex::Regex;

use self::prefixes::Prefixes;

/// Tokenizer and detokenizer of a language.
#[derive(Debug)]
pub struct Moses {
    language: String,
    normalising: Vec<Rule>,
    before_full_stops: Vec<Rule>,
    prefixes: Prefixes,
}

#[derive(Debug)]
struct Rule {
    pattern: Regex,
    replacement: &'static str,
}

impl Moses {
    /// Returns the rules of a language, given by its two-letter code.
    pub fn new(language: &str) -> Self {
        Self {
            language: language.to_owned(),
            normalising: normalize::rules(language),
            before_full_stops: tokenize::rules(language),
            prefixes: Prefixes::of(language),
        }
    }
}

impl Rule {
    /// # Panics
    /// If `pattern` is no regular expression; all patterns are constants of this module.
    fn new(pattern: &str, replacement: &'static str) -> Self {
        Self { pattern: Regex::new(pattern).expect("a pattern of this module"), replacement }
    }
}

fn apply<'a>(rules: impl IntoIterator<Item = &'a Rule>, text: &str) -> String {
    rules
        .into_iter()
        .fold(text.to_owned(), |text, rule| rule.pattern.replace_all(&text, rule.replacement).into_owned())
}

/// Returns true for Python's white space, which has four more control characters than Rust's.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// Python's white space in a bracket expression of a regular expression.
const SPACE: &str = r"\s\x1c-\x1f";

/// Returns the words between white space.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
