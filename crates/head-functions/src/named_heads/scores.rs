//! Mean attention weights on the positions that define a type of head (Elhage et al. 2021, "A Mathematical Framework for Transformer
//! Circuits", <https://transformer-circuits.pub/2021/framework>; Olsson et al. 2022, <https://arxiv.org/abs/2209.11895>).
//!
//! Baseline: uniform attention over the positions up to the query. Sliding windows narrower than the sequences are not taken into
//! account.
use anyhow::ensure;
use core_masking::HeadId;
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use records::rows::functions::FunctionName;
use stats::ratio::RatioStatistics;
use subject::{Error, Subject, TextAttention, Vocabulary};

/// A sequence of tokens that a model reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// The tokens, including BOS.
    pub tokens: Vec<u32>,
    /// Length of the block that occurs twice; `None` for texts.
    pub block: Option<usize>,
}

/// Attention of each head to the target keys of a score.
#[derive(Debug, Clone)]
pub struct Counts {
    /// The score.
    pub score: FunctionName,
    /// For each head and sequence, the sum of its weights and the number of queries.
    pub heads: Vec<Vec<RatioStatistics>>,
    /// For each sequence, the statistics of uniform attention.
    pub even: Vec<RatioStatistics>,
}

/// Returns repeated random tokens: BOS if the vocabulary has it, then a block of distinct tokens twice. The block's length is limited by
/// the model's positions and vocabulary.
///
/// - `longest`: positions of the model
/// - `count`, `size`: number of sequences, and maximum tokens per block
///
/// # Errors
/// If the vocabulary has fewer than two tokens, or the model too few positions for two blocks of two tokens.
pub fn blocks(
    vocabulary: &Vocabulary,
    longest: usize,
    (count, size): (usize, usize),
    seed: u64,
) -> anyhow::Result<Vec<Sequence>> {
    let Vocabulary { begin, of_text } = vocabulary;
    let least = 4 + usize::from(begin.is_some());
    ensure!(
        longest >= least,
        "the model has {longest} positions, but two blocks of two tokens need {least}, including the BOS token if the model has one"
    );
    ensure!(
        of_text.len() >= 2,
        "the vocabulary is too small: {} tokens are text, but a block needs two",
        of_text.len()
    );
    let size = size.min((longest - usize::from(begin.is_some())) / 2).min(of_text.len());
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut sequence = || {
        let block: Vec<u32> =
            sample(&mut random, of_text.len(), size).iter().map(|place| of_text[place]).collect();
        let tokens = begin.iter().chain(&block).chain(&block).copied().collect();
        Sequence { tokens, block: Some(size) }
    };
    Ok((0..count).map(|_| sequence()).collect())
}

impl Sequence {
    /// Returns the queries of a score, each with its target key.
    fn places(&self, score: FunctionName) -> Vec<(usize, usize)> {
        let length = self.tokens.len();
        let (block, queries) = match self.block {
            Some(block) => (block, length - block..length),
            None => (0, 1..length),
        };
        let key = |query: usize| match score {
            FunctionName::Induction => query - block + 1,
            FunctionName::DuplicateToken => query - block,
            FunctionName::PreviousToken => query - 1,
            _ => 0,
        };
        queries.map(|query| (query, key(query))).collect()
    }
}

/// Computes the counts of each score; sequences are read in batches whose attention is not kept.
pub fn measure(
    subject: &Subject,
    sequences: &[Sequence],
    scores: [FunctionName; 2],
    heads: &[HeadId],
) -> Result<Vec<Counts>, Error> {
    let none = vec![RatioStatistics::default(); sequences.len()];
    let mut all =
        scores.map(|score| Counts { score, heads: vec![none.clone(); heads.len()], even: none.clone() });
    let tokens: Vec<&[u32]> = sequences.iter().map(|sequence| sequence.tokens.as_slice()).collect();
    subject.look(&tokens, &mut |place, attention| {
        for Counts { score, heads: found, even } in &mut all {
            let places = sequences[place].places(*score);
            for (found, &id) in found.iter_mut().zip(heads) {
                found[place] = sum(&places, |query, key| weight(&attention, id, query, key));
            }
            even[place] = sum(&places, |query, _| 1.0 / (query + 1) as f64);
        }
        Ok(())
    })?;
    Ok(all.into())
}

fn weight(attention: &TextAttention, id: HeadId, query: usize, key: usize) -> f64 {
    f64::from(attention.row(id, query)[key])
}

fn sum(places: &[(usize, usize)], weight: impl Fn(usize, usize) -> f64) -> RatioStatistics {
    let numerator = places.iter().map(|&(query, key)| weight(query, key)).sum();
    RatioStatistics { numerator, denominator: places.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FunctionName::{DuplicateToken, Induction, PreviousToken, Sink};

    fn vocabulary(begin: Option<u32>, tokens: std::ops::Range<u32>) -> Vocabulary {
        Vocabulary { begin, of_text: tokens.collect() }
    }

    /// `b x y z x y z`, from 0: the second x is at 4 and the first at 1, followed by y at 2. Without BOS (b) these are the
    /// `key_positions` in `golden/more/ablation.json`.
    #[test]
    fn target_keys_are_the_earlier_occurrence_and_the_token_after_it() {
        let block = Sequence { tokens: vec![9, 1, 2, 3, 1, 2, 3], block: Some(3) };
        assert_eq!(block.places(Induction), [(4, 2), (5, 3), (6, 4)]);
        assert_eq!(block.places(DuplicateToken), [(4, 1), (5, 2), (6, 3)]);
        let text = Sequence { tokens: vec![9, 1, 2], block: None };
        assert_eq!(text.places(PreviousToken), [(1, 0), (2, 1)]);
        assert_eq!(text.places(Sink), [(1, 0), (2, 0)]);
        let even = sum(&text.places(Sink), |query, _| 1.0 / (query + 1) as f64);
        assert_eq!(even, RatioStatistics { numerator: 1.0 / 2.0 + 1.0 / 3.0, denominator: 2.0 });
    }

    #[test]
    fn blocks_are_as_long_as_positions_and_tokens_allow() {
        for (begin, tokens, longest, size) in
            [(Some(0), 1..100, 200, 64), (Some(0), 1..100, 11, 5), (None, 1..8, 200, 7), (None, 5..7, 4, 2)]
        {
            let own = blocks(&vocabulary(begin, tokens.clone()), longest, (50, 64), 1).unwrap();
            for Sequence { tokens: all, block } in &own {
                let (start, said) = all.split_at(usize::from(begin.is_some()));
                let (first, second) = said.split_at(size);
                assert_eq!((start.first(), *block, first), (begin.as_ref(), Some(size), second));
                let distinct: std::collections::BTreeSet<_> = first.iter().collect();
                assert!(distinct.len() == size && first.iter().all(|token| tokens.contains(token)));
            }
            assert_eq!(own, blocks(&vocabulary(begin, tokens), longest, (50, 64), 1).unwrap());
        }
        let [one, two] = [1, 2].map(|seed| blocks(&vocabulary(None, 0..100), 200, (1, 64), seed).unwrap());
        assert_ne!(one, two);
    }

    #[test]
    fn models_without_room_for_two_blocks_are_refused() {
        for (begin, tokens, longest, fault) in [
            (Some(0), 1..9, 4, "the model has 4 positions, but two blocks of two tokens need 5"),
            (None, 1..9, 3, "the model has 3 positions"),
            (None, 1..2, 9, "the vocabulary is too small"),
        ] {
            let message = blocks(&vocabulary(begin, tokens), longest, (50, 64), 1).unwrap_err().to_string();
            assert!(message.starts_with(fault), "{message}");
        }
    }
}
