//! Heads that follow a dependency: Voita et al. (2019), Section 5.2, Table 1.
//!
//! For each relation and direction, measures the share of arcs in which the word at one end attends to the word at the other. The
//! positional baseline is how often the other word is at its most frequent relative position, in words. A head is syntactic if its share is
//! at least 10% above the baseline. The paper does not define whether these are points or relative to the baseline, so rows contain both.
//! An arc whose other end the word does not see, such as a later word in a decoder, is not counted.
use std::collections::BTreeMap;

use corpus::trees::TreeArc;
use records::rows::functions::SYNTACTIC_POINTS;
use stats::ratio::RatioStatistics;

use crate::attention::{SentenceAttention, query_of};
use crate::positional::nearest_of_most;
use crate::sentence::Sentence;

/// A relation with a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Direction {
    relation: &'static str,
    /// Names of the ends in the paper; the attending word comes first.
    name: &'static str,
    from_head: bool,
}

/// Relations in the paper's Table 1, with the names of Universal Dependencies, where `dobj` is `obj`. Subtypes such as `nsubj:pass` count
/// as separate relations, as for the paper's parser.
pub const DIRECTIONS: [Direction; 8] = [
    Direction { relation: "nsubj", name: "verb->subject", from_head: true },
    Direction { relation: "nsubj", name: "subject->verb", from_head: false },
    Direction { relation: "obj", name: "verb->object", from_head: true },
    Direction { relation: "obj", name: "object->verb", from_head: false },
    Direction { relation: "amod", name: "noun->modifier", from_head: true },
    Direction { relation: "amod", name: "modifier->noun", from_head: false },
    Direction { relation: "advmod", name: "verb->modifier", from_head: true },
    Direction { relation: "advmod", name: "modifier->verb", from_head: false },
];

/// The words at both ends of an arc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    from: usize,
    to: usize,
}

/// Counts of a head and a relation in one sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SyntacticCounts {
    /// Arcs that the head follows.
    pub hits: RatioStatistics,
    /// Arcs that it would follow if the other ends were shuffled among the other visible words.
    pub expected: f64,
}

impl Direction {
    /// Returns the relation and its ends, such as `nsubj:verb->subject`.
    pub fn detail(self) -> String {
        format!("{}:{}", self.relation, self.name)
    }

    /// Returns the arcs of a sentence that can be followed.
    fn ends(self, sentence: &Sentence, is_first: bool) -> impl Iterator<Item = Ends> {
        let ends = move |arc: &TreeArc| {
            if self.from_head {
                Ends { from: arc.head, to: arc.dependent }
            } else {
                Ends { from: arc.dependent, to: arc.head }
            }
        };
        let arcs = sentence.arcs.iter().filter(move |arc| arc.relation == self.relation).map(ends);
        arcs.filter(move |ends| {
            query_of(sentence, ends.from, is_first).is_some_and(|query| sentence.sees_word(query, ends.to))
        })
    }

    /// Returns true if a sentence has an arc that can be followed.
    pub fn occurs(self, sentence: &Sentence, is_first: bool) -> bool {
        self.ends(sentence, is_first).next().is_some()
    }

    /// Returns the most frequent relative position, in words, of the other end. Ties go to the nearest position, then to the earlier one.
    pub fn usual_position(self, sentences: &[Sentence], is_first: bool) -> i64 {
        let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
        for sentence in sentences {
            for ends in self.ends(sentence, is_first) {
                *counts.entry(ends.to as i64 - ends.from as i64).or_default() += 1;
            }
        }
        nearest_of_most(&counts)
    }

    /// Counts the arcs of a sentence whose other end is at a relative position.
    pub fn baseline(self, sentence: &Sentence, position: i64, is_first: bool) -> RatioStatistics {
        ratio(self.ends(sentence, is_first).map(|ends| ends.to as i64 - ends.from as i64 == position))
    }

    /// Counts the arcs of a sentence that a head follows.
    pub fn counts(
        self,
        sentence: &Sentence,
        attention: &SentenceAttention,
        is_first: bool,
    ) -> SyntacticCounts {
        let is_hit = |ends: Ends| attention.words[ends.from] == Some(ends.to);
        let expected = |ends: Ends| {
            // A word that attends to itself or to no word never hits a shuffled target.
            if attention.words[ends.from].is_none_or(|word| word == ends.from) {
                return 0.0;
            }
            let query = query_of(sentence, ends.from, is_first).unwrap_or(0);
            let others = (0..sentence.words.len()).filter(|&word| word != ends.from);
            1.0 / others.filter(|&word| sentence.sees_word(query, word)).count().max(1) as f64
        };
        SyntacticCounts {
            hits: ratio(self.ends(sentence, is_first).map(is_hit)),
            expected: self.ends(sentence, is_first).map(expected).sum(),
        }
    }
}

fn ratio(hits: impl Iterator<Item = bool>) -> RatioStatistics {
    hits.fold(RatioStatistics::default(), |sum, hit| RatioStatistics {
        numerator: sum.numerator + if hit { 1.0 } else { 0.0 },
        denominator: sum.denominator + 1.0,
    })
}

/// Returns true if hits are at least [`SYNTACTIC_POINTS`] above the baseline, counted on these arcs.
pub fn holds_in_points(hits: RatioStatistics, baseline: RatioStatistics) -> bool {
    hits.denominator > 0.0
        && 100.0 * (hits.numerator - baseline.numerator) >= SYNTACTIC_POINTS * hits.denominator
}

/// Returns true if hits are at least 10% above the baseline, relative to it.
pub fn holds_relatively(hits: RatioStatistics, baseline: RatioStatistics) -> bool {
    hits.denominator > 0.0 && 10.0 * hits.numerator >= 11.0 * baseline.numerator && hits.numerator > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::tests::looking_at;
    use crate::sentence::tests::of_words;

    const SUBJECT: Direction = DIRECTIONS[0]; // verb to subject
    const VERB: Direction = DIRECTIONS[1]; // subject to verb

    /// Of 1,000 arcs with a baseline of 500, 599 hits are 9.9 points above it and 600 are 10.
    #[test]
    fn less_than_ten_points_are_too_few() {
        let of = |numerator| RatioStatistics { numerator, denominator: 1000.0 };
        let holds = |hits| holds_in_points(of(hits), of(500.0));
        assert_eq!([599.0, 600.0, 601.0].map(holds), [false, true, true]);
        // 54.9% is 9.8% above the baseline in relative terms
        assert_eq!([549.0, 550.0].map(|hits| holds_relatively(of(hits), of(500.0))), [false, true]);
    }

    /// With three other words, a shuffled target is hit in a third of the shuffles, and never if the word attends to itself.
    #[test]
    fn shuffled_partners_are_met_by_chance() {
        let sentence = of_words(4, &[(0, "nsubj", 2)], true);
        let expected =
            |key: usize| SUBJECT.counts(&sentence, &looking_at(&sentence, &[key; 5]), false).expected;
        assert_eq!([0, 1, 2].map(expected), [1.0 / 3.0, 1.0 / 3.0, 0.0]);
    }

    #[test]
    fn the_usual_position_is_counted_from_the_word_that_attends() {
        let sentence = of_words(4, &[(0, "nsubj", 2)], true);
        let usual = |direction: Direction| direction.usual_position(std::slice::from_ref(&sentence), false);
        assert_eq!([SUBJECT, VERB].map(usual), [-2, 2]);
    }

    /// The subject comes before its verb, so only the verb can attend to it.
    #[test]
    fn a_decoder_follows_arcs_to_what_stands_before() {
        let sentence = of_words(4, &[(0, "nsubj", 2)], false);
        assert!(SUBJECT.occurs(&sentence, false) && !VERB.occurs(&sentence, false));
        let attention = looking_at(&sentence, &[0, 0, 0, 0, 0]);
        let found = SUBJECT.counts(&sentence, &attention, false);
        assert_eq!((found.hits.numerator, found.expected), (1.0, 0.5), "two other words are seen");
        assert_eq!(VERB.counts(&sentence, &attention, false), SyntacticCounts::default());
    }

    #[test]
    fn subtypes_are_relations_of_their_own() {
        let sentence = of_words(4, &[(0, "nsubj:pass", 2), (1, "obj", 2)], true);
        assert!(!SUBJECT.occurs(&sentence, false) && DIRECTIONS[3].occurs(&sentence, false));
    }
}
