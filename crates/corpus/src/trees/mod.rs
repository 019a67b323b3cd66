//! Sentences with gold dependency trees, from CoNLL-U files and from the demo grammar.
mod conllu;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::grammar::Sample;

pub use conllu::read;

/// A sentence as written, with dependencies between its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The sentence.
    pub text: String,
    /// Byte ranges of the words, in order; punctuation marks are words too.
    pub words: Vec<Range<usize>>,
    /// Dependencies between these words.
    pub arcs: Vec<TreeArc>,
}

/// A dependency between two words, which are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeArc {
    /// The syntactic head.
    pub head: usize,
    /// The dependent word.
    pub dependent: usize,
    /// Relation, named as in Universal Dependencies, such as `nsubj`.
    pub relation: String,
}

/// Punctuation marks at the end of the grammar's sentences.
const MARKS: [char; 2] = ['.', '?'];

impl From<&Sample> for Tree {
    /// Takes the source sentence; its final punctuation becomes a word without an arc.
    fn from(sample: &Sample) -> Self {
        let text = &sample.source;
        let mut words = Vec::new();
        let mut start = 0;
        for word in text.split(' ') {
            words.push(start..start + word.trim_end_matches(MARKS).len());
            start += word.len() + 1;
        }
        if text.ends_with(MARKS) {
            words.push(text.len() - 1..text.len());
        }
        let arc = |arc: &crate::grammar::Arc| TreeArc {
            head: arc.head,
            dependent: arc.dependent,
            relation: arc.relation.name().to_owned(),
        };
        Self { text: text.clone(), words, arcs: sample.arcs.iter().map(arc).collect() }
    }
}
