//! Which sentences heads are looked at in, and where the frequencies of tokens come from.
use std::path::PathBuf;

use anyhow::{Context, bail};
use corpus::trees::{self, Tree};
use sha2::{Digest, Sha256};
use subject::{Description, Error, Reading, Subject};
use training::Machine;

use crate::rare::Ranks;
use crate::sentence::Sentence;

/// What signatures call sentences that come from files of trees.
pub const TREES: &str = "trees";

/// Sentences, with trees or without.
#[derive(Debug)]
pub struct Texts {
    /// What signatures call where they come from: a split, or [`TREES`].
    pub source: String,
    /// Whether a file or the grammar gives their trees.
    pub has_trees: bool,
    /// The sentences; without trees they have no words.
    pub trees: Vec<Tree>,
}

impl Texts {
    /// Those of files of trees, or else of a split of the subject, whose trees are known if the grammar makes it.
    ///
    /// - `files`: that were asked for; those that the subject's file names if there are none and no split is asked for
    ///
    /// # Errors
    /// If there is no such split, or a file is missing or at fault.
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

    /// SHA-256 of the sentences and their arcs, in lower-case hexadecimal.
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

/// With its length, since texts may hold any character.
fn add(hasher: &mut Sha256, part: &str) {
    hasher.update(part.len().to_le_bytes());
    hasher.update(part);
}

/// Sentences as the model reads them.
pub struct Readable {
    /// Those that it can read.
    pub sentences: Vec<Sentence>,
    /// Number of those that are longer than its positions.
    pub too_long: usize,
}

/// Cuts sentences into tokens.
///
/// # Errors
/// If the tokeniser does not know where tokens stand, or no sentence is short enough for the model.
pub fn cut(trees: &[Tree], subject: &dyn Subject, reading: &Reading) -> anyhow::Result<Readable> {
    let mut sentences = Vec::new();
    for tree in trees {
        let tokens = subject.place(&tree.text)?;
        if !tokens.is_empty() && tokens.len() <= reading.longest {
            sentences.push(Sentence::new(tree, &tokens, reading));
        }
    }
    if sentences.is_empty() {
        bail!(
            "all {} sentences are empty, or longer than the {} positions of the model",
            trees.len(),
            reading.longest
        );
    }
    Ok(Readable { too_long: trees.len() - sentences.len(), sentences })
}

/// How frequent tokens are, and what that depends on.
pub struct Frequencies {
    pub split: String,
    pub sha256: String,
    pub ranks: Ranks,
}

/// What frequencies are counted on: `wanted`, or the training split, if there is one.
///
/// # Errors
/// If that cannot be read.
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
            let hint = "rare tokens are left out: no training split to count them on, --frequencies may name another";
            if !machine.quiet {
                eprintln!("{hint}");
            }
            Ok(None)
        }
        (Err(error), _) => Err(error).context(
            "the frequencies of tokens are counted on the training split, or on that of --frequencies; `none` leaves rare tokens out",
        ),
    }
}

/// Counts the tokens of texts.
///
/// # Errors
/// If the tokeniser cannot take one.
pub fn count(split: String, texts: &[String], subject: &dyn Subject) -> anyhow::Result<Frequencies> {
    let (mut tokens, mut hasher) = (Vec::new(), Sha256::new());
    for text in texts {
        add(&mut hasher, text);
        let placed = subject.place(text)?.into_iter();
        tokens.extend(placed.filter(|token| token.bytes.is_some()).map(|token| token.id));
    }
    Ok(Frequencies { split, sha256: format!("{:x}", hasher.finalize()), ranks: Ranks::count(tokens.iter()) })
}
