//! BLEU from sufficient statistics, with sacreBLEU's numbers.
//!
//! Papineni et al. (2002), <https://aclanthology.org/P02-1040>; the tokenisation, the smoothing and
//! the signature are those of Post (2018), <https://aclanthology.org/W18-6319>, by way of
//! `sacrebleu_rs`, which holds the formula.

use std::borrow::Cow;

const ORDERS: usize = sacrebleu_rs::MAX_NGRAM_ORDER;

/// Counts of a segment for BLEU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BleuStatistics {
    /// Words of the hypothesis.
    pub hypothesis_length: u32,
    /// Words of the reference.
    pub reference_length: u32,
    /// n-grams of the hypothesis that the reference has too, for n = 1 to 4.
    pub correct: [u32; ORDERS],
    /// n-grams of the hypothesis, for n = 1 to 4.
    pub total: [u32; ORDERS],
}

impl BleuStatistics {
    /// From the lengths in words and the n-grams in common: a segment of `length` words has `length` - n + 1 n-grams.
    pub fn new(hypothesis_length: u32, reference_length: u32, correct: [u32; ORDERS]) -> Self {
        let total = std::array::from_fn(|order| hypothesis_length.saturating_sub(order as u32));
        Self { hypothesis_length, reference_length, correct, total }
    }

    pub(crate) fn counts(&self) -> [f64; 2 + 2 * ORDERS] {
        let [c1, c2, c3, c4] = self.correct;
        let [t1, t2, t3, t4] = self.total;
        [self.hypothesis_length, self.reference_length, c1, c2, c3, c4, t1, t2, t3, t4].map(f64::from)
    }
}

/// Corpus BLEU in points, 0 to 100: exponential smoothing, all four orders. Without a single common word it is 0.
pub(crate) fn score(sums: &[f64]) -> f64 {
    let whole = |sums: &[f64]| sums.iter().map(|&sum| sum as i64).collect::<Vec<_>>();
    let (correct, total) = (whole(&sums[2..2 + ORDERS]), whole(&sums[2 + ORDERS..]));
    sacrebleu_rs::compute_bleu(correct, total, sums[0] as i64, sums[1] as i64, "exp", None, false, ORDERS)
        .score
}

/// Counts the n-grams of segments as sacreBLEU does: one reference, upper and lower case distinct.
#[derive(Clone, Default)]
pub struct Bleu {
    metric: sacrebleu_rs::Bleu,
}

impl Bleu {
    /// For plain text, which is tokenised as WMT does (`tok:13a`).
    pub fn new() -> Self {
        Self::default()
    }

    /// For text whose tokens are already separated by white space (`tok:none`).
    pub fn pretokenized() -> Self {
        Self { metric: sacrebleu_rs::Bleu { tokenize: "none".to_owned(), ..Default::default() } }
    }

    /// The statistics of one hypothesis against its reference.
    pub fn segment(&self, hypothesis: &str, reference: &str) -> BleuStatistics {
        let [hypothesis, reference] = [hypothesis, reference].map(with_python_spaces);
        let counted = self.metric.sentence_score(&hypothesis, &[reference.into_owned()]);
        BleuStatistics {
            hypothesis_length: count(counted.sys_len),
            reference_length: count(counted.ref_len),
            correct: std::array::from_fn(|n| count(counted.counts[n])),
            total: std::array::from_fn(|n| count(counted.totals[n])),
        }
    }

    /// sacreBLEU's signature, which names all that changes the score.
    pub fn signature(&self) -> String {
        self.metric.signature(1)
    }
}

/// Python takes the information separators, U+001C to U+001F, for white space, which ends words; Unicode and Rust do
/// not.
fn with_python_spaces(text: &str) -> Cow<'_, str> {
    let separates = |letter| ('\u{1c}'..='\u{1f}').contains(&letter);
    if text.contains(separates) { text.replace(separates, " ").into() } else { text.into() }
}

fn count(value: i64) -> u32 {
    u32::try_from(value).expect("a segment has from 0 to 2^32 - 1 words")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Segments, assert_close};

    fn corpus(segments: Vec<BleuStatistics>) -> f64 {
        Segments::Bleu(segments).score().unwrap()
    }

    /// - "the" counts once, since the reference has it once: 5 of 6 words. Of the n-grams, "the cat", "cat sat", "sat on" (3 of
    ///   5), "the cat sat", "cat sat on" (2 of 4) and "the cat sat on" (1 of 3) are right. 5/6 * 3/5 * 2/4 * 1/3 = 1/12.
    /// - All n-grams are right, but 4 words stand for 5: exp(1 - 5/4).
    /// - 3/4 * 2/3 * 1/2, and half a match for the missing 4-gram (0 of 1): 1/8.
    #[test]
    fn score_is_the_geometric_mean_of_the_precisions_with_a_brevity_penalty() {
        for (hypothesis, reference, expected) in [
            ("the cat sat on the mat", "the cat sat on a mat", (1.0_f64 / 12.0).powf(0.25)),
            ("a b c d", "a b c d e", (-0.25_f64).exp()),
            ("a b c d", "a b c e", 0.125_f64.powf(0.25)),
            ("a b c d", "e f g h", 0.0),
            ("", "e f g h", 0.0),
            ("", "", 0.0),
        ] {
            assert_close(corpus(vec![Bleu::new().segment(hypothesis, reference)]), 100.0 * expected, 1e-12);
        }
    }

    /// Stored statistics of a segment leave out the totals, which follow from its length.
    #[test]
    fn totals_follow_from_the_length() {
        for text in ["", "one", "two words", "now three words", "a b c d e f g"] {
            let segment = Bleu::new().segment(text, "a b c d");
            let rebuilt =
                BleuStatistics::new(segment.hypothesis_length, segment.reference_length, segment.correct);
            assert_eq!(rebuilt, segment, "{text:?}");
        }
    }

    #[test]
    fn sum_of_segments_scores_as_the_corpus() {
        let hypotheses = ["The cat, it sat.", "A dog barks at 3.5 cats", "", "no match"].map(str::to_owned);
        let references =
            ["The cat, she sat.", "A dog barked at 3.5 cats.", "silence", "else"].map(str::to_owned);
        let pairs = hypotheses.iter().zip(&references);
        let segments = pairs.map(|(left, right)| Bleu::new().segment(left, right)).collect();
        let expected = sacrebleu_rs::Bleu::default().corpus_score(&hypotheses, &[references.to_vec()]);
        assert!(expected.score > 10.0, "the example should have n-grams of every order in common");
        assert_eq!(corpus(segments), expected.score);
    }

    /// As sacreBLEU 2.6.0 prints it, apart from the number of bootstrap resamples.
    #[test]
    fn signature_names_case_tokenizer_and_smoothing() {
        assert_eq!(Bleu::new().signature(), "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
        assert!(Bleu::pretokenized().signature().contains("|tok:none|"));
    }
}
