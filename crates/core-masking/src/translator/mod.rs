//! Encoder-decoder models. Families such as Marian define tensor names and how the [`Layers`] are built.
mod checkpoint;
mod layers;
mod sweep;

use std::collections::BTreeMap;

use tch::Tensor;

use crate::importance::Attended;
use crate::loss::{PairBatch, token_losses};
use crate::model::GatedModel;
use crate::{Attention, Error, Gates, ModelDropout, TokenBatch, Weights, causal_bias, product};

pub use families::tables::TranslatorFamily;
use families::translator::TranslatorParts;
pub use families::translator::{RelativeEntries, TranslatorConfig};
pub use layers::Layers;
pub(crate) use layers::{DecoderMemory, Reader};

use layers::{DecoderAttention, TeacherForced};

/// An encoder-decoder model.
#[derive(Debug)]
pub struct Translator {
    config: TranslatorConfig,
    weights: Weights,
    pub(crate) layers: Layers,
}

impl GatedModel for Translator {
    type Config = TranslatorConfig;
    type Examples = PairBatch;

    fn new(config: TranslatorConfig, weights: Weights) -> Result<Self, Error> {
        let layers = Layers::new(&config, config.parts(&mut &weights)?, weights.options());
        Ok(Self { config, weights, layers })
    }

    fn config(&self) -> &TranslatorConfig {
        &self.config
    }

    fn weights(&self) -> &Weights {
        &self.weights
    }

    fn losses(&self, batch: &PairBatch, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        let losses = token_losses(self, batch, gates, 0.0, dropout).losses; // [batch, target]
        (losses * &batch.real).sum_dim_intlist(1, false, None)
    }

    /// Queries are source positions for `enc-enc`, and target positions otherwise.
    fn attended(&self, batch: &PairBatch) -> BTreeMap<Attention, Attended> {
        let end = i64::from(self.config.eos_token_id);
        let source = batch.source.bias.isfinite().squeeze_dim(1).squeeze_dim(1); // [batch, source]
        let target = batch.real.ne(0.0); // [batch, target]
        let past = causal_bias(target.size()[1], self.options()).isfinite(); // [1, 1, target, target]
        let attended = |queries: &Tensor, visible: &Tensor, keys: &Tensor| Attended {
            queries: queries.shallow_clone(),
            visible: vec![visible.shallow_clone()],
            excluded: keys.eq(end),
            last_by_example: false,
            examples: None,
        };
        let source_keys = source.unsqueeze(1).unsqueeze(1); // [batch, 1, 1, source]
        BTreeMap::from([
            (Attention::EncEnc, attended(&source, &source_keys, &batch.source.ids)),
            (Attention::EncDec, attended(&target, &source_keys, &batch.source.ids)),
            (Attention::DecDec, attended(&target, &past, &batch.decoder_input)),
        ])
    }

    fn probe(&self, gates: &Gates) -> Tensor {
        let config = &self.config;
        let most =
            config.max_position_embeddings.min(config.vocab_size).min(config.target_vocabulary()).min(8);
        let ids: Vec<u32> = (0..most as u32).collect();
        let batch = PairBatch::new(self, &[&ids], &[&ids]);
        let memory = self.encode(&batch.source, gates, &ModelDropout::OFF);
        let hidden =
            self.decode(&batch.decoder_input, &memory, &batch.source.bias, gates, &ModelDropout::OFF);
        self.logits(&hidden)
    }
}

impl Translator {
    /// Encodes a batch; returns encoder states.
    ///
    /// - `source`: ids `[batch, source]`
    /// - `gates`: of which `enc-enc` is used
    /// - `dropout`: off in evaluation
    /// - returns `[batch, source, d_model]`
    pub fn encode(&self, source: &TokenBatch, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        let x = dropout.hidden.apply(self.layers.embed_source(&source.ids));
        self.encode_from(0, x, &source.bias, gates, dropout)
    }

    /// Encodes from layer `first`, counted from 0, with input `x`; both `[batch, source, d_model]`.
    fn encode_from(
        &self,
        first: usize,
        x: Tensor,
        bias: &Tensor,
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        let x = (first..self.config.encoder_layers).fold(x, |x, layer| {
            self.layers.encoder_layer(layer, &x, bias, gates.of(Attention::EncEnc, layer), dropout)
        });
        self.layers.encoder_states(&x)
    }

    /// Returns decoder states, teacher forced.
    ///
    /// - `target`: decoder input ids `[batch, target]`, starting with the start token
    /// - `memory`: encoder states `[batch, source, d_model]`; `source_bias`: `[batch, 1, 1, source]`
    /// - `gates`: of which `dec-dec` and `enc-dec` are used
    /// - returns `[batch, target, d_model]`
    pub fn decode(
        &self,
        target: &Tensor,
        memory: &Tensor,
        source_bias: &Tensor,
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        let x = dropout.hidden.apply(self.layers.embed_target(target, 0));
        let causal_bias = causal_bias(target.size()[1], self.options());
        let mut memory = TeacherForced { states: memory, source_bias, causal_bias };
        self.decode_with(&mut memory, x, gates, dropout)
    }

    /// Returns decoder states of embedded tokens that attend to `memory`; both `[batch, query, d_model]`.
    pub(crate) fn decode_with(
        &self,
        memory: &mut dyn DecoderMemory,
        x: Tensor,
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        let mut attention = DecoderAttention { memory, gates, dropout: &dropout.attention };
        let layers = 0..self.config.decoder_layers;
        let x = layers.fold(x, |x, layer| self.layers.decoder_layer(layer, &x, &mut attention, dropout));
        self.layers.decoder_states(&x)
    }

    /// Returns the multiply-adds of the matrix products, nearly all of the work, in translating a sentence padded to `source` tokens in
    /// `steps` steps of beam search. The padding of cached keys to whole blocks is not counted.
    pub fn multiply_adds(&self, source: u64, steps: u64, beam: u64) -> u64 {
        let [of_encoder, of_decoder] = self.layers.feed_forward_multiply_adds();
        let module = |attention, layer| self.layers.module(attention, layer);
        let encoder = (0..self.config.encoder_layers).map(|layer| {
            let attention = module(Attention::EncEnc, layer);
            attention.key_value_multiply_adds(source)
                + attention.attend_multiply_adds(source, source)
                + source * of_encoder
        });
        // At step t each hypothesis attends to the t tokens of all hypotheses in its beam, most of them hidden.
        let seen: u64 = (1..=steps).map(|step| step * beam).sum();
        let decoder = (0..self.config.decoder_layers).map(|layer| {
            let [target, memory] = [Attention::DecDec, Attention::EncDec].map(|kind| module(kind, layer));
            let scores = target.attend_multiply_adds(beam, 1) - target.attend_multiply_adds(beam, 0);
            memory.key_value_multiply_adds(source)
                + steps * (target.key_value_multiply_adds(beam) + target.attend_multiply_adds(beam, 0))
                + seen * scores
                + steps * memory.attend_multiply_adds(beam, source)
                + steps * beam * of_decoder
        });
        let logits = steps * beam * self.layers.output_layer().0.numel() as u64;
        encoder.sum::<u64>() + decoder.sum::<u64>() + logits
    }

    /// Computes the logits, `[.., vocab]`, of `hidden`, `[.., d_model]`.
    pub fn logits(&self, hidden: &Tensor) -> Tensor {
        let (weight, bias) = self.layers.output_layer();
        product::linear(hidden, weight, Some(bias))
    }

    /// Refuses a sentence that is longer than the model's positions. `length` counts tokens, including EOS.
    pub(crate) fn check_length(&self, side: &str, length: usize) -> Result<(), Error> {
        let positions = self.config.max_position_embeddings as usize;
        if length > positions { Err(Error::too_long(side, length, positions)) } else { Ok(()) }
    }
}
