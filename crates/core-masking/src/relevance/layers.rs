//! Relevance through whole layers, sublayer by sublayer from the top.
use tch::Tensor;

use super::Rule;
use super::attention::AttentionTrace;
use crate::Dropout;
use crate::batch::causal_bias;
use crate::block::PostNorm;
use crate::layers::{FeedForward, LayerNorm, activated};

/// Intermediate values of an encoder layer for one example.
pub(super) struct EncoderTrace<'a> {
    attention: AttentionTrace<'a>,
    attended: NormTrace<'a>,
    fed: FedTrace<'a>,
    /// Output of the layer, `[position, d_model]`.
    pub(super) output: Tensor,
}

/// Relevance within a layer of an encoder.
pub(super) struct EncoderRelevance {
    /// Of what each head reads, `[n, kept, position, d_head]`.
    pub(super) context: Tensor,
    /// Of what enters the layer, `[n, position, d_model]`.
    pub(super) input: Tensor,
}

impl<'a> EncoderTrace<'a> {
    /// - `x`: what enters the layer, `[position, d_model]`
    /// - `bias`: `[1, 1, 1, position]`
    pub(super) fn new(block: &PostNorm<'a>, x: &Tensor, bias: &Tensor) -> Self {
        let (batch, (attention, norm)) = (x.unsqueeze(0), block.attention);
        let keys = attention.project(&attention.key, &batch);
        let bias = attention.scored(bias, &attention.queries(&batch), &keys, &Dropout::OFF);
        let attention = AttentionTrace::new(attention, x, None, &bias);
        let attended = NormTrace::new(norm, x, &attention.added);
        let fed = FedTrace::new(block.feed_forward, &attended.output);
        Self { output: fed.norm.output.shallow_clone(), attention, attended, fed }
    }

    /// - `relevance`: of the output, `[n, position, d_model]`
    pub(super) fn propagate(&self, relevance: &Tensor, rule: Rule) -> EncoderRelevance {
        let [of_input, of_added] = self.attended.propagate(&self.fed.propagate(relevance, rule), rule);
        let found = self.attention.propagate(&of_added, rule);
        EncoderRelevance { context: found.context, input: of_input + found.query_input }
    }
}

/// Intermediate values of a decoder layer for one example.
pub(super) struct DecoderTrace<'a> {
    self_attention: AttentionTrace<'a>,
    attended: NormTrace<'a>,
    encoder_attention: AttentionTrace<'a>,
    read: NormTrace<'a>,
    fed: FedTrace<'a>,
    /// Output of the layer, `[target, d_model]`.
    pub(super) output: Tensor,
}

/// Relevance within a layer of a decoder.
pub(super) struct DecoderRelevance {
    /// Of what each head of self-attention reads, `[n, kept, target, d_head]`.
    pub(super) self_context: Tensor,
    /// The same of attention to the encoder.
    pub(super) encoder_context: Tensor,
    /// Of what enters the layer, `[n, target, d_model]`.
    pub(super) input: Tensor,
    /// Of the encoder's states, `[n, source, d_model]`.
    pub(super) memory: Tensor,
}

impl<'a> DecoderTrace<'a> {
    /// - `x`: what enters the layer, `[target, d_model]`
    /// - `memory`: the encoder's states, `[source, d_model]`; `source_bias`: `[1, 1, 1, source]`
    pub(super) fn new(block: &PostNorm<'a>, x: &Tensor, memory: &Tensor, source_bias: &Tensor) -> Self {
        let past = causal_bias(x.size()[0], (x.kind(), x.device()));
        let (attention, norm) = block.attention;
        let self_attention = AttentionTrace::new(attention, x, None, &past);
        let attended = NormTrace::new(norm, x, &self_attention.added);
        let (attention, norm) = block.cross.expect("a decoder attends to the source");
        let encoder_attention = AttentionTrace::new(attention, &attended.output, Some(memory), source_bias);
        let read = NormTrace::new(norm, &attended.output, &encoder_attention.added);
        let fed = FedTrace::new(block.feed_forward, &read.output);
        let output = fed.norm.output.shallow_clone();
        Self { self_attention, attended, encoder_attention, read, fed, output }
    }

    /// - `relevance`: of the output, `[n, target, d_model]`
    pub(super) fn propagate(&self, relevance: &Tensor, rule: Rule) -> DecoderRelevance {
        let [of_attended, of_read] = self.read.propagate(&self.fed.propagate(relevance, rule), rule);
        let read = self.encoder_attention.propagate(&of_read, rule);
        let [of_input, of_added] = self.attended.propagate(&(of_attended + read.query_input), rule);
        let attended = self.self_attention.propagate(&of_added, rule);
        DecoderRelevance {
            self_context: attended.context,
            encoder_context: read.context,
            input: of_input + attended.query_input,
            memory: read.memory.expect("this attention has a memory of its own"),
        }
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
        let output = norm.forward(&(x + y));
        Self { norm, x: x.shallow_clone(), y: y.shallow_clone(), output }
    }

    /// Of `x` and `y`.
    fn propagate(&self, relevance: &Tensor, rule: Rule) -> [Tensor; 2] {
        rule.residual(&rule.norm(relevance, &(&self.x + &self.y), self.norm), &self.x, &self.y)
    }
}

/// A feed-forward block with the norm behind it. Both sources ignore the nonlinearity: it hands on what it is given.
struct FedTrace<'a> {
    block: &'a FeedForward,
    x: Tensor,
    active: Tensor, // behind the nonlinearity, [position, d_ff]
    norm: NormTrace<'a>,
}

impl<'a> FedTrace<'a> {
    fn new((block, norm): (&'a FeedForward, &'a LayerNorm), x: &Tensor) -> Self {
        let active = activated(block.activation, &block.inner.forward(x));
        let norm = NormTrace::new(norm, x, &block.outer.forward(&active));
        Self { block, x: x.shallow_clone(), active, norm }
    }

    /// Of what enters the block.
    fn propagate(&self, relevance: &Tensor, rule: Rule) -> Tensor {
        let [of_input, of_fed] = self.norm.propagate(relevance, rule);
        let of_active = rule.linear(&of_fed, &self.active, &self.block.outer);
        of_input + rule.linear(&of_active, &self.x, &self.block.inner)
    }
}
