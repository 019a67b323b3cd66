//! Heads that attend to the rarest token: Voita et al. (2019), Section 5.3.
//!
//! Among sentences whose rarest token is not among the 500 most frequent, measures the share in which most queries have their maximum
//! weight on that token, or on one of the two rarest. Queries and keys are text tokens only.
//!
//! Differs from the paper, which does not mention special tokens: the maximum is taken over text tokens. Many heads give most of their
//! attention to `</s>` or `[SEP]` as a default; they are judged by the rest.
//!
//! Differs from the paper, which analyses encoders: a query of a decoder sees no later token, so its target is the rarest token that it
//! sees. A query that sees only target tokens has no choice and is not counted. The paper sets no threshold. Here it is what the paper
//! reports for all its models: more than half of the sentences for the two rarest tokens. The share must also exceed the share for shuffled
//! targets, because in short sentences chance alone can reach half.
use std::collections::{BTreeSet, HashMap};

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use stats::ratio::RatioStatistics;

use crate::attention::SentenceAttention;
use crate::sentence::Sentence;

/// Shuffles per sentence, to measure chance.
const SHUFFLES: u64 = 20;

/// Frequency ranks of tokens.
#[derive(Debug, Clone, Default)]
pub struct Ranks(HashMap<u32, usize>);

impl Ranks {
    /// Ranks the tokens of texts; of equally frequent tokens the smaller id comes first.
    pub fn count<'a>(tokens: impl Iterator<Item = &'a u32>) -> Self {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for &token in tokens {
            *counts.entry(token).or_default() += 1;
        }
        let mut order: Vec<(u32, usize)> = counts.into_iter().collect();
        order.sort_unstable_by_key(|&(token, count)| (std::cmp::Reverse(count), token));
        Self(order.into_iter().enumerate().map(|(rank, (token, _))| (token, rank)).collect())
    }

    /// Returns the rank of a token, 0 for the most frequent. Tokens that never occur follow in the order of their ids.
    fn rank(&self, token: u32) -> usize {
        self.0.get(&token).copied().unwrap_or(self.0.len() + token as usize)
    }
}

/// Rule for which tokens count as rare, and the number of targets.
#[derive(Debug, Clone, Copy)]
pub struct Rarity<'a> {
    pub ranks: &'a Ranks,
    /// Number of most frequent tokens, which are not rare.
    pub frequent: usize,
    /// Number of a sentence's rarest tokens that are targets.
    pub rarest: usize,
}

impl Rarity<'_> {
    /// Returns true if a sentence counts: its rarest token is rare, and it has more distinct tokens than targets.
    pub fn is_in(&self, sentence: &Sentence) -> bool {
        let rank = |place: usize| self.ranks.rank(sentence.tokens[place]);
        let kinds: BTreeSet<usize> = sentence.text().map(rank).collect();
        kinds.len() > self.rarest && kinds.last().is_some_and(|&rank| rank >= self.frequent)
    }
}

/// Targets of one sentence.
pub struct RareTargets {
    /// Queries that count, with their targets, first for the sentence itself and then for each of its shuffles.
    shuffles: Vec<Vec<Query>>,
}

struct Query {
    place: usize,
    /// For each key, whether it is a target.
    is_target: Vec<bool>,
}

/// Whether most queries of a head hit a target in one sentence, and how often by chance.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RareCounts {
    /// In the sentence itself.
    pub hit: RatioStatistics,
    /// Mean over its shuffles.
    pub expected: f64,
}

impl RareTargets {
    /// Returns the targets of a sentence; `None` if it does not [count](Rarity::is_in).
    ///
    /// - `random`: draws the shuffles
    pub fn new(sentence: &Sentence, rarity: &Rarity<'_>, random: &mut ChaCha8Rng) -> Option<Self> {
        if !rarity.is_in(sentence) {
            return None;
        }
        let &Rarity { ranks, rarest, .. } = rarity;
        let places: Vec<usize> = sentence.text().collect();
        let mut of_places: Vec<usize> =
            places.iter().map(|&place| ranks.rank(sentence.tokens[place])).collect();
        let mut shuffles = vec![queries(sentence, &places, &of_places, rarest)];
        for _ in 0..SHUFFLES {
            of_places.shuffle(random);
            shuffles.push(queries(sentence, &places, &of_places, rarest));
        }
        Some(Self { shuffles })
    }

    /// Counts 1 if most queries of a head hit a target.
    pub fn counts(&self, attention: &SentenceAttention) -> RareCounts {
        let is_on = |query: &&Query| attention.text_keys[query.place].is_some_and(|key| query.is_target[key]);
        let is_hit = |queries: &Vec<Query>| 2 * queries.iter().filter(is_on).count() > queries.len();
        let (own, shuffled) = self.shuffles.split_first().expect("the sentence itself comes first");
        let hits = shuffled.iter().filter(|queries| is_hit(queries)).count();
        RareCounts {
            hit: RatioStatistics { numerator: if is_hit(own) { 1.0 } else { 0.0 }, denominator: 1.0 },
            expected: hits as f64 / shuffled.len().max(1) as f64,
        }
    }
}

/// Returns the queries that also see tokens that are not targets.
///
/// - `ranks`: ranks of the tokens at `places`
fn queries(sentence: &Sentence, places: &[usize], ranks: &[usize], rarest: usize) -> Vec<Query> {
    let query = |&place: &usize| {
        let seen = places.iter().filter(|&&key| key < sentence.seen(place)).count();
        let mut kinds = ranks[..seen].to_vec();
        kinds.sort_unstable_by_key(|&rank| std::cmp::Reverse(rank));
        kinds.dedup();
        let has_choice = kinds.len() > rarest;
        kinds.truncate(rarest);
        let mut is_target = vec![false; sentence.len()];
        for (&key, rank) in places[..seen].iter().zip(ranks) {
            is_target[key] = kinds.contains(rank);
        }
        has_choice.then_some(Query { place, is_target })
    };
    places.iter().filter_map(query).collect()
}

/// Returns true if this share of sentences makes a head one for rare tokens: more than half.
pub fn holds(sum: RatioStatistics) -> bool {
    2.0 * sum.numerator > sum.denominator
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::tests::looking_at;
    use crate::sentence::tests::of_words;
    use rand::SeedableRng;

    /// Ranks tokens 1, 2, .. in this order of frequency.
    fn ranks(kinds: u32) -> Ranks {
        let tokens: Vec<u32> =
            (1..=kinds).flat_map(|token| std::iter::repeat_n(token, (kinds + 1 - token) as usize)).collect();
        Ranks::count(tokens.iter())
    }

    /// Returns the targets with four distinct tokens ranked.
    fn targets(sentence: &Sentence, frequent: usize, rarest: usize) -> Option<RareTargets> {
        let rarity = Rarity { ranks: &ranks(4), frequent, rarest };
        RareTargets::new(sentence, &rarity, &mut ChaCha8Rng::seed_from_u64(1))
    }

    fn counts(sentence: &Sentence, keys: &[usize], rarest: usize) -> RareCounts {
        targets(sentence, 2, rarest).unwrap().counts(&looking_at(sentence, keys))
    }

    #[test]
    fn tokens_are_ranked_by_their_counts_and_unknown_ones_are_the_rarest() {
        let ranks = Ranks::count([7, 3, 7, 5, 3, 9].iter());
        assert_eq!([3, 7, 5, 9].map(|token| ranks.rank(token)), [0, 1, 2, 3]);
        assert!(ranks.rank(0) > 3 && ranks.rank(2) > ranks.rank(1));
    }

    /// Four words, of which the last is the rarest, and EOS, which is neither query nor key. Three of four queries are a
    /// majority, two are not.
    #[test]
    fn most_queries_must_attend_to_the_rarest() {
        let sentence = of_words(4, &[], true);
        assert_eq!(counts(&sentence, &[3, 3, 3, 0, 0], 1).hit.numerator, 1.0);
        assert_eq!(counts(&sentence, &[3, 3, 0, 0, 3], 1).hit.numerator, 0.0);
        assert_eq!(counts(&sentence, &[3, 2, 2, 0, 0], 1).hit.numerator, 0.0);
        assert_eq!(counts(&sentence, &[3, 2, 2, 0, 0], 2).hit.numerator, 1.0, "among the two rarest");
        // if the rarest token occurs twice, either occurrence is a hit, and the second rarest is another token
        let mut sentence = sentence;
        sentence.tokens = vec![4, 1, 4, 3, 0];
        assert_eq!(counts(&sentence, &[0, 2, 0, 1, 1], 1).hit.numerator, 1.0);
        assert_eq!(counts(&sentence, &[3, 3, 3, 1, 1], 2).hit.numerator, 1.0);
    }

    #[test]
    fn sentences_and_queries_without_a_choice_or_of_frequent_tokens_are_not_counted() {
        let counts = |words, frequent| targets(&of_words(words, &[], true), frequent, 1).is_some();
        // the rarest of four tokens has rank 3, counted from 0
        assert!(counts(4, 3) && !counts(4, 4) && !counts(1, 0));
        // If there are only two distinct tokens, both are targets. A decoder's third query is the first to see a third.
        let two_rarest = |words: usize, is_encoder: bool| targets(&of_words(words, &[], is_encoder), 0, 2);
        assert!(two_rarest(2, true).is_none() && two_rarest(2, false).is_none());
        let counted = |targets: Option<RareTargets>| targets.unwrap().shuffles[0].len();
        assert_eq!((counted(two_rarest(3, true)), counted(two_rarest(3, false))), (3, 1));
    }

    /// A decoder that always attends to the rarest token so far: the second word at query 2, the third at query 3.
    #[test]
    fn targets_of_a_decoder_are_the_rarest_tokens_that_it_sees() {
        let sentence = of_words(3, &[], false);
        let found = counts(&sentence, &[0, 1, 2, 2], 1);
        assert_eq!(found.hit, RatioStatistics { numerator: 1.0, denominator: 1.0 });
        // the first query has no choice; one of the other two is no majority
        assert_eq!(counts(&sentence, &[0, 1, 0, 0], 1).hit.numerator, 0.0);
    }

    /// All queries attend to one of four tokens, so a shuffled target is hit in a quarter of the shuffles. Over 400 sentences with 20
    /// shuffles each, the mean has a standard deviation of sqrt(3/16 / 8,000) = 0.005.
    #[test]
    fn shuffled_targets_are_hit_by_chance() {
        let sentence = of_words(4, &[], true);
        let attention = looking_at(&sentence, &[3, 3, 3, 3, 3]);
        let rarity = Rarity { ranks: &ranks(4), frequent: 2, rarest: 1 };
        let expected = |random: &mut ChaCha8Rng| {
            RareTargets::new(&sentence, &rarity, random).unwrap().counts(&attention).expected
        };
        let mean = || {
            let mut random = ChaCha8Rng::seed_from_u64(1);
            (0..400).map(|_| expected(&mut random)).sum::<f64>() / 400.0
        };
        assert!((mean() - 0.25).abs() < 0.02, "{}", mean());
        assert_eq!(mean(), mean(), "equal seeds give equal shuffles");
    }
}
