//! The encoder-decoder Transformer of Vaswani et al. (2017) as Marian builds it: normalisation after each sublayer,
//! sinusoidal positions, one embedding table for source, target and output, and a bias on the logits.
//!
//! Names follow transformers' `MarianMTModel`:
//! <https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/marian/modeling_marian.py>.
mod checkpoint;
mod config;
mod sweep;

use tch::{Device, Kind, Tensor};

use crate::attention::{KeyValue, MultiHeadAttention};
use crate::gates::Gate;
use crate::layers::{LayerNorm, Linear};
use crate::pruning::without_heads;
use crate::{
    Attention, Dropout, Error, Gates, HeadLayout, HeadSet, Removal, TokenBatch, Weights, causal_bias,
};

pub use config::{Activation, MarianConfig};
pub use sweep::Variants;

/// Of layer normalisation: PyTorch's default, which Marian models use.
const EPSILON: f64 = 1e-5;

/// A translator.
#[derive(Debug)]
pub struct Marian {
    config: MarianConfig,
    weights: Weights,
    embedding: Tensor,   // [vocab, d_model]
    logits_bias: Tensor, // [vocab]
    positions: Tensor,   // [max_position, d_model]
    encoder: Vec<EncoderLayer>,
    decoder: Vec<DecoderLayer>,
}

#[derive(Debug)]
struct EncoderLayer {
    self_attention: MultiHeadAttention,
    self_attention_norm: LayerNorm,
    feed_forward: FeedForward,
}

#[derive(Debug)]
pub(crate) struct DecoderLayer {
    pub(crate) self_attention: MultiHeadAttention,
    self_attention_norm: LayerNorm,
    pub(crate) encoder_attention: MultiHeadAttention,
    encoder_attention_norm: LayerNorm,
    feed_forward: FeedForward,
}

/// `fc2(activation(fc1(x)))` with its normalisation.
#[derive(Debug)]
struct FeedForward {
    activation: Activation,
    inner: Linear,
    outer: Linear,
    norm: LayerNorm,
}

impl FeedForward {
    fn new(weights: &Weights, name: &str, activation: Activation) -> Result<Self, Error> {
        Ok(Self {
            activation,
            inner: Linear::new(weights, &format!("{name}.fc1"))?,
            outer: Linear::new(weights, &format!("{name}.fc2"))?,
            norm: LayerNorm::new(weights, &format!("{name}.final_layer_norm"), EPSILON)?,
        })
    }

    /// Multiply-adds of one position.
    fn multiply_adds(&self) -> u64 {
        self.inner.multiply_adds() + self.outer.multiply_adds()
    }

    /// `x`: `[batch, position, d_model]`; returns the same shape.
    fn forward(&self, x: &Tensor, dropout: &Dropout) -> Tensor {
        let inner = self.inner.forward(x); // [batch, position, d_ff]
        let inner = match self.activation {
            Activation::Relu => inner.relu(),
            Activation::Swish => inner.silu(),
        };
        self.norm.forward(&(x + dropout.apply(self.outer.forward(&inner))))
    }
}

impl EncoderLayer {
    /// `x`: `[batch, source, d_model]`, `bias`: `[batch, 1, 1, source]`; returns the shape of `x`.
    fn forward(&self, x: &Tensor, bias: &Tensor, gates: Gate<'_>, dropout: &Dropout) -> Tensor {
        let attended = dropout.apply(self.self_attention.forward(x, x, bias, gates, &Dropout::OFF));
        let x = self.self_attention_norm.forward(&(x + attended));
        self.feed_forward.forward(&x, dropout)
    }
}

/// What a decoder layer attends to: the target so far and the source.
pub(crate) struct DecoderMemory<'a> {
    pub(crate) target: &'a KeyValue,
    pub(crate) target_bias: &'a Tensor,
    pub(crate) source: &'a KeyValue,
    pub(crate) source_bias: &'a Tensor,
}

impl DecoderLayer {
    /// `x`: `[batch, query, d_model]`; returns the same shape. `gates`: those of decoder and encoder attention.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        memory: &DecoderMemory<'_>,
        gates: [Gate<'_>; 2],
        dropout: &Dropout,
    ) -> Tensor {
        let attended =
            self.self_attention.attend(x, memory.target, memory.target_bias, gates[0], &Dropout::OFF);
        let x = self.self_attention_norm.forward(&(x + dropout.apply(attended)));
        let attended =
            self.encoder_attention.attend(&x, memory.source, memory.source_bias, gates[1], &Dropout::OFF);
        let x = self.encoder_attention_norm.forward(&(&x + dropout.apply(attended)));
        self.feed_forward.forward(&x, dropout)
    }
}

impl Marian {
    /// A translator on these tensors, which it shares.
    ///
    /// # Errors
    /// If a tensor is missing.
    pub fn new(config: MarianConfig, weights: Weights) -> Result<Self, Error> {
        let embedding = weights.get("model.shared.weight")?;
        let options = (embedding.kind(), embedding.device());
        let encoder = (0..config.encoder_layers).map(|layer| encoder_layer(&config, &weights, layer));
        let decoder = (0..config.decoder_layers).map(|layer| decoder_layer(&config, &weights, layer));
        Ok(Self {
            encoder: encoder.collect::<Result<_, _>>()?,
            decoder: decoder.collect::<Result<_, _>>()?,
            logits_bias: weights.get("final_logits_bias")?.view([-1]),
            positions: sinusoidal_positions(config.max_position_embeddings, config.d_model, options),
            embedding,
            config,
            weights,
        })
    }

    /// Sizes and symbols.
    pub fn config(&self) -> &MarianConfig {
        &self.config
    }

    /// The heads of the model.
    pub fn layout(&self) -> HeadLayout {
        self.config.layout()
    }

    /// The tensors by name; those of a model in training require gradients.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Kind and device of the weights.
    pub fn options(&self) -> (Kind, Device) {
        (self.embedding.kind(), self.embedding.device())
    }

    /// The same model on the same tensors, for another thread.
    pub fn share(&self) -> Result<Self, Error> {
        Self::new(self.config.clone(), self.weights.share())
    }

    /// The model without these heads, which gives the outputs that it gives with them masked.
    ///
    /// # Errors
    /// If it does not have one of them, or no head would be left.
    pub fn without_heads(&self, heads: &HeadSet, removal: Removal) -> Result<Self, Error> {
        let weights = without_heads(&self.weights, &self.layout(), heads, removal, config::projections)?;
        let config = match removal {
            Removal::Cut => self.config.without_heads(heads),
            Removal::Zeros => self.config.clone(),
        };
        Self::new(config, weights)
    }

    /// Encoder states of a batch.
    ///
    /// - `source`: ids `[batch, source]`
    /// - `gates`: those of `enc-enc` are used
    /// - `dropout`: off in evaluation
    /// - returns `[batch, source, d_model]`
    pub fn encode(&self, source: &TokenBatch, gates: &Gates, dropout: &Dropout) -> Tensor {
        let x = dropout.apply(self.embed(&source.ids, 0));
        self.encode_from(0, x, &source.bias, gates, dropout)
    }

    /// Encoder states from what enters layer `first`, counted from 0: `x` `[batch, source, d_model]`, of the same shape.
    fn encode_from(
        &self,
        first: usize,
        x: Tensor,
        bias: &Tensor,
        gates: &Gates,
        dropout: &Dropout,
    ) -> Tensor {
        (first..self.encoder.len()).fold(x, |x, layer| self.encoder_layer(layer, &x, bias, gates, dropout))
    }

    /// What leaves encoder layer `layer`, counted from 0.
    fn encoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        bias: &Tensor,
        gates: &Gates,
        dropout: &Dropout,
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
        dropout: &Dropout,
    ) -> Tensor {
        let mut x = dropout.apply(self.embed(target, 0));
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
        let encoder = self.encoder.iter().map(|layer| {
            layer.self_attention.key_value_multiply_adds(source)
                + layer.self_attention.attend_multiply_adds(source, source)
                + source * layer.feed_forward.multiply_adds()
        });
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
        let logits = steps * beam * self.embedding.numel() as u64;
        encoder.sum::<u64>() + decoder.sum::<u64>() + logits
    }

    /// `hidden`: `[.., d_model]`; returns `[.., vocab]`.
    pub fn logits(&self, hidden: &Tensor) -> Tensor {
        hidden.linear(&self.embedding, Some(&self.logits_bias))
    }

    /// Embeds ids `[batch, position]`, the first of them at position `start`; returns `[batch, position, d_model]`.
    pub(crate) fn embed(&self, ids: &Tensor, start: i64) -> Tensor {
        let embedded = Tensor::embedding(&self.embedding, ids, -1, false, false);
        let scale = if self.config.scale_embedding { (self.config.d_model as f64).sqrt() } else { 1.0 };
        embedded * scale + self.positions.narrow(0, start, ids.size()[1])
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

    /// The embedding table `[vocab, d_model]` and the bias of the logits `[vocab]`.
    pub(crate) fn output_layer(&self) -> (&Tensor, &Tensor) {
        (&self.embedding, &self.logits_bias)
    }
}

fn attention(
    config: &MarianConfig,
    weights: &Weights,
    attention: Attention,
    layer: usize,
) -> Result<MultiHeadAttention, Error> {
    let heads = match attention {
        Attention::EncEnc => config.encoder_attention_heads,
        _ => config.decoder_attention_heads,
    };
    let kept = config.layout().kept(attention, layer);
    MultiHeadAttention::new(weights, &config::projections(attention, layer), (heads, &kept))
}

fn encoder_layer(config: &MarianConfig, weights: &Weights, layer: usize) -> Result<EncoderLayer, Error> {
    let name = format!("model.encoder.layers.{layer}");
    Ok(EncoderLayer {
        self_attention: attention(config, weights, Attention::EncEnc, layer)?,
        self_attention_norm: LayerNorm::new(weights, &format!("{name}.self_attn_layer_norm"), EPSILON)?,
        feed_forward: FeedForward::new(weights, &name, config.activation_function)?,
    })
}

fn decoder_layer(config: &MarianConfig, weights: &Weights, layer: usize) -> Result<DecoderLayer, Error> {
    let name = format!("model.decoder.layers.{layer}");
    Ok(DecoderLayer {
        self_attention: attention(config, weights, Attention::DecDec, layer)?,
        self_attention_norm: LayerNorm::new(weights, &format!("{name}.self_attn_layer_norm"), EPSILON)?,
        encoder_attention: attention(config, weights, Attention::EncDec, layer)?,
        encoder_attention_norm: LayerNorm::new(weights, &format!("{name}.encoder_attn_layer_norm"), EPSILON)?,
        feed_forward: FeedForward::new(weights, &name, config.activation_function)?,
    })
}

/// The table of Vaswani et al. (2017), Section 3.5, in Marian's order: all sines, then all cosines.
///
/// Returns `[positions, d_model]`.
fn sinusoidal_positions(positions: i64, d_model: i64, options: (Kind, Device)) -> Tensor {
    let wide = (Kind::Double, Device::Cpu);
    let rate = (Tensor::arange(d_model / 2, wide) * (-2.0 / d_model as f64 * 10_000_f64.ln())).exp();
    let angle = Tensor::arange(positions, wide).unsqueeze(1) * rate; // [positions, d_model / 2]
    Tensor::cat(&[angle.sin(), angle.cos()], 1).to_kind(options.0).to_device(options.1)
}
