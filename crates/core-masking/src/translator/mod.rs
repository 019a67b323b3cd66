//! The encoder-decoder Transformer of Vaswani et al. (2017): normalisation after each sublayer, sinusoidal positions, and an
//! output layer that is the embedding table of the target. Families such as Marian say what the parts are called, whether
//! source and target share their table, and how positions count.
mod checkpoint;
mod config;
mod family;
mod sweep;

use std::collections::BTreeMap;

use tch::Tensor;

use crate::attention::{KeyValue, MultiHeadAttention};
use crate::encoder::{EncoderLayer, LayerSettings};
use crate::gates::Gate;
use crate::importance::Attended;
use crate::layers::{FeedForward, LayerNorm};
use crate::loss::{PairBatch, token_losses};
use crate::model::{GatedModel, ModelConfig};
use crate::{Attention, Dropout, Error, Gates, ModelDropout, TokenBatch, Weights, causal_bias, product};

pub use config::TranslatorConfig;
pub use family::{EmbeddingNames, Sinusoids, TranslatorFamily};

/// Of layer normalisation: PyTorch's default, which all families use.
const EPSILON: f64 = 1e-5;

/// A translator.
#[derive(Debug)]
pub struct Translator {
    config: TranslatorConfig,
    weights: Weights,
    source: Tensor,      // [source vocab, d_model]
    target: Tensor,      // [target vocab, d_model]
    logits_bias: Tensor, // [target vocab]
    positions: Tensor,   // [max_position, d_model]
    encoder: Vec<EncoderLayer>,
    decoder: Vec<DecoderLayer>,
}

#[derive(Debug)]
pub(crate) struct DecoderLayer {
    pub(crate) self_attention: MultiHeadAttention,
    pub(crate) self_attention_norm: LayerNorm,
    pub(crate) encoder_attention: MultiHeadAttention,
    pub(crate) encoder_attention_norm: LayerNorm,
    pub(crate) feed_forward: FeedForward,
    pub(crate) norm: LayerNorm,
}

/// What a decoder layer attends to: the target so far and the source.
pub(crate) struct DecoderMemory<'a> {
    pub(crate) target: &'a KeyValue,
    pub(crate) target_bias: &'a Tensor,
    pub(crate) source: &'a KeyValue,
    pub(crate) source_bias: &'a Tensor,
}

impl DecoderLayer {
    fn new(config: &TranslatorConfig, weights: &Weights, layer: usize) -> Result<Self, Error> {
        let layout = config.layout();
        let attention = |attention| {
            let heads = layout.module(attention, layer);
            MultiHeadAttention::new(weights, &config.projections(attention, layer), &heads)
        };
        let names = config::layer_names(config, Attention::DecDec, layer);
        let norm = |name: &str| LayerNorm::new(weights, name, EPSILON);
        Ok(Self {
            self_attention: attention(Attention::DecDec)?,
            self_attention_norm: norm(&names.attention_norm)?,
            encoder_attention: attention(Attention::EncDec)?,
            encoder_attention_norm: norm(&config::attention_norm(Attention::EncDec, layer))?,
            feed_forward: FeedForward::new(
                weights,
                [&names.inner, &names.outer],
                config.activation_function,
            )?,
            norm: norm(&names.norm)?,
        })
    }

    /// `x`: `[batch, query, d_model]`; returns the same shape. `gates`: those of decoder and encoder attention.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        memory: &DecoderMemory<'_>,
        gates: [Gate<'_>; 2],
        ModelDropout { hidden, attention, .. }: &ModelDropout,
    ) -> Tensor {
        let attended = self.self_attention.attend(x, memory.target, memory.target_bias, gates[0], attention);
        let x = self.with_target(x, attended, hidden);
        let attended =
            self.encoder_attention.attend(&x, memory.source, memory.source_bias, gates[1], attention);
        self.with_source(&x, attended, hidden)
    }

    /// What enters the attention to the source: `attended` is what that to the target adds; all `[batch, query, d_model]`.
    pub(crate) fn with_target(&self, x: &Tensor, attended: Tensor, dropout: &Dropout) -> Tensor {
        self.self_attention_norm.forward(&(x + dropout.apply(attended)))
    }

    /// The layer's output: `x` enters the attention to the source, and `attended` is what that adds; all
    /// `[batch, query, d_model]`.
    pub(crate) fn with_source(&self, x: &Tensor, attended: Tensor, dropout: &Dropout) -> Tensor {
        let x = self.encoder_attention_norm.forward(&(x + dropout.apply(attended)));
        let fed = self.feed_forward.forward(&x);
        self.norm.forward(&(&x + dropout.apply(fed)))
    }
}

impl GatedModel for Translator {
    type Config = TranslatorConfig;
    type Examples = PairBatch;

    fn new(config: TranslatorConfig, weights: Weights) -> Result<Self, Error> {
        let (layout, names) = (config.layout(), &config.family.embeddings);
        let settings = LayerSettings { activation: config.activation_function, epsilon: EPSILON };
        let encoder = (0..config.encoder_layers).map(|layer| {
            let heads = layout.module(Attention::EncEnc, layer);
            EncoderLayer::new(
                &weights,
                &config::layer_names(&config, Attention::EncEnc, layer),
                &heads,
                settings,
            )
        });
        let decoder = (0..config.decoder_layers).map(|layer| DecoderLayer::new(&config, &weights, layer));
        let target = weights.get(config.target_embedding())?;
        let options = (target.kind(), target.device());
        let bias = names.bias.map(|name| Ok::<_, Error>(weights.get(name)?.view([-1]))).transpose()?;
        let (rows, sinusoids) = (config.max_position_embeddings, config.family.sinusoids);
        let first = sinusoids.first_row(config.pad_token_id);
        Ok(Self {
            encoder: encoder.collect::<Result<_, _>>()?,
            decoder: decoder.collect::<Result<_, _>>()?,
            source: weights.get(names.source)?,
            logits_bias: bias.unwrap_or_else(|| Tensor::zeros([target.size()[0]], options)),
            positions: sinusoids.table(first, rows, config.d_model, options),
            target,
            config,
            weights,
        })
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
    /// Encoder states of a batch.
    ///
    /// - `source`: ids `[batch, source]`
    /// - `gates`: those of `enc-enc` are used
    /// - `dropout`: off in evaluation
    /// - returns `[batch, source, d_model]`
    pub fn encode(&self, source: &TokenBatch, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        let x = dropout.hidden.apply(self.embed_source(&source.ids));
        self.encode_from(0, x, &source.bias, gates, dropout)
    }

    /// Encoder states from what enters layer `first`, counted from 0: `x` `[batch, source, d_model]`, of the same shape.
    fn encode_from(
        &self,
        first: usize,
        x: Tensor,
        bias: &Tensor,
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        (first..self.encoder.len()).fold(x, |x, layer| self.encoder_layer(layer, &x, bias, gates, dropout))
    }

    /// What leaves encoder layer `layer`, counted from 0: `x` and the result are `[batch, source, d_model]`, `bias` is
    /// `[batch, 1, 1, source]`.
    fn encoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        bias: &Tensor,
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        self.encoder[layer].forward(x, bias, gates.of(Attention::EncEnc, layer), dropout)
    }

    /// Decoder states, teacher forced.
    ///
    /// - `target`: decoder input ids `[batch, target]`, which begin with the start symbol
    /// - `memory`: encoder states `[batch, source, d_model]`; `source_bias`: `[batch, 1, 1, source]`
    /// - `gates`: those of `dec-dec` and `enc-dec` are used
    /// - returns `[batch, target, d_model]`
    pub fn decode(
        &self,
        target: &Tensor,
        memory: &Tensor,
        source_bias: &Tensor,
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        let mut x = dropout.hidden.apply(self.embed_target(target, 0));
        // Padding stands on the right, so no real position sees it through the causal bias.
        let target_bias = &causal_bias(target.size()[1], self.options());
        for (index, layer) in self.decoder.iter().enumerate() {
            let memory = DecoderMemory {
                target: &layer.self_attention.keys_values(&x),
                target_bias,
                source: &layer.encoder_attention.keys_values(memory),
                source_bias,
            };
            let gates = [gates.of(Attention::DecDec, index), gates.of(Attention::EncDec, index)];
            x = layer.forward(&x, &memory, gates, dropout);
        }
        x
    }

    /// Multiply-adds of translating one sentence, padded to `source` tokens, in `steps` steps of a beam: those of matrix
    /// products, which are nearly all. Keys in excess, with which the cache fills up its blocks, are not counted.
    pub fn multiply_adds(&self, source: u64, steps: u64, beam: u64) -> u64 {
        let encoder = self.encoder.iter().map(|layer| layer.multiply_adds(source, source));
        // At step t each hypothesis looks at the t tokens of every one in its beam, most of them hidden.
        let seen: u64 = (1..=steps).map(|step| step * beam).sum();
        let decoder = self.decoder.iter().map(|layer| {
            let (target, memory) = (&layer.self_attention, &layer.encoder_attention);
            let scores = target.attend_multiply_adds(beam, 1) - target.attend_multiply_adds(beam, 0);
            memory.key_value_multiply_adds(source)
                + steps * (target.key_value_multiply_adds(beam) + target.attend_multiply_adds(beam, 0))
                + seen * scores
                + steps * memory.attend_multiply_adds(beam, source)
                + steps * beam * layer.feed_forward.multiply_adds()
        });
        let logits = steps * beam * self.target.numel() as u64;
        encoder.sum::<u64>() + decoder.sum::<u64>() + logits
    }

    /// `hidden`: `[.., d_model]`; returns `[.., vocab]`.
    pub fn logits(&self, hidden: &Tensor) -> Tensor {
        product::linear(hidden, &self.target, Some(&self.logits_bias))
    }

    /// Embeds source ids `[batch, position]`: `[batch, position, d_model]`.
    pub(crate) fn embed_source(&self, ids: &Tensor) -> Tensor {
        self.embed(&self.source, ids, 0)
    }

    /// Embeds target ids `[batch, position]`, the first of them at position `start`: `[batch, position, d_model]`.
    pub(crate) fn embed_target(&self, ids: &Tensor, start: i64) -> Tensor {
        self.embed(&self.target, ids, start)
    }

    fn embed(&self, table: &Tensor, ids: &Tensor, start: i64) -> Tensor {
        let embedded = Tensor::embedding(table, ids, -1, false, false);
        let scale = if self.config.scale_embedding { (self.config.d_model as f64).sqrt() } else { 1.0 };
        embedded * scale + self.positions.narrow(0, start, ids.size()[1])
    }

    pub(crate) fn encoder_layers(&self) -> &[EncoderLayer] {
        &self.encoder
    }

    pub(crate) fn decoder_layers(&self) -> &[DecoderLayer] {
        &self.decoder
    }

    /// Refuses a sentence that is longer than the model's positions. `length` counts tokens, the end symbol included.
    ///
    /// # Errors
    /// If there are not enough positions.
    pub(crate) fn check_length(&self, side: &'static str, length: usize) -> Result<(), Error> {
        let positions = self.config.max_position_embeddings as usize;
        if length > positions { Err(Error::TooLong { side, length, positions }) } else { Ok(()) }
    }

    /// The output layer, `[target vocab, d_model]`, and the bias of the logits, `[target vocab]`.
    pub(crate) fn output_layer(&self) -> (&Tensor, &Tensor) {
        (&self.target, &self.logits_bias)
    }
}
