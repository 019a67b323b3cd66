//! Heads that look at one relative position: Voita et al. (2019), Section 5.1.
//!
//! A head is positional if at least 90 % of its maxima are at one relative position, which is where most of them are. All symbols
//! are keys and queries, those that begin or end a text too. A query that sees a single key has no choice and is not counted.
//!
//! Of sentences of eight tokens no head can so look back in 90 %, as the first one has nothing before it. Beyond the paper, the
//! share of the queries that have a key at that position stands beside; it makes no head positional.
use std::collections::BTreeMap;

use records::rows::functions::POSITIONAL_PERCENT;
use stats::ratio::RatioStatistics;

use crate::looks::Looks;
use crate::sentence::Sentence;

/// Counts of a head's position in one sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PositionalCounts {
    /// Of queries that have a key there.
    pub of_those: RatioStatistics,
    /// Of all queries.
    pub of_all: RatioStatistics,
    /// Hits to be expected of shuffled targets.
    pub expected: f64,
}

/// Returns true if a share of queries makes a head positional: at least [`POSITIONAL_PERCENT`].
pub fn holds(sum: RatioStatistics) -> bool {
    sum.denominator > 0.0 && 100.0 * sum.numerator >= POSITIONAL_PERCENT * sum.denominator
}

/// The relative position, key minus query, at which most maxima of a head are; of several the nearest, and of these the one
/// before.
pub fn most_frequent<'a>(of: impl Iterator<Item = (&'a Sentence, &'a Looks)>) -> i64 {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for (sentence, looks) in of {
        for query in queries(sentence) {
            *counts.entry(looks.keys[query] as i64 - query as i64).or_default() += 1;
        }
    }
    nearest_of_most(&counts)
}

/// The position with the greatest count; of several the nearest, and of these the one before.
pub fn nearest_of_most(counts: &BTreeMap<i64, usize>) -> i64 {
    let best = counts.iter().max_by_key(|&(position, count)| (*count, -position.abs(), -position));
    best.map_or(0, |(&position, _)| position)
}

/// Counts the queries of a sentence from which a head looks at a relative position.
pub fn counts(sentence: &Sentence, looks: &Looks, position: i64) -> PositionalCounts {
    let mut found = PositionalCounts::default();
    for query in queries(sentence) {
        let hit = if looks.keys[query] as i64 - query as i64 == position { 1.0 } else { 0.0 };
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

/// Queries that have a choice.
fn queries(sentence: &Sentence) -> impl Iterator<Item = usize> {
    (0..sentence.len()).filter(|&query| sentence.seen(query) > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::tests::looking_at;
    use crate::sentence::tests::of_words;

    fn found(sentence: &Sentence, keys: &[usize]) -> (i64, PositionalCounts) {
        let looks = looking_at(sentence, keys);
        let position = most_frequent(std::iter::once((sentence, &looks)));
        (position, counts(sentence, &looks, position))
    }

    /// Nine words and the end symbol: nine queries have a token before them, and the first looks at itself. 9 of 9, 9 of 10.
    #[test]
    fn a_head_that_looks_back_is_found() {
        let sentence = of_words(9, &[], true);
        let (position, counts) = found(&sentence, &[0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(position, -1);
        assert_eq!((counts.of_those.numerator, counts.of_those.denominator), (9.0, 9.0));
        assert_eq!((counts.of_all.numerator, counts.of_all.denominator), (9.0, 10.0));
        assert!((counts.expected - 0.9).abs() < 1e-12, "each of nine queries sees ten keys");
        assert!(holds(counts.of_those) && holds(counts.of_all));
    }

    /// Ten words and the end symbol: ten queries have a token after them, the last the end symbol. 9 of 10 are enough, 8 are not.
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

    /// The first query of a decoder sees itself alone: it neither makes nor breaks a head. The others are two, of 2 and 3 keys.
    #[test]
    fn a_query_without_a_choice_is_not_counted() {
        let sentence = of_words(2, &[], false);
        let (position, counts) = found(&sentence, &[0, 0, 1]);
        assert_eq!((position, counts.of_those.numerator, counts.of_all.denominator), (-1, 2.0, 2.0));
        assert!((counts.expected - (0.5 + 1.0 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn of_positions_that_tie_the_nearest_counts_and_then_the_one_before() {
        let most = |counts: &[(i64, usize)]| nearest_of_most(&counts.iter().copied().collect());
        assert_eq!(most(&[(-3, 4), (1, 4), (-1, 4), (2, 3)]), -1);
        assert_eq!(most(&[(-3, 5), (1, 4)]), -3);
        assert_eq!(most(&[]), 0);
    }
}
