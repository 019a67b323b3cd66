//! Names of tensors in GGUF files and in Hugging Face folders.
use std::collections::HashMap;

use families::ModelConfig;
use families::language_model::LanguageConfig;
use families::parts::Projections;
use families::tables::{GEMMA3_TEXT, LLAMA, LanguageFamily, LayerNames};

/// A supported architecture of GGUF files.
#[derive(Debug)]
pub(crate) struct Architecture {
    /// `general.architecture`, and the prefix of its keys.
    pub(crate) name: &'static str,
    pub(crate) family: &'static LanguageFamily,
    /// True if rows of queries and keys are paired with neighbours for rotary positions; transformers pairs x with x + half.
    pub(crate) turns_neighbours: bool,
    /// Offset that the file adds to the weights of norms.
    pub(crate) added_to_norms: f64,
}

pub(crate) static ARCHITECTURES: [Architecture; 2] = [
    Architecture { name: "llama", family: &LLAMA, turns_neighbours: true, added_to_norms: 0.0 },
    Architecture { name: "gemma3", family: &GEMMA3_TEXT, turns_neighbours: false, added_to_norms: 1.0 },
];

/// The embeddings, tied to the output layer if [`OUTPUT`] is absent.
pub(crate) const EMBEDDINGS: &str = "token_embd.weight";

pub(crate) const OUTPUT: &str = "output.weight";

/// Divisors of rotary frequencies, as in Llama 3.1.
pub(crate) const ROTARY_FACTORS: &str = "rope_freqs.weight";

/// Maps of attention, which may have biases.
pub(crate) const ATTENTION: [&str; 4] = ["attn_q", "attn_k", "attn_v", "attn_output"];

/// Location of a map, a norm or a table in a GGUF file.
#[derive(Debug)]
pub(crate) struct Place {
    /// Layer, counted from 0; `None` outside of layers.
    pub(crate) layer: Option<usize>,
    /// Name in the layer, or outside of layers.
    pub(crate) part: &'static str,
}

impl Place {
    /// Returns the name of its tensor; `ending`: `weight` or `bias`
    pub(crate) fn tensor(&self, ending: &str) -> String {
        match self.layer {
            Some(layer) => format!("blk.{layer}.{}.{ending}", self.part),
            None => format!("{}.{ending}", self.part),
        }
    }
}

/// Returns the tensors of a model: location in a GGUF file, `weight` or `bias`, name in a folder, and shape there.
pub(crate) fn tensors(config: &LanguageConfig) -> Vec<(Place, String, String, Vec<usize>)> {
    let names = &config.family.names;
    let outside = [
        ("token_embd", names.of(names.words)),
        ("output_norm", names.of(names.norm)),
        ("output", names.output.to_owned()),
    ];
    let layers = (0..config.num_hidden_layers)
        .flat_map(|layer| in_layer(config.layer_names(layer)).map(move |part| (Some(layer), part)));
    let all = outside.into_iter().map(|part| (None, part)).chain(layers);
    let places: HashMap<String, (Option<usize>, &'static str)> =
        all.map(|(layer, (part, name))| (name, (layer, part))).collect();
    let tensor = |(name, shape): (String, Vec<i64>)| {
        let (map, ending) = name.rsplit_once('.')?;
        let &(layer, part) = places.get(map)?;
        let shape = shape.into_iter().map(|extent| extent as usize).collect();
        Some((Place { layer, part }, ending.to_owned(), name, shape))
    };
    config.inventory().into_iter().filter_map(tensor).collect()
}

/// Returns the names of a layer's maps and norms, in GGUF files and in the folder.
fn in_layer(names: LayerNames) -> impl Iterator<Item = (&'static str, String)> {
    let LayerNames { attention_norm, projections, head_norms, feed_forward_norm, feed_forward, .. } = names;
    let Projections { query, key, value, output } = projections;
    let norms = [
        ("attn_norm", attention_norm.before),
        ("post_attention_norm", attention_norm.after),
        ("ffn_norm", feed_forward_norm.before),
        ("post_ffw_norm", feed_forward_norm.after),
    ];
    let norms = norms.into_iter().filter_map(|(part, name)| Some((part, name?)));
    let head_norms = ["attn_q_norm", "attn_k_norm"].into_iter().zip(head_norms.into_iter().flatten());
    let maps = ATTENTION.into_iter().zip([query, key, value, output]);
    let feed_forward = ["ffn_gate", "ffn_up", "ffn_down"].into_iter().zip(feed_forward);
    norms.chain(head_norms).chain(maps).chain(feed_forward)
}
