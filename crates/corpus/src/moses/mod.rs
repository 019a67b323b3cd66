//! Words and punctuation as the Moses toolkit splits and joins them (Koehn et al. 2007,
//! <https://aclanthology.org/P07-2045>): what translators of fairseq were trained on.
//!
//! After sacremoses 0.2.0, <https://github.com/hplt-project/sacremoses>, whose results these are; no kept crate does
//! the same. English, French, German and Russian are done in full. Any other language is treated as sacremoses treats
//! those that it does not know, with the abbreviations of English; one that it knows, such as Czech, comes out otherwise
//! here. What a character is may depend on the version of Unicode: there, on Python's.
mod characters;
mod detokenize;
mod normalize;
mod prefixes;
mod tokenize;

use regex::Regex;

use self::prefixes::Prefixes;

/// Splits and joins the words of a language.
#[derive(Debug)]
pub struct Moses {
    language: String,
    normalising: Vec<Rule>,
    before_full_stops: Vec<Rule>,
    prefixes: Prefixes,
}

/// A pattern and its replacement.
#[derive(Debug)]
struct Rule {
    pattern: Regex,
    replacement: &'static str,
}

impl Moses {
    /// The rules of a language, by its code in two letters.
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
    /// If `pattern` is no regular expression; all of them stand in this module.
    fn new(pattern: &str, replacement: &'static str) -> Self {
        Self { pattern: Regex::new(pattern).expect("a pattern of this module"), replacement }
    }
}

/// `text` after one rule after the other.
fn apply<'a>(rules: impl IntoIterator<Item = &'a Rule>, text: &str) -> String {
    rules
        .into_iter()
        .fold(text.to_owned(), |text, rule| rule.pattern.replace_all(&text, rule.replacement).into_owned())
}

/// Returns true if Python takes it for white space: four control characters more than Rust does.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// The same in a bracket of a regular expression.
const SPACE: &str = r"\s\x1c-\x1f";

/// Words between white space.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
