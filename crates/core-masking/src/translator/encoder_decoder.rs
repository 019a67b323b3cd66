//! The seam between an encoder-decoder architecture and all that is done to one: search, losses, sweeps, measures, removal.
use std::fmt::Debug;

use tch::Tensor;

use super::TranslatorConfig;
use crate::attention::MultiHeadAttention;
use crate::gates::Gate;
use crate::model::Module;
use crate::weights::Inventory;
use crate::{Attention, Dropout, Error, Gates, ModelDropout, Projections, Weights};

use super::vaswani::VaswaniLayers;

/// The layers of an encoder-decoder model. Layers are counted from 0.
///
/// A decoder layer is written once and serves both teacher forcing and a step of decoding, where the hypotheses of a sentence
/// take the place of its queries: [`DecoderAttention`] says what there is to attend to. Each module's residual stream goes through
/// [`Gate::passing`].
pub trait EncoderDecoder: Debug + Send {
    /// Embeds source ids, `[batch, source]`: `[batch, source, d_model]`.
    fn embed_source(&self, ids: &Tensor) -> Tensor;

    /// Embeds target ids, `[batch, target]`, the first of them at position `start`: `[batch, target, d_model]`.
    fn embed_target(&self, ids: &Tensor, start: i64) -> Tensor;

    /// Output of an encoder layer; `x` and the result are `[batch, source, d_model]`, `bias` is `[batch, 1, 1, source]`.
    fn encoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        bias: &Tensor,
        gate: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor;

    /// Encoder states from the output of the last layer, `[batch, source, d_model]`: the place of a last normalisation.
    fn encoder_states(&self, x: Tensor) -> Tensor {
        x
    }

    /// Output of a decoder layer; `x` and the result are `[batch, query, d_model]`.
    fn decoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        attention: &mut DecoderAttention<'_>,
        dropout: &ModelDropout,
    ) -> Tensor;

    /// Input of the output layer from the output of the last decoder layer, `[batch, query, d_model]`.
    fn decoder_states(&self, x: Tensor) -> Tensor {
        x
    }

    /// The module of an attention type in a layer.
    fn module(&self, attention: Attention, layer: usize) -> &MultiHeadAttention;

    /// Multiply-adds of the feed-forward block of an encoder layer and of a decoder layer, for one position.
    fn feed_forward_multiply_adds(&self) -> [u64; 2];

    /// The output layer, `[target vocab, d_model]`, and the bias of the logits, `[target vocab]`.
    fn output_layer(&self) -> (&Tensor, &Tensor);

    /// The model as layers with normalisation behind each sublayer, the only ones that relevance has rules for.
    fn as_post_norm(&self) -> Option<&VaswaniLayers> {
        None
    }
}

/// An architecture: the tensors that its layers have, and how to build a model on them.
#[derive(Debug)]
pub struct Architecture {
    /// Names of the linear maps of an attention module; layers are counted from 0.
    pub projections: fn(Attention, usize) -> Projections,
    /// Refuses settings that these layers cannot have: the fault, in words.
    pub check: fn(&TranslatorConfig) -> Result<(), String>,
    /// Names and shapes of all tensors but embeddings and output layer.
    pub inventory: fn(&TranslatorConfig) -> Inventory,
    /// The layers on these tensors.
    pub build: Build,
}

/// Builds the layers of a model on its tensors.
pub type Build = fn(&TranslatorConfig, &Weights) -> Result<Box<dyn EncoderDecoder>, Error>;

/// Attention of decoder layers to the target so far and to the source, under the gates of a pass.
pub struct DecoderAttention<'a> {
    pub(crate) memory: &'a mut dyn DecoderMemory,
    pub(crate) gates: &'a Gates,
    /// Of attention weights.
    pub(crate) dropout: &'a Dropout,
}

impl DecoderAttention<'_> {
    /// Attention of `x` to the target so far, itself included; both `[batch, query, d_model]`.
    pub fn to_target(&mut self, layer: usize, module: &MultiHeadAttention, x: &Tensor) -> Tensor {
        self.memory.of_target(layer, module, x, self.gates.of(Attention::DecDec, layer), self.dropout)
    }

    /// [`Gate::passing`] of a module.
    pub fn passing(&self, (attention, layer): Module, before: &Tensor, behind: Tensor) -> Tensor {
        self.gates.of(attention, layer).passing(before, behind)
    }

    /// Attention of `x` to the encoder states; both `[batch, query, d_model]`.
    pub fn to_source(&mut self, layer: usize, module: &MultiHeadAttention, x: &Tensor) -> Tensor {
        self.memory.of_source(layer, module, x, self.gates.of(Attention::EncDec, layer), self.dropout)
    }
}

/// Keys and values of the target so far and of the source, for all layers of a decoder.
pub(crate) trait DecoderMemory {
    /// Context of `x` in the target so far, itself included, whose keys and values are kept; both `[batch, query, d_model]`.
    fn of_target(
        &mut self,
        layer: usize,
        attention: &MultiHeadAttention,
        x: &Tensor,
        gate: Gate<'_>,
        dropout: &Dropout,
    ) -> Tensor;

    /// Context of `x` in the source; the same shapes.
    fn of_source(
        &self,
        layer: usize,
        attention: &MultiHeadAttention,
        x: &Tensor,
        gate: Gate<'_>,
        dropout: &Dropout,
    ) -> Tensor;
}

/// All positions of a target at once, each of which sees itself and those before.
pub(super) struct TeacherForced<'a> {
    /// Encoder states, `[batch, source, d_model]`.
    pub(super) states: &'a Tensor,
    /// `[batch, 1, 1, source]`
    pub(super) source_bias: &'a Tensor,
    /// Padding stands on the right, so no real position sees it through this: `[1, 1, target, target]`.
    pub(super) causal_bias: Tensor,
}

impl DecoderMemory for TeacherForced<'_> {
    fn of_target(
        &mut self,
        _: usize,
        attention: &MultiHeadAttention,
        x: &Tensor,
        gate: Gate<'_>,
        dropout: &Dropout,
    ) -> Tensor {
        attention.forward(x, x, &attention.with_distances(&self.causal_bias), gate, dropout)
    }

    fn of_source(
        &self,
        _: usize,
        attention: &MultiHeadAttention,
        x: &Tensor,
        gate: Gate<'_>,
        dropout: &Dropout,
    ) -> Tensor {
        attention.forward(x, self.states, self.source_bias, gate, dropout)
    }
}
