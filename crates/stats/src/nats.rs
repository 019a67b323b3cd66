//! Cross-entropy of language models in nats per token, whose exponential is the perplexity.
//!
//! Jelinek, Mercer, Bahl and Baker (1977), *Perplexity: A Measure of the Difficulty of Speech Recognition Tasks*, Journal of the Acoustical
//! Society of America 62, S63. The score is the mean over tokens, not over documents: Σ nats / Σ tokens. A difference in nats is a relative
//! change of the perplexity, and nats stay finite for bad models whose perplexity overflows.

use crate::Error;

/// Nats that the tokens of a document cost a language model, and its lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NatsStatistics {
    nats: f32,
    tokens: u32,
    words: u32,
}

impl NatsStatistics {
    /// Builds the statistics of one document. Nats are rounded to single precision, as in files, so that storing does not change a score.
    ///
    /// - `nats`: negative natural logarithm of the probability of all its tokens
    /// - `tokens`: number of tokens that were predicted
    /// - `words`: number of words of its text; 0 if they were not counted
    ///
    /// # Errors
    /// If the nats are not finite, negative, or above 0 without a token.
    pub fn new(nats: f64, tokens: u32, words: u32) -> Result<Self, Error> {
        // Adding 0.0 removes the sign of -0.0.
        let rounded = nats as f32 + 0.0;
        if rounded.is_finite() && rounded >= 0.0 && (tokens > 0 || rounded == 0.0) {
            return Ok(Self { nats: rounded, tokens, words });
        }
        let allowed = "nats must be finite and 0 or more, and 0 without a token";
        Err(Error::Invalid(format!("{nats} nats for {tokens} tokens: {allowed}")))
    }

    pub(crate) fn sum(documents: &[Self]) -> Self {
        let nats = documents.iter().map(|own| f64::from(own.nats)).sum::<f64>() as f32;
        let count = |of: fn(&Self) -> u32| documents.iter().map(of).sum();
        Self { nats, tokens: count(|own| own.tokens), words: count(|own| own.words) }
    }

    /// Returns the nats, as they are stored.
    pub fn nats(&self) -> f32 {
        self.nats
    }

    /// Returns the number of tokens that were predicted.
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Returns the number of words of the text; 0 if they were not counted.
    pub fn words(&self) -> u32 {
        self.words
    }
}

/// Returns nats per token; 0 without a token.
pub(crate) fn per_token(sums: &[f64]) -> f64 {
    if sums[1] == 0.0 { 0.0 } else { sums[0] / sums[1] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segments;

    /// (6 + 1 + 5) nats over (2 + 2 + 1) tokens: 12 / 5, while the mean over documents would be 17/6.
    #[test]
    fn a_score_is_a_mean_over_tokens() {
        let score = |documents: &[(f64, u32)]| {
            let document = |&(nats, tokens): &(f64, u32)| NatsStatistics::new(nats, tokens, 1).unwrap();
            Segments::Nats(documents.iter().map(document).collect()).score().unwrap()
        };
        assert_eq!(score(&[(6.0, 2), (1.0, 2), (5.0, 1)]), 2.4);
        assert_eq!(score(&[(0.0, 0)]), 0.0);
    }

    #[test]
    fn invalid_nats_are_refused_and_others_are_rounded_once() {
        for (nats, tokens) in [(f64::NAN, 2), (f64::INFINITY, 2), (1e39, 2), (-0.5, 2), (1.0, 0)] {
            let error = NatsStatistics::new(nats, tokens, 1).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{nats} nats for {tokens} tokens: ")), "{error}");
        }
        let document = NatsStatistics::new(0.1, 1, 1).unwrap();
        assert_eq!(f64::from(document.nats()), f64::from(0.1_f32));
        assert_eq!(NatsStatistics::new(document.nats().into(), 1, 1), Ok(document));
        assert!(NatsStatistics::new(-0.0, 1, 1).unwrap().nats().is_sign_positive());
    }
}
