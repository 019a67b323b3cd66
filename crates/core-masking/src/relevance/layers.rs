//! Relevance through whole layers, sublayer by sublayer from the output back.
use tch::Tensor;

use super::attention::AttentionTrace;
use super::propagation::{linear, norm, sum};
use crate::block::PostNorm;
use crate::layers::{FeedForward, LayerNorm, activated};

/// Intermediate values of a layer for one example.
pub(super) struct LayerTrace<'a> {
    attention: AttentionTrace<'a>,
    attended: NormTrace<'a>,
    cross: Option<(AttentionTrace<'a>, NormTrace<'a>)>,
    feed_forward: &'a FeedForward,
    active: Tensor, // after the activation, [position, d_ff]
    fed: NormTrace<'a>,
}

/// Relevance of a layer's heads and inputs.
pub(super) struct LayerRelevance {
    /// Of the head outputs of self-attention, `[n, kept, position, d_head]`.
    pub(super) context: Tensor,
    /// Of the head outputs of cross-attention, and of the encoder states, `[n, source, d_model]`.
    pub(super) cross: Option<(Tensor, Tensor)>,
    /// Of the layer's input, `[n, position, d_model]`.
    pub(super) input: Tensor,
}

impl<'a> LayerTrace<'a> {
    /// - `x`: the layer's input, `[position, d_model]`
    /// - `bias`: broadcasts to `[1, heads, position, position]`
    /// - `source`: for a decoder, the encoder states, `[source, d_model]`, and their bias, `[1, 1, 1, source]`
    pub(super) fn new(
        block: &PostNorm<'a>,
        x: &Tensor,
        bias: &Tensor,
        source: Option<(&Tensor, &Tensor)>,
    ) -> Self {
        let (module, norm) = block.attention;
        let attention = AttentionTrace::new(module, x, x, bias);
        let attended = NormTrace::new(norm, x, &attention.added);
        let cross = block.cross.zip(source).map(|((module, norm), (memory, bias))| {
            let attention = AttentionTrace::new(module, &attended.output, memory, bias);
            let read = NormTrace::new(norm, &attended.output, &attention.added);
            (attention, read)
        });
        let (feed_forward, norm) = block.feed_forward;
        let x = cross.as_ref().map_or(&attended.output, |(_, read)| &read.output);
        let active = activated(feed_forward.activation, &feed_forward.inner.forward(x));
        let fed = NormTrace::new(norm, x, &feed_forward.outer.forward(&active));
        Self { attention, attended, cross, feed_forward, active, fed }
    }

    pub(super) fn output(&self) -> &Tensor {
        &self.fed.output
    }

    /// Propagates the relevance of the output, `[n, position, d_model]`. Activations pass it on unchanged, in the paper and in the code.
    pub(super) fn propagate(&self, relevance: &Tensor) -> LayerRelevance {
        let [of_input, of_fed] = self.fed.propagate(relevance);
        let of_active = linear(&of_fed, &self.active, &[&self.feed_forward.outer]);
        let mut at = of_input + linear(&of_active, &self.fed.x, &[&self.feed_forward.inner]);
        let cross = self.cross.as_ref().map(|(attention, read)| {
            let [of_input, of_added] = read.propagate(&at);
            let (context, [of_query, memory]) = attention.propagate_cross(&of_added);
            at = of_input + of_query;
            (context, memory)
        });
        let [of_input, of_added] = self.attended.propagate(&at);
        let (context, of_attended) = self.attention.propagate_own(&of_added);
        LayerRelevance { context, cross, input: of_input + of_attended }
    }
}

/// `norm(x + y)`.
struct NormTrace<'a> {
    norm: &'a LayerNorm,
    x: Tensor,
    y: Tensor,
    output: Tensor,
}

impl<'a> NormTrace<'a> {
    fn new(norm: &'a LayerNorm, x: &Tensor, y: &Tensor) -> Self {
        Self { norm, x: x.shallow_clone(), y: y.shallow_clone(), output: norm.forward(&(x + y)) }
    }

    /// Returns the relevance of `x` and `y`.
    fn propagate(&self, relevance: &Tensor) -> [Tensor; 2] {
        sum(&norm(relevance, &(&self.x + &self.y), self.norm), &self.x, &self.y)
    }
}
