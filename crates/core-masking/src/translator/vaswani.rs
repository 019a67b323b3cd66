//! The layers of Vaswani et al. (2017), with layer normalisation behind each sublayer or before it, positions that are computed
//! or learned, and an output layer that is the embedding table of the target. Marian, fairseq's translators, BART, mBART, M2M100
//! and Pegasus are built of them.
use tch::Tensor;

use super::layers::{Architecture, Embeddings, Layers};
use super::{Positions, TranslatorConfig};
use crate::attention::MultiHeadAttention;
use crate::block::{Block, BlockNames, Norms};
use crate::layers::{LayerNorm, Norm};
use crate::model::ModelConfig;
use crate::weights::{Inventory, linear, norm};
use crate::{Attention, Error, Projections, Weights};

/// Added to the variance in layer normalisation: PyTorch's default, which all these families use.
const EPSILON: f64 = 1e-5;

/// Layers of self-attention, attention to the source, and feed-forward blocks.
pub static VASWANI: Architecture = Architecture { projections, check: |_| Ok(()), inventory, build };

fn build(config: &TranslatorConfig, weights: &Weights) -> Result<Layers, Error> {
    let norms = config.family.norms;
    let target = embeddings(config, weights, config.target_embedding(), "decoder")?;
    let output = target.table.shallow_clone();
    let bias = config.embeddings().bias.map(|name| Ok::<_, Error>(weights.get(name)?.view([-1])));
    let last = |stack| norms.before.then(|| norm_of(weights, &last_norm(stack))).transpose();
    let stack = |attention, layers| (0..layers).map(move |layer| block(config, weights, attention, layer));
    Ok(Layers {
        encoder: stack(Attention::EncEnc, config.encoder_layers).collect::<Result<_, _>>()?,
        decoder: stack(Attention::DecDec, config.decoder_layers).collect::<Result<_, _>>()?,
        source: embeddings(config, weights, config.embeddings().source, "encoder")?,
        logits_bias: match bias.transpose()? {
            Some(bias) => bias,
            None => Tensor::zeros([output.size()[0]], weights.options()),
        },
        last_norms: [last("encoder")?, last("decoder")?],
        decoder_scale: None,
        target,
        output,
    })
}

fn embeddings(
    config: &TranslatorConfig,
    weights: &Weights,
    name: &str,
    stack: &'static str,
) -> Result<Embeddings, Error> {
    let rows = config.max_position_embeddings;
    let positions = match config.family.positions {
        Positions::Learned { first } => Some(weights.get(&position_table(stack))?.narrow(0, first, rows)),
        Positions::Sinusoids(sinusoids) => {
            let first = sinusoids.first_row(config.pad_token_id);
            Some(sinusoids.table(first, rows, config.d_model, weights.options()))
        }
        Positions::Nowhere => None,
    };
    let norm = || norm_of(weights, &embedding_norm(stack));
    Ok(Embeddings {
        table: weights.get(name)?,
        positions,
        scale: config.scale_embedding.then(|| (config.d_model as f64).sqrt()),
        norm: config.family.norms.of_embeddings.then(norm).transpose()?,
    })
}

/// A layer of the stack with this kind of self-attention, counted from 0.
fn block(
    config: &TranslatorConfig,
    weights: &Weights,
    attention: Attention,
    layer: usize,
) -> Result<Block, Error> {
    let (layout, is_before) = (config.layout(), config.family.norms.before);
    let module = |attention| {
        let heads = layout.module(attention, layer);
        MultiHeadAttention::new(weights, &projections(attention, layer), &heads)
    };
    let settings = (config.activation_function, EPSILON);
    let names = layer_names(attention, layer);
    let mut block = names.block(weights, module(attention)?, settings, is_before)?;
    if attention == Attention::DecDec {
        let norm = norm_of(weights, &attention_norm(Attention::EncDec, layer))?;
        block.cross = Some((module(Attention::EncDec)?, Norms::one(norm, is_before)));
    }
    Ok(block)
}

fn norm_of(weights: &Weights, name: &str) -> Result<Norm, Error> {
    Ok(Norm::Layer(LayerNorm::new(weights, name, EPSILON)?))
}

fn inventory(config: &TranslatorConfig) -> Inventory {
    let (mut inventory, width) = (Inventory::new(), config.d_model);
    for stack in ["encoder", "decoder"] {
        if let Positions::Learned { first } = config.family.positions {
            inventory.push((position_table(stack), vec![first + config.max_position_embeddings, width]));
        }
        let super::Norms { before, of_embeddings } = config.family.norms;
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
fn layer_names(attention: Attention, layer: usize) -> BlockNames {
    let of = |part: &str| format!("{}.{part}", layer_name(attention, layer));
    BlockNames {
        projections: projections(attention, layer),
        attention_norm: attention_norm(attention, layer),
        inner: of("fc1"),
        outer: of("fc2"),
        norm: of("final_layer_norm"),
    }
}
