//! The layers of Vaswani et al. (2017): normalisation after each sublayer, sinusoidal positions, an output layer that is the
//! embedding table of the target. Marian's and fairseq's translators are built of them.
use tch::Tensor;

use super::{Architecture, DecoderAttention, EncoderDecoder, TranslatorConfig};
use crate::attention::MultiHeadAttention;
use crate::encoder::{EncoderLayer, LayerNames, LayerSettings};
use crate::gates::Gate;
use crate::layers::{FeedForward, LayerNorm};
use crate::model::ModelConfig;
use crate::weights::{Inventory, linear, norm};
use crate::{Attention, Error, ModelDropout, Projections, Weights};

/// Added to the variance in layer normalisation: PyTorch's default, which both families use.
const EPSILON: f64 = 1e-5;

/// Layers with normalisation after each sublayer.
pub static POST_NORM: Architecture = Architecture {
    projections,
    inventory,
    build: |config, weights| Ok(Box::new(PostNorm::new(config, weights)?)),
};

/// A model of such layers.
#[derive(Debug)]
pub struct PostNorm {
    source: Tensor,      // [source vocab, d_model]
    target: Tensor,      // [target vocab, d_model]
    logits_bias: Tensor, // [target vocab]
    positions: Tensor,   // [max_position, d_model]
    embedding_scale: f64,
    pub(crate) encoder: Vec<EncoderLayer>,
    pub(crate) decoder: Vec<DecoderLayer>,
}

/// A layer of a decoder.
#[derive(Debug)]
pub(crate) struct DecoderLayer {
    pub(crate) self_attention: MultiHeadAttention,
    pub(crate) self_attention_norm: LayerNorm,
    pub(crate) encoder_attention: MultiHeadAttention,
    pub(crate) encoder_attention_norm: LayerNorm,
    pub(crate) feed_forward: FeedForward,
    pub(crate) norm: LayerNorm,
}

impl PostNorm {
    fn new(config: &TranslatorConfig, weights: &Weights) -> Result<Self, Error> {
        let (layout, names) = (config.layout(), &config.family.embeddings);
        let settings = LayerSettings { activation: config.activation_function, epsilon: EPSILON };
        let encoder = (0..config.encoder_layers).map(|layer| {
            let heads = layout.module(Attention::EncEnc, layer);
            EncoderLayer::new(weights, &layer_names(Attention::EncEnc, layer), &heads, settings)
        });
        let decoder = (0..config.decoder_layers).map(|layer| DecoderLayer::new(config, weights, layer));
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
            embedding_scale: if config.scale_embedding { (config.d_model as f64).sqrt() } else { 1.0 },
            target,
        })
    }

    fn embed(&self, table: &Tensor, ids: &Tensor, start: i64) -> Tensor {
        let embedded = Tensor::embedding(table, ids, -1, false, false);
        embedded * self.embedding_scale + self.positions.narrow(0, start, ids.size()[1])
    }
}

impl EncoderDecoder for PostNorm {
    fn embed_source(&self, ids: &Tensor) -> Tensor {
        self.embed(&self.source, ids, 0)
    }

    fn embed_target(&self, ids: &Tensor, start: i64) -> Tensor {
        self.embed(&self.target, ids, start)
    }

    fn encoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        bias: &Tensor,
        gate: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        self.encoder[layer].forward(x, bias, gate, dropout)
    }

    fn decoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        attention: &mut DecoderAttention<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let (own, dropout) = (&self.decoder[layer], &dropout.hidden);
        let attended = attention.to_target(layer, &own.self_attention, x);
        let x = own.self_attention_norm.forward(&(x + dropout.apply(attended)));
        let attended = attention.to_source(layer, &own.encoder_attention, &x);
        let x = own.encoder_attention_norm.forward(&(x + dropout.apply(attended)));
        let fed = own.feed_forward.forward(&x);
        own.norm.forward(&(x + dropout.apply(fed)))
    }

    fn module(&self, attention: Attention, layer: usize) -> &MultiHeadAttention {
        match attention {
            Attention::DecDec => &self.decoder[layer].self_attention,
            Attention::EncDec => &self.decoder[layer].encoder_attention,
            _ => &self.encoder[layer].attention,
        }
    }

    fn feed_forward_multiply_adds(&self) -> [u64; 2] {
        [self.encoder[0].feed_forward.multiply_adds(), self.decoder[0].feed_forward.multiply_adds()]
    }

    fn output_layer(&self) -> (&Tensor, &Tensor) {
        (&self.target, &self.logits_bias)
    }

    fn as_post_norm(&self) -> Option<&PostNorm> {
        Some(self)
    }
}

impl DecoderLayer {
    fn new(config: &TranslatorConfig, weights: &Weights, layer: usize) -> Result<Self, Error> {
        let layout = config.layout();
        let attention = |attention| {
            let heads = layout.module(attention, layer);
            MultiHeadAttention::new(weights, &projections(attention, layer), &heads)
        };
        let names = layer_names(Attention::DecDec, layer);
        let norm = |name: &str| LayerNorm::new(weights, name, EPSILON);
        let maps: [&str; 2] = [&names.inner, &names.outer];
        Ok(Self {
            self_attention: attention(Attention::DecDec)?,
            self_attention_norm: norm(&names.attention_norm)?,
            encoder_attention: attention(Attention::EncDec)?,
            encoder_attention_norm: norm(&attention_norm(Attention::EncDec, layer))?,
            feed_forward: FeedForward::new(weights, &maps, config.activation_function)?,
            norm: norm(&names.norm)?,
        })
    }
}

fn inventory(config: &TranslatorConfig) -> Inventory {
    let mut inventory = Inventory::new();
    for layer in 0..config.encoder_layers {
        layer_inventory(config, &[Attention::EncEnc], layer, config.encoder_ffn_dim, &mut inventory);
    }
    for layer in 0..config.decoder_layers {
        let modules = [Attention::DecDec, Attention::EncDec];
        layer_inventory(config, &modules, layer, config.decoder_ffn_dim, &mut inventory);
    }
    inventory
}

/// `modules`: the attention modules of the layer; `width`: of its feed-forward block.
fn layer_inventory(
    config: &TranslatorConfig,
    modules: &[Attention],
    layer: usize,
    width: i64,
    inventory: &mut Inventory,
) {
    let (layout, d_model) = (config.layout(), config.d_model);
    for &attention in modules {
        let kept = layout.module(attention, layer).width();
        let Projections { query, key, value, output } = projections(attention, layer);
        [query, key, value].iter().for_each(|name| linear(inventory, name, kept, d_model));
        linear(inventory, &output, d_model, kept);
        norm(inventory, &attention_norm(attention, layer), d_model);
    }
    let names = layer_names(modules[0], layer);
    linear(inventory, &names.inner, width, d_model);
    linear(inventory, &names.outer, d_model, width);
    norm(inventory, &names.norm, d_model);
}

fn projections(attention: Attention, layer: usize) -> Projections {
    let name = module_name(attention, layer);
    Projections::new(["q", "k", "v", "out"].map(|part| format!("{name}.{part}_proj")))
}

/// Name of an attention module; its normalisation and projections begin with it.
fn module_name(attention: Attention, layer: usize) -> String {
    let part = if attention == Attention::EncDec { "encoder_attn" } else { "self_attn" };
    format!("{}.{part}", layer_name(attention, layer))
}

/// Name of the layer that an attention module is in.
fn layer_name(attention: Attention, layer: usize) -> String {
    let stack = if attention == Attention::EncEnc { "encoder" } else { "decoder" };
    format!("model.{stack}.layers.{layer}")
}

/// Name of the normalisation after an attention module.
fn attention_norm(attention: Attention, layer: usize) -> String {
    format!("{}_layer_norm", module_name(attention, layer))
}

/// The names of an attention module of a layer, and of the parts that the layer has once.
fn layer_names(attention: Attention, layer: usize) -> LayerNames {
    let of = |part: &str| format!("{}.{part}", layer_name(attention, layer));
    LayerNames {
        projections: projections(attention, layer),
        attention_norm: attention_norm(attention, layer),
        inner: of("fc1"),
        outer: of("fc2"),
        norm: of("final_layer_norm"),
    }
}
