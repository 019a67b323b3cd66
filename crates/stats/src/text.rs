//! Metrics of generated texts in addition to BLEU, and of tags: ROUGE, chrF, TER, exact match, entity F1 and token accuracy, each from
//! counts stored for every segment.

use std::collections::HashMap;
use std::hash::Hash;

use crate::counted::Counted;
use crate::entities::entities;
use crate::metric::MetricName;
use crate::ter;

const ORDERS: usize = 6;

/// A metric of texts and their references, in points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextMetric {
    /// Mean over segments of the F1 of words in common, with clipped counts: ROUGE-1, Lin (2004), <https://aclanthology.org/W04-1013>, with
    /// the words of `rouge-score` without stemmer.
    Rouge1,
    /// ROUGE-2: F1 of word bigrams.
    Rouge2,
    /// ROUGE-L: F1 of the longest common subsequence of words.
    RougeL,
    /// F2 of character n-grams up to the sixth order, over the corpus: chrF2, Popović (2015), <https://aclanthology.org/W15-3049>, as
    /// counted by sacreBLEU.
    Chrf,
    /// Share of texts that equal their reference, ignoring white space around them.
    ExactMatch,
    /// Translation edit rate over the corpus: Snover et al. (2006), with sacreBLEU's defaults.
    Ter,
    /// F1 of tagged [`entities`], over all types and the corpus. Texts are the tags of words, separated by spaces.
    EntityF1,
    /// Share of tags that equal the reference.
    TokenAccuracy,
}

impl TextMetric {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Rouge1,
        Self::Rouge2,
        Self::RougeL,
        Self::Chrf,
        Self::ExactMatch,
        Self::Ter,
        Self::EntityF1,
        Self::TokenAccuracy,
    ];

    /// Returns true if the texts are tags of words.
    pub fn is_of_tags(self) -> bool {
        matches!(self, Self::EntityF1 | Self::TokenAccuracy)
    }

    /// Returns its name.
    pub fn name(self) -> MetricName {
        match self {
            Self::Rouge1 => MetricName::Rouge1,
            Self::Rouge2 => MetricName::Rouge2,
            Self::RougeL => MetricName::RougeL,
            Self::Chrf => MetricName::Chrf,
            Self::ExactMatch => MetricName::ExactMatch,
            Self::Ter => MetricName::Ter,
            Self::EntityF1 => MetricName::EntityF1,
            Self::TokenAccuracy => MetricName::TokenAccuracy,
        }
    }

    /// Returns everything that changes the score, like a sacreBLEU signature.
    pub fn signature(self) -> String {
        match self {
            Self::Chrf => sacrebleu_rs::Chrf::default().signature(1),
            Self::ExactMatch => "exact-match, trimmed".to_owned(),
            Self::Ter => "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0".to_owned(),
            Self::EntityF1 => "entity-f1, seqeval 1.2.2, default mode, micro average".to_owned(),
            Self::TokenAccuracy => "token-accuracy".to_owned(),
            _ => format!("{}, rouge-score 0.1.2, f1, no stemmer", self.name()),
        }
    }

    /// Returns the names of the counts of a segment. All ROUGE metrics share them, so that each can be computed from stored counts.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Rouge1 | Self::Rouge2 | Self::RougeL => {
                &["hypothesis_length", "reference_length", "common_1", "common_2", "longest_common"]
            }
            Self::Chrf => &[
                "hypothesis_length",
                "reference_length",
                "common_1",
                "common_2",
                "common_3",
                "common_4",
                "common_5",
                "common_6",
            ],
            Self::ExactMatch => &["right"],
            Self::Ter => &["edits", "reference_length"],
            Self::EntityF1 => &["predicted_entities", "gold_entities", "right_entities"],
            Self::TokenAccuracy => &["right_tags", "tags"],
        }
    }

    /// Counts a text, or tags, and its reference; lengths are in words, for chrF in characters without white space.
    pub fn segment(self, hypothesis: &str, reference: &str) -> Vec<u32> {
        let counts = match self {
            Self::Rouge1 | Self::Rouge2 | Self::RougeL => {
                let [own, other] = [hypothesis, reference].map(words);
                vec![
                    own.len(),
                    other.len(),
                    common(&own, &other, 1),
                    common(&own, &other, 2),
                    longest(&own, &other),
                ]
            }
            Self::Chrf => {
                let [own, other] = [hypothesis, reference]
                    .map(|text| text.chars().filter(|letter| !letter.is_whitespace()).collect::<Vec<_>>());
                let of_order = (1..=ORDERS).map(|order| common(&own, &other, order));
                [own.len(), other.len()].into_iter().chain(of_order).collect()
            }
            Self::ExactMatch => vec![usize::from(hypothesis.trim() == reference.trim())],
            Self::Ter => ter::edits(hypothesis, reference).to_vec(),
            Self::EntityF1 => {
                let [own, other] = [hypothesis, reference].map(|tags| entities(tags.split_whitespace()));
                vec![own.len(), other.len(), own.iter().filter(|entity| other.contains(entity)).count()]
            }
            Self::TokenAccuracy => {
                let [own, other] = [hypothesis, reference].map(|tags| tags.split_whitespace());
                vec![own.zip(other.clone()).filter(|(own, other)| own == other).count(), other.count()]
            }
        };
        counts.into_iter().map(|count| u32::try_from(count).unwrap_or(u32::MAX)).collect()
    }

    /// Counts a text with the reference that gives the best score, the first one if several tie, as sacreBLEU and `rouge-score` do. TER
    /// uses the fewest edits and the mean length of the references; both are stored times the number of references.
    pub fn segment_of(self, hypothesis: &str, references: &[&str]) -> Vec<u32> {
        let all = references.iter().map(|reference| self.segment(hypothesis, reference));
        if self == Self::Ter {
            let (edits, lengths) = all
                .map(|own| (own[0], own[1]))
                .fold((u32::MAX, 0), |(least, sum), (edits, length)| (least.min(edits), sum + length));
            return vec![edits.saturating_mul(references.len() as u32), lengths];
        }
        let scored = all.map(|own| (self.counted(std::slice::from_ref(&own)).score(), own));
        let best = scored.reduce(|best, own| if own.0 > best.0 { own } else { best });
        best.map(|(_, own)| own).unwrap_or_default()
    }

    pub(crate) fn counted(self, segments: &[Vec<u32>]) -> Counted {
        let f1 = |own: u32, other: u32, common: u32| match f64::from(own) + f64::from(other) {
            0.0 => 0.0,
            both => 2.0 * f64::from(common) / both,
        };
        let mean = |value: &dyn Fn(&[u32]) -> f64| {
            Counted::new(segments.iter().map(|counts| [value(counts), 1.0]), |sums| 100.0 * sums[0] / sums[1])
        };
        match self {
            Self::EntityF1 => Counted::new(segments.iter().map(|counts| decimals::<3>(counts)), |sums| {
                let both = sums[0] + sums[1];
                if both == 0.0 { 0.0 } else { 200.0 * sums[2] / both }
            }),
            Self::TokenAccuracy => {
                let counts = segments.iter().map(|counts| decimals::<2>(counts));
                Counted::new(counts, |sums| 100.0 * sums[0] / sums[1])
            }
            Self::Rouge1 => mean(&|counts| f1(counts[0], counts[1], counts[2])),
            Self::Rouge2 => {
                mean(&|counts| f1(counts[0].saturating_sub(1), counts[1].saturating_sub(1), counts[3]))
            }
            Self::RougeL => mean(&|counts| f1(counts[0], counts[1], counts[4])),
            Self::Chrf => Counted::new(segments.iter().map(|counts| of_chrf(counts)), chrf),
            Self::ExactMatch => mean(&|counts| f64::from(counts[0])),
            Self::Ter => {
                Counted::new(segments.iter().map(|counts| decimals::<2>(counts)), |sums| match sums {
                    [edits, 0.0] => 100.0 * edits.min(1.0),
                    sums => 100.0 * sums[0] / sums[1],
                })
            }
        }
    }
}

fn decimals<const N: usize>(counts: &[u32]) -> [f64; N] {
    std::array::from_fn(|place| f64::from(counts[place]))
}

/// Returns the words in lower case: runs of letters a to z and digits.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the number of n-grams in common, with clipped counts.
fn common<T: Hash + Eq>(own: &[T], other: &[T], order: usize) -> usize {
    let mut left: HashMap<&[T], usize> = HashMap::new();
    for ngram in other.windows(order) {
        *left.entry(ngram).or_default() += 1;
    }
    let is_common = |ngram: &&[T]| match left.get_mut(*ngram) {
        Some(times) if *times > 0 => {
            *times -= 1;
            true
        }
        _ => false,
    };
    own.windows(order).filter(is_common).count()
}

fn longest<T: Eq>(own: &[T], other: &[T]) -> usize {
    let mut row = vec![0; other.len() + 1];
    for word in own {
        let mut diagonal = 0;
        for (place, candidate) in other.iter().enumerate() {
            let above = row[place + 1];
            row[place + 1] = if word == candidate { diagonal + 1 } else { above.max(row[place]) };
            diagonal = above;
        }
    }
    row[other.len()]
}

/// Returns n-grams of the hypothesis, of the reference and in common, for each order; 0 of the hypothesis if the reference has none.
fn of_chrf(counts: &[u32]) -> [f64; 3 * ORDERS] {
    let ngrams = |length: u32, order: usize| length.saturating_sub(order as u32);
    std::array::from_fn(|place| {
        let (order, reference) = (place / 3, ngrams(counts[1], place / 3));
        f64::from(match place % 3 {
            0 if reference > 0 => ngrams(counts[0], order),
            0 => 0,
            1 => reference,
            _ => counts[2 + order],
        })
    })
}

/// Returns the F2 of mean precision and mean recall over the orders for which both sides have n-grams.
fn chrf(sums: &[f64]) -> f64 {
    const WEIGHT: f64 = 4.0;
    let orders = || sums.chunks_exact(3).filter(|order| order[0] > 0.0 && order[1] > 0.0);
    let mean = |of: fn(&[f64]) -> f64| orders().map(of).sum::<f64>() / orders().count().max(1) as f64;
    let (precision, recall) = (mean(|order| order[2] / order[0]), mean(|order| order[2] / order[1]));
    match WEIGHT * precision + recall {
        0.0 => 0.0,
        both => 100.0 * (1.0 + WEIGHT) * precision * recall / both,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segments;
    use proptest::prelude::*;

    fn score(metric: TextMetric, pairs: &[(&str, &str)]) -> f64 {
        let segments = pairs.iter().map(|(own, other)| metric.segment(own, other)).collect();
        Segments::Texts(segments, metric).score().unwrap()
    }

    /// From `rouge_score` 0.1.2 (`RougeScorer(["rouge1", "rouge2", "rougeL"]).score(reference, hypothesis)`, mean of f-measures).
    #[test]
    fn rouge_equals_rouge_score() {
        let pairs = [
            ("The quick brown fox, the dog!", "the dog and the quick fox"),
            ("a cat sat", "A cat-sat on the mat; 3 times."),
            ("nothing alike", "completely different words"),
            ("", "empty hypothesis"),
            ("Ünïcode wörds café", "cafe unicode words n code"),
        ];
        for (metric, expected) in
            [(TextMetric::Rouge1, ROUGE[0]), (TextMetric::Rouge2, ROUGE[1]), (TextMetric::RougeL, ROUGE[2])]
        {
            assert!((score(metric, &pairs) - expected).abs() < 1e-9, "{metric:?}: {}", score(metric, &pairs));
        }
    }
    const ROUGE: [f64; 3] = [35.57575757575758, 21.888888888888893, 28.909090909090914];

    proptest! {
        #[test]
        fn chrf_equals_sacrebleu(pairs in prop::collection::vec(("[ab \u{e9}c]{0,9}", "[ab \u{e9}c]{0,9}"), 1..6)) {
            let [own, other]: [Vec<String>; 2] =
                [pairs.iter().map(|pair| pair.0.clone()).collect(), pairs.iter().map(|pair| pair.1.clone()).collect()];
            let expected = sacrebleu_rs::Chrf::default().corpus_score(&own, &[other]).score;
            let pairs: Vec<_> = pairs.iter().map(|(own, other)| (own.as_str(), other.as_str())).collect();
            prop_assert!((score(TextMetric::Chrf, &pairs) - expected).abs() < 1e-9);
        }
    }

    /// From sacreBLEU 2.6.0: `TER().corpus_score(hypotheses, references)`; BLEU and chrF with two references are tested in `compare`.
    #[test]
    fn the_nearest_of_several_references_counts_for_ter_and_any_for_an_exact_match() {
        let segments = [
            ("the cat sat on the mat", ["a cat is on the mat", "the cat sat upon a mat"]),
            ("a dog runs home quickly today", ["the dog runs home", "a dog ran quickly home today now"]),
            ("she reads", ["she is reading books", "she read it"]),
            ("no match here", ["entirely other words", "nothing is alike in this long one"]),
        ];
        let segments = segments.map(|(own, references)| TextMetric::Ter.segment_of(own, &references));
        let found = Segments::Texts(segments.to_vec(), TextMetric::Ter).score().unwrap();
        assert!((found - 50.0).abs() < 1e-9, "{found}");
        assert_eq!(TextMetric::ExactMatch.segment_of("b", &["a", " b"]), [1]);
        // white space around a match does not count
        let pairs = [("Paris ", " Paris"), ("paris", "Paris"), ("42", "42"), ("", "")];
        assert!((score(TextMetric::ExactMatch, &pairs) - 75.0).abs() < 1e-12);
    }
}
