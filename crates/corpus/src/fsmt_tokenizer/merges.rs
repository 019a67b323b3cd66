//! `merges.txt`: BPE merges in order of priority.
//!
//! Differs from the BPE of `tokenizers` in two ways. `tokenizers` applies a merge of higher priority as soon as its pair appears, even
//! halfway through the occurrences of another pair; transformers' `FSMTTokenizer` first merges all occurrences of a pair. `tokenizers` also
//! requires all subwords in the vocabulary, but fairseq leaves out rare ones.
use std::collections::HashMap;

use words::excerpt;

/// Suffix of the last subword of a word.
pub(super) const END_OF_WORD: &str = "</w>";

pub(super) struct Merges {
    /// Merges by the subword that they produce.
    ranks: HashMap<String, Vec<Merge>>,
}

struct Merge {
    /// Length of the left subword in bytes.
    left: usize,
    /// Line number; lower ranks are merged first.
    rank: usize,
}

impl Merges {
    /// Parses two subwords per line, after subword-nmt's version line, if present, and followed by fastBPE's counts, if present.
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
            merges.retain(|merge| merge.left != left.len()); // the last of duplicate lines counts
            merges.push(Merge { left: left.len(), rank });
        }
        Ok(Self { ranks })
    }

    /// Returns the subwords of `word`, which ends with [`END_OF_WORD`]; the suffix stays part of the last subword.
    pub(super) fn cut<'a>(&self, word: &'a str) -> impl Iterator<Item = &'a str> {
        let letters = word.strip_suffix(END_OF_WORD).unwrap_or(word);
        // Start of each subword, then the end of the last one.
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

    /// Returns the rank of merging two adjacent subwords; `places` are their starts and the end of the second.
    fn rank(&self, word: &str, places: &[usize]) -> Option<usize> {
        let &[first, second, end] = places else { return None };
        let merges = self.ranks.get(&word[first..end])?;
        merges.iter().find(|merge| merge.left == second - first).map(|merge| merge.rank)
    }
}
