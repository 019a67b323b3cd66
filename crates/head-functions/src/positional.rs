//! Heads that attend to one relative position: Voita et al. (2019), Section 5.1.
//!
//! A head is positional if at least 90% of its maximum weights are at one relative position, which is its most frequent one. All tokens are
//! keys and queries, including special tokens. A query that sees a single key has no choice and is not counted.
//!
//! In sentences of eight tokens no head can attend to the previous token in 90% of the queries, since the first has none. Beyond the paper,
//! rows also contain the share among queries that have a key at the position; no head is called positional by that share.
use std::collections::BTreeMap;

use records::rows::functions::POSITIONAL_PERCENT;
use stats::ratio::RatioStatistics;

use crate::attention::SentenceAttention;
use crate::sentence::Sentence;

/// Counts of a head's hits at its position in one sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PositionalCounts {
    /// Among queries that have a key at the position.
    pub of_those: RatioStatistics,
    /// Among all queries.
    pub of_all: RatioStatistics,
    /// Hits expected with shuffled targets.
    pub expected: f64,
}

/// Returns true if this share of queries makes a head positional: at least [`POSITIONAL_PERCENT`].
pub fn holds(sum: RatioStatistics) -> bool {
    sum.denominator > 0.0 && 100.0 * sum.numerator >= POSITIONAL_PERCENT * sum.denominator
}

/// Returns the most frequent relative position, key minus query, of maximum weights. Ties go to the nearest position, then to the earlier
/// one.
pub fn most_frequent<'a>(of: impl Iterator<Item = (&'a Sentence, &'a SentenceAttention)>) -> i64 {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for (sentence, attention) in of {
        for query in queries(sentence) {
            *counts.entry(attention.keys[query] as i64 - query as i64).or_default() += 1;
        }
    }
    nearest_of_most(&counts)
}

/// Returns the position with the highest count. Ties go to the nearest position, then to the earlier one.
pub fn nearest_of_most(counts: &BTreeMap<i64, usize>) -> i64 {
    let best = counts.iter().max_by_key(|&(position, count)| (*count, -position.abs(), -position));
    best.map_or(0, |(&position, _)| position)
}

/// Counts the queries of a sentence from which a head attends to a relative position.
pub fn counts(sentence: &Sentence, attention: &SentenceAttention, position: i64) -> PositionalCounts {
    let mut found = PositionalCounts::default();
    for query in queries(sentence) {
        let hit = if attention.keys[query] as i64 - query as i64 == position { 1.0 } else { 0.0 };
        found.of_all.numerator += hit;
        found.of_all.denominator += 1.0;
        let seen = sentence.seen(query);
        if (0..seen as i64).contains(&(query as i64 + position)) {
            found.of_those.numerator += hit;
            found.of_those.denominator += 1.0;
            found.expected += 1.0 / seen as f64;
        }
    }
    found
}

/// Returns the queries that see several keys.
fn queries(sentence: &Sentence) -> impl Iterator<Item = usize> {
    (0..sentence.len()).filter(|&query| sentence.seen(query) > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::tests::looking_at;
    use crate::sentence::tests::of_words;

    fn found(sentence: &Sentence, keys: &[usize]) -> (i64, PositionalCounts) {
        let attention = looking_at(sentence, keys);
        let position = most_frequent(std::iter::once((sentence, &attention)));
        (position, counts(sentence, &attention, position))
    }

    /// Ten words and the EOS token: ten queries have a next token, the EOS token has none. 9 of 10 are enough, 8 are not.
    #[test]
    fn ninety_percent_are_enough_and_less_is_not() {
        let sentence = of_words(10, &[], true);
        let (position, enough) = found(&sentence, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 3]);
        assert_eq!((position, enough.of_those.numerator, enough.of_those.denominator), (1, 9.0, 10.0));
        assert!(holds(enough.of_those));
        assert_eq!(enough.of_all.denominator, 11.0);
        assert!(!holds(enough.of_all), "9 of 11");
        let (position, missing) = found(&sentence, &[1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 3]);
        assert_eq!((position, missing.of_those.numerator), (1, 8.0));
        assert!(!holds(missing.of_those));
    }

    /// The first query of a decoder sees only itself, so it does not count. The other two see 2 and 3 keys.
    #[test]
    fn a_query_without_a_choice_is_not_counted() {
        let sentence = of_words(2, &[], false);
        let (position, counts) = found(&sentence, &[0, 0, 1]);
        assert_eq!((position, counts.of_those.numerator, counts.of_all.denominator), (-1, 2.0, 2.0));
        assert!((counts.expected - (0.5 + 1.0 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn ties_go_to_the_nearest_position_and_then_to_the_earlier_one() {
        let most = |counts: &[(i64, usize)]| nearest_of_most(&counts.iter().copied().collect());
        assert_eq!(most(&[(-3, 4), (1, 4), (-1, 4), (2, 3)]), -1);
        assert_eq!(most(&[(-3, 5), (1, 4)]), -3);
        assert_eq!(most(&[]), 0);
    }
}
