//! The layers of T5, Raffel et al. (2020), <https://arxiv.org/abs/1910.10683>: normalisation by the root mean square before each
//! sublayer and at the end of each stack, no biases, scores that are not divided, and a bias of each head on those of
//! self-attention by distance, which all layers of a stack share.
use tch::Tensor;

use super::config::FeedForwardProjection;
use super::{Architecture, DecoderAttention, EncoderDecoder, TranslatorConfig};
use crate::attention::{DistanceBias, MultiHeadAttention};
use crate::gates::Gate;
use crate::layers::{Activation, FeedForward, RmsNorm};
use crate::model::ModelConfig;
use crate::relative_positions::T5Buckets;
use crate::weights::{EPSILONS, Inventory, check_range, scale};
use crate::{Attention, Dropout, Error, ModelDropout, Projections, Weights};

/// Layers with biases by distance.
pub static RELATIVE: Architecture = Architecture {
    projections,
    check,
    inventory,
    build: |config, weights| Ok(Box::new(RelativeLayers::new(config, weights)?)),
};

/// A model of such layers.
#[derive(Debug)]
struct RelativeLayers {
    words: Tensor,   // [vocab, d_model]
    output: Tensor,  // [vocab, d_model]
    no_bias: Tensor, // [vocab]
    encoder: Stack,
    decoder: Stack,
    scale: f64, // of decoder states before the output layer
}

#[derive(Debug)]
struct Stack {
    layers: Vec<Layer>,
    norm: RmsNorm,
}

/// A layer: its attention modules, one in an encoder and two in a decoder, and the feed-forward block.
#[derive(Debug)]
struct Layer {
    attention: Vec<(RmsNorm, MultiHeadAttention)>,
    feed_forward: (RmsNorm, FeedForward),
}

/// What leaves a sublayer, the shape of `x`: `[batch, position, d_model]`.
fn sublayer(x: &Tensor, norm: &RmsNorm, dropout: &Dropout, run: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
    x + dropout.apply(run(&norm.forward(x)))
}

impl RelativeLayers {
    fn new(config: &TranslatorConfig, weights: &Weights) -> Result<Self, Error> {
        let output = weights.get(config.output_layer())?;
        let is_scaled =
            config.relative.scale_decoder_outputs.unwrap_or(config.tie_word_embeddings != Some(false));
        Ok(Self {
            words: weights.get(config.target_embedding())?,
            no_bias: Tensor::zeros([output.size()[0]], weights.options()),
            output,
            encoder: Stack::new(config, weights, &ENCODER, config.encoder_layers)?,
            decoder: Stack::new(config, weights, &DECODER, config.decoder_layers)?,
            scale: if is_scaled { (config.d_model as f64).sqrt().recip() } else { 1.0 },
        })
    }
}

impl Stack {
    fn new(
        config: &TranslatorConfig,
        weights: &Weights,
        modules: &[Attention],
        layers: usize,
    ) -> Result<Self, Error> {
        let layers = (0..layers).map(|layer| Layer::new(config, weights, modules, layer));
        Ok(Self {
            layers: layers.collect::<Result<_, _>>()?,
            norm: RmsNorm::new(weights, &last_norm(modules[0]), epsilon(config))?,
        })
    }
}

impl Layer {
    fn new(
        config: &TranslatorConfig,
        weights: &Weights,
        modules: &[Attention],
        layer: usize,
    ) -> Result<Self, Error> {
        let layout = config.layout();
        let norm = |name: &str| RmsNorm::new(weights, name, epsilon(config));
        let module = |&kind: &Attention| {
            let module =
                MultiHeadAttention::new(weights, &projections(kind, layer), &layout.module(kind, layer))?;
            let distances = || {
                let (rows, furthest) = distance_settings(config);
                let buckets = T5Buckets { buckets: rows, furthest, two_sided: kind == Attention::EncEnc };
                let by_bucket = weights.get(&distances(kind))?;
                Ok::<_, Error>(DistanceBias { buckets: buckets.table(by_bucket.device()), by_bucket })
            };
            let bias = (kind != Attention::EncDec).then(distances).transpose()?;
            Ok((norm(&norm_name(kind, layer))?, module.with_scores(1.0, bias)))
        };
        let (sublayer, (maps, activation)) = (fed(modules, layer), maps(config));
        let names: Vec<String> = maps.iter().map(|map| format!("{sublayer}.DenseReluDense.{map}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(Self {
            attention: modules.iter().map(module).collect::<Result<_, Error>>()?,
            feed_forward: (
                norm(&format!("{sublayer}.layer_norm"))?,
                FeedForward::new(weights, &names, activation)?,
            ),
        })
    }

    fn feed(&self, x: &Tensor, dropout: &Dropout) -> Tensor {
        let (norm, block) = &self.feed_forward;
        sublayer(x, norm, dropout, |x| block.forward(x))
    }
}

impl EncoderDecoder for RelativeLayers {
    fn embed_source(&self, ids: &Tensor) -> Tensor {
        Tensor::embedding(&self.words, ids, -1, false, false)
    }

    fn embed_target(&self, ids: &Tensor, _: i64) -> Tensor {
        self.embed_source(ids)
    }

    fn encoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        bias: &Tensor,
        gate: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let own = &self.encoder.layers[layer];
        let (norm, attention) = &own.attention[0];
        let behind = sublayer(x, norm, &dropout.hidden, |x| {
            attention.forward(x, x, &attention.with_distances(bias), gate, &dropout.attention)
        });
        own.feed(&gate.passing(x, behind), &dropout.hidden)
    }

    fn encoder_states(&self, x: Tensor) -> Tensor {
        self.encoder.norm.forward(&x)
    }

    fn decoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        attend: &mut DecoderAttention<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let (own, dropout) = (&self.decoder.layers[layer], &dropout.hidden);
        let [(target_norm, target), (source_norm, source)] = &own.attention[..] else { unreachable!() };
        let behind = sublayer(x, target_norm, dropout, |x| attend.to_target(layer, target, x));
        let x = attend.passing((Attention::DecDec, layer), x, behind);
        let behind = sublayer(&x, source_norm, dropout, |x| attend.to_source(layer, source, x));
        let x = attend.passing((Attention::EncDec, layer), &x, behind);
        own.feed(&x, dropout)
    }

    fn decoder_states(&self, x: Tensor) -> Tensor {
        self.decoder.norm.forward(&x) * self.scale
    }

    fn module(&self, attention: Attention, layer: usize) -> &MultiHeadAttention {
        let stack = if attention == Attention::EncEnc { &self.encoder } else { &self.decoder };
        &stack.layers[layer].attention[usize::from(attention == Attention::EncDec)].1
    }

    fn feed_forward_multiply_adds(&self) -> [u64; 2] {
        [&self.encoder, &self.decoder].map(|stack| stack.layers[0].feed_forward.1.multiply_adds())
    }

    fn output_layer(&self) -> (&Tensor, &Tensor) {
        (&self.output, &self.no_bias)
    }
}

/// Attention modules of a layer, in their order.
const ENCODER: [Attention; 1] = [Attention::EncEnc];
const DECODER: [Attention; 2] = [Attention::DecDec, Attention::EncDec];

fn check(config: &TranslatorConfig) -> Result<(), String> {
    let (buckets, distance) = distance_settings(config);
    if !(4..=4096).contains(&buckets) || buckets % 2 != 0 {
        return Err(format!("relative_attention_num_buckets ({buckets}) must be even and from 4 to 4096"));
    }
    if !(buckets / 2 + 1..=1 << 16).contains(&distance) {
        let least = buckets / 2 + 1;
        return Err(format!("relative_attention_max_distance ({distance}) must be from {least} to 65536"));
    }
    check_range(EPSILONS, [("layer_norm_epsilon", epsilon(config))])
}

/// Number of buckets, and the distance from which on all are in the last.
fn distance_settings(config: &TranslatorConfig) -> (i64, i64) {
    let own = &config.relative;
    (own.relative_attention_num_buckets.unwrap_or(32), own.relative_attention_max_distance.unwrap_or(128))
}

fn epsilon(config: &TranslatorConfig) -> f64 {
    config.relative.layer_norm_epsilon.unwrap_or(1e-6)
}

/// Maps of the feed-forward block, and what is between them.
fn maps(config: &TranslatorConfig) -> (&'static [&'static str], Activation) {
    use FeedForwardProjection::{GatedGelu, GatedRelu, GatedSilu, Relu};
    const GATED: &[&str] = &["wi_0", "wi_1", "wo"];
    match config.relative.feed_forward_proj {
        None | Some(Relu) => (&["wi", "wo"], Activation::Relu),
        Some(GatedRelu) => (GATED, Activation::Relu),
        Some(GatedGelu) => (GATED, Activation::GeluNew),
        Some(GatedSilu) => (GATED, Activation::Silu),
    }
}

fn inventory(config: &TranslatorConfig) -> Inventory {
    let (mut all, layout, width) = (Inventory::new(), config.layout(), config.d_model);
    let stacks: [(&[Attention], usize, i64); 2] = [
        (&ENCODER, config.encoder_layers, config.encoder_ffn_dim),
        (&DECODER, config.decoder_layers, config.decoder_ffn_dim),
    ];
    for (modules, layers, inner) in stacks {
        let heads = layout.module(modules[0], 0).shape.heads as i64;
        all.push((distances(modules[0]), vec![distance_settings(config).0, heads]));
        scale(&mut all, &last_norm(modules[0]), width);
        for layer in 0..layers {
            for &kind in modules {
                let kept = layout.module(kind, layer).width();
                let Projections { query, key, value, output } = projections(kind, layer);
                let inputs = [query, key, value].map(|name| (name + ".weight", vec![kept, width]));
                all.extend(inputs);
                all.push((output + ".weight", vec![width, kept]));
                scale(&mut all, &norm_name(kind, layer), width);
            }
            let sublayer = fed(modules, layer);
            scale(&mut all, &format!("{sublayer}.layer_norm"), width);
            for &map in maps(config).0 {
                let shape = if map == "wo" { vec![width, inner] } else { vec![inner, width] };
                all.push((format!("{sublayer}.DenseReluDense.{map}.weight"), shape));
            }
        }
    }
    all
}

fn stack(kind: Attention) -> &'static str {
    if kind == Attention::EncEnc { "encoder" } else { "decoder" }
}

/// Name of a sublayer.
fn part(kind: Attention, layer: usize, place: usize) -> String {
    format!("{}.block.{layer}.layer.{place}", stack(kind))
}

fn attention_part(kind: Attention, layer: usize) -> String {
    part(kind, layer, usize::from(kind == Attention::EncDec))
}

/// Name of the sublayer of a feed-forward block, which comes behind the attention modules.
fn fed(modules: &[Attention], layer: usize) -> String {
    part(modules[0], layer, modules.len())
}

fn projections(kind: Attention, layer: usize) -> Projections {
    let module = if kind == Attention::EncDec { "EncDecAttention" } else { "SelfAttention" };
    Projections::new(
        ["q", "k", "v", "o"].map(|map| format!("{}.{module}.{map}", attention_part(kind, layer))),
    )
}

fn norm_name(kind: Attention, layer: usize) -> String {
    format!("{}.layer_norm", attention_part(kind, layer))
}

fn last_norm(kind: Attention) -> String {
    format!("{}.final_layer_norm", stack(kind))
}

/// Name of the biases of a stack.
fn distances(kind: Attention) -> String {
    format!("{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", stack(kind))
}
