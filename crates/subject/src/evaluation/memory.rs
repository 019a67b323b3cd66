//! Memory that segments take on their way through a model.
use std::collections::BTreeSet;

use heads::{Measure, Needs};

/// Use of a model that memory is planned for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// Head sets are swept.
    Scoring,
    /// Heads are measured: what layers compute is kept until derivatives are taken.
    Measuring(&'a BTreeSet<Measure>),
    /// Relevance is handed down from layer to layer, of one segment after another.
    Relevance,
}

/// Memory that a model needs for some purpose.
pub(crate) struct Need<'a> {
    /// Tokens of a batch, padding included, where there is memory for them.
    pub batch_tokens: usize,
    /// True if batches of long segments come before those of many, since they take longer. The last ones should take least,
    /// so that no thread waits long for another.
    pub longest_first: bool,
    /// Upper estimate of the bytes of a segment of this many tokens on its way through the model; more for longer ones.
    pub segment: Box<dyn Fn(usize) -> u64 + 'a>,
    /// Bytes that each thread needs whatever the batch.
    pub thread_bytes: u64,
    /// Bytes of the prefix cache for one token; 0 if nothing is kept of a batch.
    pub cache_bytes: u64,
    /// Bytes of the model.
    pub model_bytes: u64,
}

/// Layers of a text's way through a model, all of one size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layers {
    pub count: u64,
    /// Width of the residual stream.
    pub width: u64,
    /// Of all heads together.
    pub heads_width: u64,
    pub heads: u64,
    /// Width of a feed-forward block times the tensors of that width that it computes; 0 without one.
    pub feed_forward: u64,
}

impl Layers {
    /// Numbers that a segment takes in all layers together.
    ///
    /// - `targets`: positions whose relevance is handed down together
    pub(crate) fn numbers(&self, tokens: u64, targets: u64, purpose: Purpose<'_>) -> u64 {
        let Self { count, width, heads_width, heads, feed_forward } = *self;
        // The residual stream before and after each sublayer and its normalisation; queries, keys, values and what heads read,
        // with gates; the sums of attention weights, gates and their gradients.
        let layer = tokens * (8 * width + 6 * heads_width + feed_forward + 4 * heads);
        let weights = heads * tokens * tokens;
        match purpose {
            // Each layer on the way keeps its input, what its heads read and what they add together.
            Purpose::Scoring => layer + count * tokens * (2 * width + heads_width),
            Purpose::Measuring(measures) => {
                let needs = |needed: &dyn Fn(&Measure) -> bool| u64::from(measures.iter().any(needed));
                let kept = needs(&|measure| measure.is_of_weights())
                    + needs(&|measure| measure.entry().needs == Needs::WeightGradients);
                let contexts =
                    needs(&|measure| measure.entry().needs == Needs::Contexts) * tokens * heads_width;
                // One layer more is on its way; its weights in double precision, with their logarithms and products.
                let on_the_way = layer + if kept > 0 { 8 * weights } else { 0 };
                needs(&|measure| measure.is_gradient()) * count * layer
                    + count * (contexts + kept * weights)
                    + on_the_way
            }
            Purpose::Relevance => {
                // What each input adds to each output of a map at one position, with its parts of either sign and their shares.
                let matrices = 6 * width * (feed_forward + 3 * heads_width);
                // In a feed-forward block, relevance as found and rescaled, and what enters and leaves it; in attention, that of
                // queries, keys, values and contexts, and for one query the same by either sign.
                let handed_down = 16 * width + 24 * heads_width + 3 * feed_forward;
                (count + 1) * layer + (count + 8) * weights + targets * tokens * handed_down + matrices
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 layers of 3 heads with 4 numbers each, a residual stream of 10, a block of 7; 5 tokens. Of a layer
    /// 5 * (80 + 72 + 7 + 12) = 855, and 75 attention weights. At each position 160 + 288 + 21 = 469 for each target position;
    /// matrices of 6 * 10 * (7 + 36) = 2,580.
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
