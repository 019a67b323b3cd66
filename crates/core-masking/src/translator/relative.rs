//! The layers of T5, Raffel et al. (2020), <https://arxiv.org/abs/1910.10683>: normalisation by the root mean square before each
//! sublayer and at the end of each stack, no biases, scores that are not divided, and a bias of each head on those of
//! self-attention by distance, which all layers of a stack share.
use tch::Tensor;

use super::TranslatorConfig;
use super::config::FeedForwardProjection;
use super::layers::{Architecture, Embeddings, Layers};
use crate::attention::{DistanceBias, MultiHeadAttention, Scores};
use crate::block::{Block, Norms};
use crate::experts::FeedForwards;
use crate::layers::{Activation, FeedForward, Norm, RmsNorm};
use crate::model::ModelConfig;
use crate::relative_positions::T5Buckets;
use crate::weights::{EPSILONS, Inventory, check_range, scale};
use crate::{Attention, Error, Projections, Weights};

/// Layers with biases by distance.
pub static RELATIVE: Architecture = Architecture { projections, check, inventory, build };

fn build(config: &TranslatorConfig, weights: &Weights) -> Result<Layers, Error> {
    let output = weights.get(config.output_layer())?;
    let is_scaled =
        config.relative.scale_decoder_outputs.unwrap_or(config.tie_word_embeddings != Some(false));
    let embeddings = || {
        let table = weights.get(config.target_embedding())?;
        Ok::<_, Error>(Embeddings { table, positions: None, scale: None, norm: None })
    };
    let stack = |modules: &'static [Attention], layers| {
        (0..layers).map(move |layer| block(config, weights, modules, layer))
    };
    Ok(Layers {
        source: embeddings()?,
        target: embeddings()?,
        logits_bias: Tensor::zeros([output.size()[0]], weights.options()),
        output,
        encoder: stack(&ENCODER, config.encoder_layers).collect::<Result<_, _>>()?,
        decoder: stack(&DECODER, config.decoder_layers).collect::<Result<_, _>>()?,
        last_norms: [
            Some(norm(config, weights, &last_norm(ENCODER[0]))?),
            Some(norm(config, weights, &last_norm(DECODER[0]))?),
        ],
        decoder_scale: is_scaled.then(|| (config.d_model as f64).sqrt().recip()),
    })
}

fn norm(config: &TranslatorConfig, weights: &Weights, name: &str) -> Result<Norm, Error> {
    Ok(Norm::RootMeanSquare(RmsNorm::new(weights, name, epsilon(config))?))
}

/// A layer with these attention modules, counted from 0.
fn block(
    config: &TranslatorConfig,
    weights: &Weights,
    modules: &[Attention],
    layer: usize,
) -> Result<Block, Error> {
    let layout = config.layout();
    let norms = |name: &str| Ok::<_, Error>(Norms::one(norm(config, weights, name)?, true));
    let attention = |kind: Attention| {
        let module =
            MultiHeadAttention::new(weights, &projections(kind, layer), &layout.module(kind, layer))?;
        let scores =
            if kind == Attention::EncDec { Scores::Plain } else { by_distance(config, weights, kind)? };
        Ok::<_, Error>((module.with_scores(1.0, scores), norms(&norm_name(kind, layer))?))
    };
    let (sublayer, (maps, activation)) = (fed(modules, layer), maps(config));
    let names: Vec<String> = maps.iter().map(|map| format!("{sublayer}.DenseReluDense.{map}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let feed_forward = FeedForwards::One(FeedForward::new(weights, &names, activation)?);
    let feed_forward = (feed_forward, norms(&format!("{sublayer}.layer_norm"))?);
    let cross = modules.get(1).map(|&kind| attention(kind)).transpose()?;
    Ok(Block { cross, ..Block::new(attention(modules[0])?, feed_forward) })
}

/// The bias by distance that all layers of a stack share.
fn by_distance(config: &TranslatorConfig, weights: &Weights, kind: Attention) -> Result<Scores, Error> {
    let (rows, furthest) = distance_settings(config);
    let buckets = T5Buckets { buckets: rows, furthest, two_sided: kind == Attention::EncEnc };
    let by_bucket = weights.get(&distances(kind))?;
    Ok(Scores::Distances(DistanceBias { buckets: buckets.table(by_bucket.device()), by_bucket }))
}

/// Attention modules of a layer, in their order.
static ENCODER: [Attention; 1] = [Attention::EncEnc];
static DECODER: [Attention; 2] = [Attention::DecDec, Attention::EncDec];

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
