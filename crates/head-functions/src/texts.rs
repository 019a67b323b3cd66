//! Sentences to analyse, and frequencies of tokens.
use std::path::PathBuf;

use anyhow::{Context, bail};
use corpus::placed::PlacedToken;
use corpus::trees::{self, Tree};
use sha2::{Digest, Sha256};
use subject::{Description, Error, Subject, TextInput};
use training::Machine;

use crate::rare::Ranks;
use crate::sentence::Sentence;

/// Name in signatures for sentences from tree files.
pub const TREES: &str = "trees";

/// Sentences with or without trees.
#[derive(Debug)]
pub struct Texts {
    /// Their source in signatures: a split, or [`TREES`].
    pub source: String,
    /// True if a file or the grammar provides their trees.
    pub has_trees: bool,
    /// The sentences; without trees they have no words.
    pub trees: Vec<Tree>,
}

impl Texts {
    /// Reads sentences from tree files, or else from a split of the setup, which has trees if the demo grammar generates it.
    ///
    /// - `files`: tree files from the arguments; if empty and `split` is `None`, the setup's files are read
    pub fn read(
        files: &[PathBuf],
        split: Option<&str>,
        description: &Description,
        machine: &Machine,
    ) -> anyhow::Result<Self> {
        let named = if files.is_empty() && split.is_none() {
            description.tree_files(machine)?
        } else {
            files.to_owned()
        };
        if !named.is_empty() {
            let read = named.iter().map(|file| trees::read(file)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Self { source: TREES.to_owned(), has_trees: true, trees: read.concat() });
        }
        let split = description.split(split, machine)?;
        let trees = match description.trees(&split) {
            Some(trees) => return Ok(Self { source: split, has_trees: true, trees }),
            None => description.sentences(&split, machine)?.into_iter().map(without_words),
        };
        Ok(Self { source: split, has_trees: false, trees: trees.collect() })
    }

    /// Returns the SHA-256 of the sentences and their arcs, in lower-case hexadecimal.
    pub fn sha256(&self) -> String {
        let mut hasher = Sha256::new();
        for Tree { text, words, arcs } in &self.trees {
            add(&mut hasher, text);
            words.iter().for_each(|word| add(&mut hasher, &format!("{word:?}")));
            arcs.iter().for_each(|arc| add(&mut hasher, &format!("{arc:?}")));
        }
        format!("{:x}", hasher.finalize())
    }
}

fn without_words(text: String) -> Tree {
    Tree { text, words: Vec::new(), arcs: Vec::new() }
}

/// Hashes a text after its length, since texts may contain any character.
fn add(hasher: &mut Sha256, part: &str) {
    hasher.update(part.len().to_le_bytes());
    hasher.update(part);
}

/// Tokenized sentences, and how many could not be used.
pub struct Readable {
    /// Sentences that it can read.
    pub sentences: Vec<Sentence>,
    /// Number of sentences without tokens, which are left out.
    pub empty: usize,
    /// Number of sentences longer than the model's positions, which are left out.
    pub too_long: usize,
    /// Number of sentences that the tokenizer truncated to the model's length.
    pub truncated: usize,
}

/// Tokenizes sentences.
///
/// # Errors
/// If the tokenizer gives no offsets, or no sentence fits the model.
pub fn cut(trees: &[Tree], subject: &Subject, input: &TextInput) -> anyhow::Result<Readable> {
    let mut found = Readable { sentences: Vec::new(), empty: 0, too_long: 0, truncated: 0 };
    for tree in trees {
        let tokens = subject.place(&tree.text)?;
        if tokens.iter().all(|token| token.bytes.is_none()) {
            found.empty += 1;
        } else if tokens.len() > input.longest {
            found.too_long += 1;
        } else {
            found.truncated += usize::from(is_truncated(&tree.text, &tokens, input.longest));
            found.sentences.push(Sentence::new(tree, &tokens, input));
        }
    }
    if found.sentences.is_empty() {
        bail!(
            "all {} sentences are empty or longer than the model's {} positions",
            trees.len(),
            input.longest
        );
    }
    Ok(found)
}

/// Returns true if the tokenizer truncated a text to the maximum length: its start or end has no token.
fn is_truncated(text: &str, tokens: &[PlacedToken], longest: usize) -> bool {
    let places = || tokens.iter().filter_map(|token| token.bytes.as_ref());
    let written = text.len() - text.trim_start().len()..text.trim_end().len();
    tokens.len() == longest
        && (places().all(|bytes| bytes.start > written.start)
            || places().all(|bytes| bytes.end < written.end))
}

/// Token frequencies with their source.
pub struct Frequencies {
    pub split: String,
    pub sha256: String,
    pub ranks: Ranks,
}

/// Reads the texts to count frequencies on: from the split `wanted`, or else from the training split if the setup has one.
pub fn frequencies(
    wanted: Option<&str>,
    description: &Description,
    machine: &Machine,
) -> anyhow::Result<Option<(String, Vec<String>)>> {
    const NONE: &str = "none";
    let split = match wanted {
        Some(NONE) => return Ok(None),
        Some(split) => split,
        None => description.train_split(),
    };
    match (description.sentences(split, machine), wanted) {
        (Ok(texts), _) => Ok(Some((split.to_owned(), texts))),
        (Err(Error::NoSuchSplit { .. }), None) => {
            let hint = "rare tokens are left out: there is no training split to count them on; --frequencies names another";
            if !machine.quiet {
                words::say!("{hint}");
            }
            Ok(None)
        }
        (Err(error), _) => Err(error).context(
            "token frequencies are counted on the training split or the split of --frequencies; `--frequencies none` leaves out \
             rare tokens",
        ),
    }
}

/// Counts the tokens of texts.
pub fn count(split: String, texts: &[String], subject: &Subject) -> anyhow::Result<Frequencies> {
    let (mut tokens, mut hasher) = (Vec::new(), Sha256::new());
    for text in texts {
        add(&mut hasher, text);
        let placed = subject.place(text)?.into_iter();
        tokens.extend(placed.filter(|token| token.bytes.is_some()).map(|token| token.id));
    }
    Ok(Frequencies { split, sha256: format!("{:x}", hasher.finalize()), ranks: Ranks::count(tokens.iter()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "old dogs" between two special symbols, with room for four tokens; surrounding spaces have no token.
    #[test]
    fn a_text_is_truncated_where_characters_have_no_token() {
        let token = |bytes| PlacedToken { id: 5, bytes: Some(bytes) };
        let around = |inner: &[std::ops::Range<usize>]| {
            let symbol = std::iter::once(PlacedToken::symbol(0));
            symbol.clone().chain(inner.iter().cloned().map(token)).chain(symbol).collect::<Vec<_>>()
        };
        let whole = around(&[1..4, 5..9]);
        assert!(!is_truncated(" old dogs ", &whole, 4));
        assert!(is_truncated(" old dogs bark", &whole, 4), "its end is cut off");
        assert!(is_truncated("x old dogs", &around(&[2..5, 6..10]), 4), "its start is cut off");
        assert!(!is_truncated(" old dogs \u{200b}x", &whole, 9), "there was room for more");
    }
}
