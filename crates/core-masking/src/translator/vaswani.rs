//! The layers of Vaswani et al. (2017), with layer normalisation behind each sublayer or before it, positions that are computed
//! or learned, and an output layer that is the embedding table of the target. Marian, fairseq's translators, BART, mBART, M2M100
//! and Pegasus are built of them.
use tch::Tensor;

use super::{Architecture, DecoderAttention, EncoderDecoder, Norms, Positions, TranslatorConfig};
use crate::attention::MultiHeadAttention;
use crate::encoder::{EncoderLayer, LayerNames, LayerSettings};
use crate::gates::Gate;
use crate::layers::{FeedForward, LayerNorm};
use crate::model::ModelConfig;
use crate::weights::{Inventory, linear, norm};
use crate::{Attention, Dropout, Error, ModelDropout, Projections, Weights};

/// Added to the variance in layer normalisation: PyTorch's default, which all these families use.
const EPSILON: f64 = 1e-5;

/// Layers of self-attention, attention to the source, and feed-forward blocks.
pub static VASWANI: Architecture = Architecture {
    projections,
    check: |_| Ok(()),
    inventory,
    build: |config, weights| Ok(Box::new(VaswaniLayers::new(config, weights)?)),
};

/// A model of such layers.
#[derive(Debug)]
pub struct VaswaniLayers {
    source: Embeddings,
    target: Embeddings,
    logits_bias: Tensor, // [target vocab]
    norms: Norms,
    last_norms: Option<[LayerNorm; 2]>, // of encoder and decoder
    pub(crate) encoder: Vec<EncoderLayer>,
    pub(crate) decoder: Vec<DecoderLayer>,
}

/// Embeddings of one side.
#[derive(Debug)]
struct Embeddings {
    table: Tensor,     // [vocab, d_model]
    positions: Tensor, // [max_position, d_model]
    scale: f64,
    norm: Option<LayerNorm>,
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

impl VaswaniLayers {
    fn new(config: &TranslatorConfig, weights: &Weights) -> Result<Self, Error> {
        let (layout, norms) = (config.layout(), config.family.norms);
        let settings = LayerSettings { activation: config.activation_function, epsilon: EPSILON };
        let encoder = (0..config.encoder_layers).map(|layer| {
            let heads = layout.module(Attention::EncEnc, layer);
            EncoderLayer::new(weights, &layer_names(Attention::EncEnc, layer), &heads, settings)
        });
        let decoder = (0..config.decoder_layers).map(|layer| DecoderLayer::new(config, weights, layer));
        let target = Embeddings::new(config, weights, config.target_embedding(), "decoder")?;
        let (vocabulary, options) = (target.table.size()[0], weights.options());
        let bias = config.embeddings().bias.map(|name| Ok::<_, Error>(weights.get(name)?.view([-1])));
        let last = |stack| LayerNorm::new(weights, &last_norm(stack), EPSILON);
        Ok(Self {
            encoder: encoder.collect::<Result<_, _>>()?,
            decoder: decoder.collect::<Result<_, _>>()?,
            source: Embeddings::new(config, weights, config.embeddings().source, "encoder")?,
            logits_bias: bias.transpose()?.unwrap_or_else(|| Tensor::zeros([vocabulary], options)),
            last_norms: if norms.before { Some([last("encoder")?, last("decoder")?]) } else { None },
            norms,
            target,
        })
    }

    /// What leaves a sublayer, `[.., d_model]`, the shape of `x`: normalised before it or behind.
    fn sublayer(
        &self,
        x: &Tensor,
        norm: &LayerNorm,
        dropout: &Dropout,
        run: impl FnOnce(&Tensor) -> Tensor,
    ) -> Tensor {
        if self.norms.before {
            x + dropout.apply(run(&norm.forward(x)))
        } else {
            norm.forward(&(x + dropout.apply(run(x))))
        }
    }

    fn finish(&self, stack: usize, x: Tensor) -> Tensor {
        self.last_norms.as_ref().map_or_else(|| x.shallow_clone(), |norms| norms[stack].forward(&x))
    }
}

impl Embeddings {
    fn new(
        config: &TranslatorConfig,
        weights: &Weights,
        name: &str,
        stack: &'static str,
    ) -> Result<Self, Error> {
        let rows = config.max_position_embeddings;
        let positions = match config.family.positions {
            Positions::Learned { first } => weights.get(&position_table(stack))?.narrow(0, first, rows),
            Positions::Sinusoids(sinusoids) => {
                let first = sinusoids.first_row(config.pad_token_id);
                sinusoids.table(first, rows, config.d_model, weights.options())
            }
            Positions::Nowhere => Tensor::zeros([rows, config.d_model], weights.options()),
        };
        let norm = || LayerNorm::new(weights, &embedding_norm(stack), EPSILON);
        Ok(Self {
            table: weights.get(name)?,
            positions,
            scale: if config.scale_embedding { (config.d_model as f64).sqrt() } else { 1.0 },
            norm: config.family.norms.of_embeddings.then(norm).transpose()?,
        })
    }

    /// Of ids, `[batch, position]`, the first of them at position `start`: `[batch, position, d_model]`.
    fn of(&self, ids: &Tensor, start: i64) -> Tensor {
        let embedded = Tensor::embedding(&self.table, ids, -1, false, false);
        let x = embedded * self.scale + self.positions.narrow(0, start, ids.size()[1]);
        self.norm.as_ref().map_or_else(|| x.shallow_clone(), |norm| norm.forward(&x))
    }
}

impl EncoderDecoder for VaswaniLayers {
    fn embed_source(&self, ids: &Tensor) -> Tensor {
        self.source.of(ids, 0)
    }

    fn embed_target(&self, ids: &Tensor, start: i64) -> Tensor {
        self.target.of(ids, start)
    }

    fn encoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        bias: &Tensor,
        gate: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let EncoderLayer { attention, attention_norm, feed_forward, norm, .. } = &self.encoder[layer];
        let attend = |x: &Tensor| attention.forward(x, x, bias, gate, &dropout.attention);
        let x = gate.passing(x, self.sublayer(x, attention_norm, &dropout.hidden, attend));
        self.sublayer(&x, norm, &dropout.hidden, |x| feed_forward.forward(x))
    }

    fn encoder_states(&self, x: Tensor) -> Tensor {
        self.finish(0, x)
    }

    fn decoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        attention: &mut DecoderAttention<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let (own, dropout) = (&self.decoder[layer], &dropout.hidden);
        let behind = self.sublayer(x, &own.self_attention_norm, dropout, |x| {
            attention.to_target(layer, &own.self_attention, x)
        });
        let x = attention.passing((Attention::DecDec, layer), x, behind);
        let behind = self.sublayer(&x, &own.encoder_attention_norm, dropout, |x| {
            attention.to_source(layer, &own.encoder_attention, x)
        });
        let x = attention.passing((Attention::EncDec, layer), &x, behind);
        self.sublayer(&x, &own.norm, dropout, |x| own.feed_forward.forward(x))
    }

    fn decoder_states(&self, x: Tensor) -> Tensor {
        self.finish(1, x)
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
        (&self.target.table, &self.logits_bias)
    }

    fn as_post_norm(&self) -> Option<&VaswaniLayers> {
        (!self.norms.before).then_some(self)
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
    let (mut inventory, width) = (Inventory::new(), config.d_model);
    for stack in ["encoder", "decoder"] {
        if let Positions::Learned { first } = config.family.positions {
            inventory.push((position_table(stack), vec![first + config.max_position_embeddings, width]));
        }
        let Norms { before, of_embeddings } = config.family.norms;
        let names = of_embeddings.then(|| embedding_norm(stack)).into_iter();
        names.chain(before.then(|| last_norm(stack))).for_each(|name| norm(&mut inventory, &name, width));
    }
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

/// Name of a table of positions.
pub(super) fn position_table(stack: &str) -> String {
    format!("model.{stack}.embed_positions.weight")
}

/// Name of the normalisation behind the embeddings.
fn embedding_norm(stack: &str) -> String {
    format!("model.{stack}.layernorm_embedding")
}

/// Name of the normalisation at the end of a stack.
fn last_norm(stack: &str) -> String {
    format!("model.{stack}.layer_norm")
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

/// Name of the normalisation of an attention module.
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
