//! `merges.txt`: which pieces of a word are joined; earlier lines go first.
//!
//! This is not the BPE of `tokenizers`, which differs in two ways. It joins a pair of an earlier line as soon as one
//! appears, even halfway through the occurrences of another pair; transformers' `FSMTTokenizer` joins all occurrences of
//! a pair before it looks for the next. And it needs every piece in the vocabulary, but fairseq leaves out rare ones.
use std::collections::HashMap;

use words::excerpt;

/// The ending of the last piece of a word.
pub(super) const END_OF_WORD: &str = "</w>";

pub(super) struct Merges {
    /// The merges, by the piece that they make.
    ranks: HashMap<String, Vec<Merge>>,
}

struct Merge {
    /// Length of the left piece in bytes.
    left: usize,
    /// The line number; lower ones go first.
    rank: usize,
}

impl Merges {
    /// Reads two pieces per line. subword-nmt puts its version above them, fastBPE a number after each. The error says
    /// what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut ranks: HashMap<String, Vec<Merge>> = HashMap::new();
        for (rank, line) in text.lines().enumerate() {
            if line.is_empty() || rank == 0 && line.starts_with("#version:") {
                continue;
            }
            let pieces: Vec<&str> = line.split(' ').collect();
            let ([left, right] | [left, right, _]) = pieces[..] else {
                let (line, number) = (excerpt(line), rank + 1);
                return Err(format!("line {number}: `{line}` is not two pieces with a space between them"));
            };
            let merges = ranks.entry(format!("{left}{right}")).or_default();
            merges.retain(|merge| merge.left != left.len()); // of equal lines the last one counts
            merges.push(Merge { left: left.len(), rank });
        }
        Ok(Self { ranks })
    }

    /// The pieces of a word. It ends with [`END_OF_WORD`], which stays part of the last piece.
    pub(super) fn cut<'a>(&self, word: &'a str) -> impl Iterator<Item = &'a str> {
        let letters = word.strip_suffix(END_OF_WORD).unwrap_or(word);
        // Where each piece begins, then where the last one ends.
        let mut places: Vec<usize> =
            letters.char_indices().map(|(place, _)| place).chain([word.len()]).collect();
        while let Some(best) = places.windows(3).filter_map(|places| self.rank(word, places)).min() {
            let mut merged = Vec::with_capacity(places.len());
            let mut at = 0;
            while at < places.len() {
                merged.push(places[at]);
                let is_best = places.get(at..at + 3).and_then(|places| self.rank(word, places)) == Some(best);
                at += if is_best { 2 } else { 1 };
            }
            places = merged;
        }
        (1..places.len()).map(move |at| &word[places[at - 1]..places[at]])
    }

    /// The rank of the merge of two adjacent pieces, given where they begin and end.
    fn rank(&self, word: &str, places: &[usize]) -> Option<usize> {
        let &[first, second, end] = places else { return None };
        let merges = self.ranks.get(&word[first..end])?;
        merges.iter().find(|merge| merge.left == second - first).map(|merge| merge.rank)
    }
}
