//! Cross-entropy of language models in nats per token, whose exponential is the perplexity.
//!
//! Jelinek, Mercer, Bahl and Baker (1977), *Perplexity: A Measure of the Difficulty of Speech Recognition Tasks*, Journal of
//! the Acoustical Society of America 62, S63. The score is the mean of the tokens, not of the documents: Σ nats / Σ tokens.
//! Its differences are relative changes of the perplexity, and no model is too bad for it, where a perplexity overflows.

use crate::{Cell, Error, SegmentStatistics};

/// What is known of a document: the nats that its tokens cost a language model, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NatsStatistics {
    nats: f32,
    tokens: u32,
    words: u32,
}

impl NatsStatistics {
    /// Of one document. The nats are rounded to single precision, which is what files store, so that a score is the same
    /// before and after.
    ///
    /// - `nats`: negative natural logarithm of the probability of all its tokens
    /// - `tokens`: number of tokens that were predicted
    /// - `words`: number of words of its text; 0 if they were not counted
    ///
    /// # Errors
    /// [`Error::Nats`] if the nats are not finite or below 0, or there are some without a token.
    pub fn new(nats: f64, tokens: u32, words: u32) -> Result<Self, Error> {
        // A sum that begins with -0.0 must not store a sign.
        let rounded = nats as f32 + 0.0;
        let can_be = rounded.is_finite() && rounded >= 0.0 && (tokens > 0 || rounded == 0.0);
        if can_be { Ok(Self { nats: rounded, tokens, words }) } else { Err(Error::Nats { nats, tokens }) }
    }

    /// The nats, as they are stored.
    pub fn nats(&self) -> f32 {
        self.nats
    }

    /// Number of tokens that were predicted.
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Number of words of the text; 0 if they were not counted.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// Whether both are of documents of one length, so that they can be compared.
    pub(crate) fn is_paired_with(&self, other: &Self) -> bool {
        (self.tokens, self.words) == (other.tokens, other.words)
    }

    pub(crate) fn from_cells(cells: &[Cell]) -> Option<Result<Self, Error>> {
        match *cells {
            [Cell::Decimal(nats), Cell::Count(tokens), Cell::Count(words)] => {
                Some(Self::new(nats.into(), tokens, words))
            }
            _ => None,
        }
    }

    pub(crate) fn cells(&self) -> Vec<Cell> {
        vec![Cell::Decimal(self.nats), Cell::Count(self.tokens), Cell::Count(self.words)]
    }
}

impl SegmentStatistics for NatsStatistics {
    const COUNTS: usize = 2;
    type Counts = [f64; 2];

    fn counts(&self) -> [f64; 2] {
        [self.nats.into(), self.tokens.into()]
    }

    /// Nats per token; 0 without a token.
    fn score(sums: &[f64]) -> f64 {
        if sums[1] == 0.0 { 0.0 } else { sums[0] / sums[1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score;

    /// (6 + 1) nats over (2 + 2) tokens; the mean of the documents would be (3 + 1/2) / 2 = 1.75 as well, so the third one,
    /// 5 nats over 1 token, tells them apart: 12 / 5, not 17/6.
    #[test]
    fn a_score_is_a_mean_over_tokens() {
        let document = |nats, tokens| NatsStatistics::new(nats, tokens, 1).unwrap();
        let mut documents = vec![document(6.0, 2), document(1.0, 2)];
        assert_eq!(score(&documents), 1.75);
        documents.push(document(5.0, 1));
        assert_eq!(score(&documents), 2.4);
        assert_eq!(score(&[document(0.0, 0)]), 0.0);
    }

    #[test]
    fn nats_that_cannot_be_are_refused() {
        for (nats, tokens) in [(f64::NAN, 2), (f64::INFINITY, 2), (1e39, 2), (-0.5, 2), (1.0, 0)] {
            let error = NatsStatistics::new(nats, tokens, 1).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{nats} nats for {tokens} tokens: ")), "{error}");
            assert!(!error.contains('\n'));
        }
    }

    #[test]
    fn nats_are_rounded_once() {
        let document = NatsStatistics::new(0.1, 1, 1).unwrap();
        assert_eq!(f64::from(document.nats()), f64::from(0.1_f32));
        assert_eq!(NatsStatistics::new(document.nats().into(), 1, 1), Ok(document));
        assert!(NatsStatistics::new(-0.0, 1, 1).unwrap().nats().is_sign_positive());
    }
}
