//! What measuring heads takes of the memory: what layers compute is kept until derivatives are taken.
use std::collections::BTreeSet;

use heads::{Measure, Needs};

use super::plan::SegmentBytes;

/// Layers of a text's way through a model, all of one size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layers {
    pub count: u64,
    /// Width of the residual stream.
    pub width: u64,
    /// Of all heads together.
    pub heads_width: u64,
    pub heads: u64,
    /// Width of a feed-forward block times what it computes of that width; 0 without one.
    pub feed_forward: u64,
}

/// What a segment of this many tokens takes on its way through these layers; `bytes`: of a number.
pub(crate) fn while_measuring(
    stacks: Vec<Layers>,
    measures: &BTreeSet<Measure>,
    bytes: u64,
) -> Box<dyn Fn(usize) -> SegmentBytes> {
    let kept = Kept::by(measures);
    Box::new(move |tokens| {
        let numbers = stacks.iter().map(|layers| layers.numbers(tokens as u64, tokens as u64, kept));
        SegmentBytes::exactly(numbers.sum::<u64>() * bytes)
    })
}

/// What a segment of this many tokens takes while relevance is followed through these layers, from one to the next.
///
/// - `targets`: target positions of a segment of this many tokens, whose relevance is handed down together
pub(crate) fn while_following(
    stacks: Vec<Layers>,
    targets: fn(u64) -> u64,
    bytes: u64,
) -> Box<dyn Fn(usize) -> SegmentBytes> {
    // all that layers compute stays until relevance has come past them
    let kept = Kept { has_gradients: true, weights: 1 };
    Box::new(move |tokens| {
        let tokens = tokens as u64;
        let traced: u64 = stacks.iter().map(|layers| layers.numbers(tokens, tokens, kept)).sum();
        let handed = stacks.iter().map(Layers::handed_down).max().unwrap_or(0);
        SegmentBytes::exactly((traced + targets(tokens) * tokens * handed) * bytes)
    })
}

/// What is kept of the attention weights of a layer, and whether anything else is.
#[derive(Debug, Clone, Copy)]
struct Kept {
    has_gradients: bool,
    /// Numbers for each weight.
    weights: u64,
}

impl Kept {
    /// What these measures are made of.
    fn by(measures: &BTreeSet<Measure>) -> Self {
        let of_weights = measures.iter().any(|measure| measure.is_of_weights());
        let of_their_gradients =
            measures.iter().any(|measure| measure.entry().needs == Needs::WeightGradients);
        Self {
            has_gradients: measures.iter().any(|measure| measure.is_gradient()),
            weights: u64::from(of_weights) + u64::from(of_their_gradients),
        }
    }
}

impl Layers {
    /// Numbers that relevance takes on its way through a layer, for each target position and each position.
    fn handed_down(&self) -> u64 {
        let Self { width, heads_width, feed_forward, .. } = *self;
        // In the dearest step, back from a feed-forward block: its relevance as found, by either sign, and rescaled. Around it what
        // enters and leaves, and of attention the shares of queries, keys, values and contexts.
        16 * width + 12 * heads_width + 3 * feed_forward
    }

    /// How many numbers these queries, each of which sees these keys, take in all layers together.
    fn numbers(&self, queries: u64, keys: u64, kept: Kept) -> u64 {
        let Self { count, width, heads_width, heads, feed_forward } = *self;
        // The residual stream before and after each sublayer and its normalisation; queries and what heads read, with gates;
        // the sums of attention weights, gates and their gradients.
        let of_query = 8 * width + 4 * heads_width + feed_forward + 4 * heads;
        let of_layer = queries * of_query + keys * 2 * heads_width;
        let pairs = heads * queries * keys;
        // One layer more is on its way; its attention weights in double precision, with their logarithms and products.
        let on_the_way = of_layer + if kept.weights > 0 { 8 * pairs } else { 0 };
        let of_gradients = if kept.has_gradients { count * of_layer } else { 0 };
        of_gradients + count * kept.weights * pairs + on_the_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 layers of 3 heads with 4 numbers each, a residual stream of 10, a block of 7; 5 queries, 6 keys. Of a layer
    /// 5 * (80 + 48 + 7 + 12) + 6 * 24 = 879, and 90 attention weights.
    #[test]
    fn what_is_kept_depends_on_what_is_measured() {
        let layers = Layers { count: 2, width: 10, heads_width: 12, heads: 3, feed_forward: 7 };
        let numbers =
            |measures: &[Measure]| layers.numbers(5, 6, Kept::by(&measures.iter().copied().collect()));
        assert_eq!(numbers(&[Measure::Example]), 3 * 879);
        assert_eq!(numbers(&[Measure::Entropy]), 2 * 90 + 879 + 8 * 90);
        assert_eq!(numbers(&[Measure::Example, Measure::AttentionGradient]), 3 * 879 + 2 * 2 * 90 + 8 * 90);
    }

    /// The same layers, 5 tokens: 5 * 147 + 5 * 24 = 855 of a layer and 75 weights, so that 3 * 855 + 2 * 75 + 8 * 75 are
    /// traced. At each of 5 positions 160 + 144 + 21 = 325 for each target position: of a text one, of a translation five.
    #[test]
    fn relevance_takes_as_much_more_as_there_are_target_positions() {
        let layers = Layers { count: 2, width: 10, heads_width: 12, heads: 3, feed_forward: 7 };
        let of = |targets: fn(u64) -> u64| while_following(vec![layers; 2], targets, 8)(5).likely;
        assert_eq!(of(|_| 1), 8 * (2 * 3315 + 5 * 325));
        assert_eq!(of(|tokens| tokens), 8 * (2 * 3315 + 5 * 5 * 325));
    }
}
