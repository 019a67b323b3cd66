//! Memory that segments take in a forward or backward pass.
use std::collections::BTreeSet;

use heads::{Measure, Needs};

/// Use of a model for which memory is planned.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// Evaluation of many head sets.
    Scoring,
    /// Measuring heads; activations are kept for the backward pass.
    Measuring(&'a BTreeSet<Measure>),
    /// Relevance propagation, one segment at a time.
    Relevance,
}

/// Memory that a model needs for some purpose.
pub(crate) struct Need<'a> {
    /// Maximum tokens per batch, padding included, if memory allows.
    pub batch_tokens: usize,
    /// True if batches with long segments come first because they take longest. Short batches should come last, so that no thread waits
    /// long.
    pub longest_first: bool,
    /// Upper estimate of the bytes for a segment of this many tokens; increases with the length.
    pub segment: Box<dyn Fn(usize) -> u64 + 'a>,
    /// Bytes per thread, independent of the batch.
    pub thread_bytes: u64,
    /// Bytes of the prefix cache per token; 0 without a cache.
    pub cache_bytes: u64,
    pub model_bytes: u64,
}

/// Sizes of the layers that a text passes through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layers {
    pub count: u64,
    /// Width of the residual stream.
    pub width: u64,
    /// Of all heads together.
    pub heads_width: u64,
    pub heads: u64,
    /// Width of a feed-forward block times the number of tensors with that width; 0 if the layers have no such block.
    pub feed_forward: u64,
}

impl Layers {
    /// Returns how many numbers a segment takes in all layers together.
    ///
    /// - `targets`: positions whose relevance is propagated together
    pub(crate) fn numbers(&self, tokens: u64, targets: u64, purpose: Purpose<'_>) -> u64 {
        let Self { count, width, heads_width, heads, feed_forward } = *self;
        // The residual stream before and after each sublayer and its normalisation; queries, keys, values and gated head outputs; sums of
        // attention weights, gates and their gradients.
        let layer = tokens * (8 * width + 6 * heads_width + feed_forward + 4 * heads);
        let weights = heads * tokens * tokens;
        match purpose {
            // Each layer keeps its input, the head outputs and their projection.
            Purpose::Scoring => layer + count * tokens * (2 * width + heads_width),
            Purpose::Measuring(measures) => {
                let needs = |needed: &dyn Fn(&Measure) -> bool| u64::from(measures.iter().any(needed));
                let kept = needs(&|measure| measure.is_of_weights())
                    + needs(&|measure| measure.entry().needs == Needs::WeightGradients);
                let contexts =
                    needs(&|measure| measure.entry().needs == Needs::Contexts) * tokens * heads_width;
                // One more layer is being computed: its weights in double precision, with their logarithms and products.
                let on_the_way = layer + if kept > 0 { 8 * weights } else { 0 };
                needs(&|measure| measure.is_gradient()) * count * layer
                    + count * (contexts + kept * weights)
                    + on_the_way
            }
            Purpose::Relevance => {
                // Contributions of inputs to outputs of a linear map at one position, positive and negative parts and their shares.
                let matrices = 6 * width * (feed_forward + 3 * heads_width);
                // In a feed-forward block: relevance before and after rescaling, inputs and outputs. In attention: relevance of queries,
                // keys, values and head outputs, and for one query its positive and negative parts.
                let handed_down = 16 * width + 24 * heads_width + 3 * feed_forward;
                (count + 1) * layer + (count + 8) * weights + targets * tokens * handed_down + matrices
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 layers of 3 heads with 4 numbers each, a residual stream of 10, a block of 7; 5 tokens. One layer has 5 * (80 + 72 + 7 + 12) = 855
    /// numbers and 75 attention weights. Each position has 160 + 288 + 21 = 469 per target position; matrices have 6 * 10 * (7 + 36) =
    /// 2,580.
    #[test]
    fn numbers_depend_on_the_purpose() {
        let layers = Layers { count: 2, width: 10, heads_width: 12, heads: 3, feed_forward: 7 };
        let measuring = |measures: &[Measure]| {
            let measures = measures.iter().copied().collect();
            layers.numbers(5, 1, Purpose::Measuring(&measures))
        };
        assert_eq!(layers.numbers(5, 1, Purpose::Scoring), 855 + 2 * 5 * 32);
        assert_eq!(measuring(&[Measure::Example]), 3 * 855);
        assert_eq!(measuring(&[Measure::ActivationNorm]), 855 + 2 * 5 * 12);
        assert_eq!(measuring(&[Measure::Entropy]), 2 * 75 + 855 + 8 * 75);
        assert_eq!(measuring(&[Measure::Example, Measure::AttentionGradient]), 3 * 855 + 2 * 2 * 75 + 8 * 75);
        assert_eq!(layers.numbers(5, 1, Purpose::Relevance), 3 * 855 + 10 * 75 + 5 * 469 + 2580);
        assert_eq!(layers.numbers(5, 5, Purpose::Relevance), 3 * 855 + 10 * 75 + 5 * 5 * 469 + 2580);
    }
}
