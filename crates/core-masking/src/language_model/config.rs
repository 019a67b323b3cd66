//! `config.json` of a language model: which tensors there are, and how large.
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::family::{Bias, LanguageFamily, Normalisation, Windows};
use super::rotary::{RotaryScaling, of_one_age};
use crate::families::{LANGUAGE_MODELS, LLAMA};
use crate::layers::Activation;
use crate::model::ModelConfig;
use crate::pruning::{PrunedHeads, joined, named};
use crate::storage::Storage;
use crate::weights::{
    EPSILONS, Inventory, MOST_ROWS, check_counts, check_divides, check_inventory, check_range, check_rates,
    scale,
};
use crate::{Attention, DropoutRates, Error, HeadLayout, HeadSet, LayerShape, Projections, checkpoint};

/// Sizes of a language model, under the names that Hugging Face transformers has for Llama.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LanguageConfig {
    /// The family that it belongs to.
    #[serde(skip, default = "llama")]
    pub family: &'static LanguageFamily,
    /// The family's name.
    pub model_type: String,
    /// The class that transformers loads the folder into.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// Pieces of the vocabulary.
    pub vocab_size: i64,
    /// Width of the residual stream.
    pub hidden_size: i64,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Heads in a layer, each with a query of its own.
    pub num_attention_heads: usize,
    /// Keys and values in a layer, which heads share in groups; as many as heads if absent.
    #[serde(default)]
    pub num_key_value_heads: Option<usize>,
    /// Width of a head; if absent, heads share the width of the residual stream.
    #[serde(default)]
    pub head_dim: Option<i64>,
    /// Width of the feed-forward blocks; four times that of the residual stream if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intermediate_size: Option<i64>,
    /// Of the feed-forward blocks.
    pub hidden_act: Activation,
    /// The longest text, in tokens.
    pub max_position_embeddings: i64,
    /// Added to the variance, or to the mean square, in normalisation.
    #[serde(default = "epsilon")]
    pub rms_norm_eps: f64,
    /// Base of the frequencies of rotary positions.
    #[serde(default = "rope_theta")]
    pub rope_theta: f64,
    /// Scaling of these frequencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_scaling: Option<RotaryScaling>,
    /// True if the output layer is the embedding table.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// True if the projections of attention have biases, where the family leaves that open.
    #[serde(default, skip_serializing_if = "is_off")]
    pub attention_bias: bool,
    /// True if the feed-forward blocks have biases, where the family leaves that open.
    #[serde(default, skip_serializing_if = "is_off")]
    pub mlp_bias: bool,
    /// Tokens that a query sees, itself included, in layers that look at the nearest ones alone.
    #[serde(default)]
    pub sliding_window: Option<i64>,
    /// True if there are such layers, where the family leaves that open.
    #[serde(default, skip_serializing_if = "is_off")]
    pub use_sliding_window: bool,
    /// The first of them, unless `layer_types` names them.
    #[serde(default)]
    pub max_window_layers: Option<usize>,
    /// `sliding_attention` or `full_attention` for each layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_types: Option<Vec<String>>,
    /// Deviation of initial weights.
    #[serde(default = "initializer_range")]
    pub initializer_range: f64,
    /// Dropout on embeddings, in training.
    #[serde(default)]
    pub embd_pdrop: f64,
    /// Dropout on the output of each sublayer, in training.
    #[serde(default)]
    pub resid_pdrop: f64,
    /// Dropout on attention weights, in training.
    #[serde(default)]
    pub attention_dropout: f64,
    /// The symbol that texts begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bos_token_id: Option<u32>,
    /// The symbol that texts end with, or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eos_token_id: Option<TokenIds>,
    /// Heads that were cut out of the weights, by layer, both counted from 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pruned_heads: PrunedHeads,
}

/// One symbol, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a token id, or a list of them")]
pub enum TokenIds {
    /// One.
    One(u32),
    /// Any of them.
    Several(Vec<u32>),
}

impl TokenIds {
    /// All of them.
    pub fn all(&self) -> &[u32] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Several(ids) => ids,
        }
    }
}

fn llama() -> &'static LanguageFamily {
    &LLAMA
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_off(value: &bool) -> bool {
    !value
}

fn epsilon() -> f64 {
    1e-6
}

fn rope_theta() -> f64 {
    10_000.0
}

fn initializer_range() -> f64 {
    0.02
}

/// The layers of transformers that look at the nearest tokens alone.
const SLIDING: &str = "sliding_attention";

impl LanguageConfig {
    /// Reads and validates a `config.json` of a family that is known.
    ///
    /// # Errors
    /// If the file is missing, no JSON, of another model type, or describes an impossible or unsupported model.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let (json, family) = checkpoint::read_config(path, LANGUAGE_MODELS, |family| family.model_type)?;
        let refusal = |fault: String| Error::file(path, fault);
        checkpoint::check_supported(&json, family.supported).map_err(refusal)?;
        let mut json = family.keys.to_common(json);
        of_one_age(&mut json).map_err(refusal)?;
        let config: Self = checkpoint::parse(path, Value::Object(json))?;
        let config = Self { family, ..config };
        config.validate().map_err(refusal)?;
        Ok(config)
    }

    /// Refuses an impossible model: the fault, in words.
    ///
    /// # Errors
    /// If a number is out of its range, groups do not divide the heads, no head would be left, or an unsupported variant is
    /// asked for.
    pub fn validate(&self) -> Result<(), String> {
        let keys = &self.family.keys;
        let heads = (keys.own("num_attention_heads"), self.num_attention_heads);
        let groups = (keys.own("num_key_value_heads"), self.key_value_heads());
        check_counts([(keys.own("num_hidden_layers"), self.num_hidden_layers), heads, groups])?;
        check_divides(groups, (heads.0, heads.1 as i64))?;
        if self.head_dim.is_none() {
            check_divides(heads, (keys.own("hidden_size"), self.hidden_size))?;
        }
        check_inventory(&Self { pruned_heads: PrunedHeads::new(), ..self.clone() }.inventory())?;
        // rotary positions have no table
        if !(1..=MOST_ROWS).contains(&self.max_position_embeddings) {
            return Err(format!("{} must be from 1 to {MOST_ROWS}", keys.own("max_position_embeddings")));
        }
        if self.family.names.positions.is_none() && self.d_head() % 2 != 0 {
            return Err(format!("head_dim ({}) must be even for rotary positions", self.d_head()));
        }
        self.validate_numbers()?;
        self.validate_layer_types()?;
        let windows = (0..self.num_hidden_layers).filter_map(|layer| self.window(layer));
        if let Some(width) = windows.min().filter(|&width| width < 1) {
            return Err(format!("sliding_window ({width}) must be at least 1"));
        }
        let removed = self.layout().removed().clone();
        let entry = keys.own("pruned_heads");
        self.unpruned_layout().without(&removed).map_err(|fault| format!("{entry}: {fault}"))?;
        Ok(())
    }

    fn validate_numbers(&self) -> Result<(), String> {
        let keys = &self.family.keys;
        check_rates([
            (keys.own("embd_pdrop"), self.embd_pdrop),
            (keys.own("resid_pdrop"), self.resid_pdrop),
            (keys.own("attention_dropout"), self.attention_dropout),
        ])?;
        check_range(EPSILONS, [(keys.own("rms_norm_eps"), self.rms_norm_eps)])?;
        check_range(1.0..=1e16, [("rope_theta", self.rope_theta)])?;
        self.rope_scaling.map_or(Ok(()), RotaryScaling::validate)
    }

    fn validate_layer_types(&self) -> Result<(), String> {
        let Some(types) = &self.layer_types else { return Ok(()) };
        if types.len() != self.num_hidden_layers {
            return Err(format!("layer_types names {} layers of {}", types.len(), self.num_hidden_layers));
        }
        match types.iter().find(|name| ![SLIDING, "full_attention"].contains(&name.as_str())) {
            Some(other) => {
                let found = words::excerpt(other);
                Err(format!("layer_types: `{found}` is not supported; `{SLIDING}` and `full_attention` are"))
            }
            None => Ok(()),
        }
    }

    /// Keys and values in a layer.
    pub fn key_value_heads(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }

    /// Width of a head.
    pub fn d_head(&self) -> i64 {
        self.head_dim.unwrap_or(self.hidden_size / self.num_attention_heads.max(1) as i64)
    }

    /// Width of the feed-forward blocks.
    pub fn feed_forward_width(&self) -> i64 {
        self.intermediate_size.unwrap_or(self.hidden_size.saturating_mul(4))
    }

    /// Tokens that a query of a layer, counted from 0, sees at most, itself included; all before it if absent.
    pub fn window(&self, layer: usize) -> Option<i64> {
        let is_local = match self.family.windows {
            Windows::Nowhere => false,
            Windows::Everywhere => true,
            Windows::ByLayer => {
                let first = self.max_window_layers.unwrap_or(0);
                let named = self.layer_types.as_ref().map(|types| types[layer] == SLIDING);
                self.use_sliding_window && named.unwrap_or(layer >= first)
            }
        };
        self.sliding_window.filter(|_| is_local)
    }

    /// The symbols that texts end with.
    pub fn ends(&self) -> &[u32] {
        self.eos_token_id.as_ref().map_or(&[], TokenIds::all)
    }

    fn unpruned_layout(&self) -> HeadLayout {
        let shape = LayerShape {
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            key_value_heads: self.key_value_heads(),
            d_head: self.d_head(),
        };
        HeadLayout::new([(Attention::SelfAttention, shape)])
    }

    fn has(&self, bias: Bias) -> bool {
        match bias {
            Bias::Always => true,
            Bias::Never => false,
            Bias::OfAttention => self.attention_bias,
            Bias::OfFeedForward => self.mlp_bias,
        }
    }

    /// Name and shape of each tensor in `model.safetensors`, before maps are fused.
    pub fn inventory(&self) -> Inventory {
        let (family, layout) = (self.family, self.layout());
        let (names, width) = (&family.names, self.hidden_size);
        let mut inventory = vec![self.embeddings()];
        let table =
            |part: &str| (format!("{}.weight", names.of(part)), vec![self.max_position_embeddings, width]);
        inventory.extend(names.positions.map(table));
        for layer in 0..self.num_hidden_layers {
            let heads = layout.module(Attention::SelfAttention, layer);
            self.layer_inventory(layer, &heads, &mut inventory);
        }
        self.norm(&mut inventory, &names.of(names.norm), width);
        if !self.tie_word_embeddings {
            inventory.push(self.output());
        }
        inventory
    }

    fn layer_inventory(&self, layer: usize, heads: &heads::ModuleHeads, inventory: &mut Inventory) {
        let (biases, width, d_head) = (self.family.biases, self.hidden_size, self.d_head());
        let names = self.family.names.layer(layer);
        let [queries, keys] = [heads.kept.len(), heads.kept_key_values().len()]
            .map(|count| (count as i64).saturating_mul(d_head));
        let mut map = |name: &str, output, input, bias| {
            inventory.push((format!("{name}.weight"), vec![output, input]));
            if self.has(bias) {
                inventory.push((format!("{name}.bias"), vec![output]));
            }
        };
        let Projections { query, key, value, output } = &names.projections;
        map(query, queries, width, biases.inputs);
        map(key, keys, width, biases.inputs);
        map(value, keys, width, biases.inputs);
        map(output, width, queries, biases.output);
        let inner = self.feed_forward_width();
        let (last, first) =
            names.feed_forward.split_last().expect("a feed-forward block has two maps or three");
        first.iter().for_each(|name| map(name, inner, width, biases.feed_forward));
        map(last, width, inner, biases.feed_forward);
        self.norm(inventory, &names.attention_norm, width);
        self.norm(inventory, &names.feed_forward_norm, width);
        for name in names.head_norms.iter().flatten() {
            self.norm(inventory, name, d_head);
        }
    }

    fn norm(&self, inventory: &mut Inventory, name: &str, width: i64) {
        match self.family.norm {
            Normalisation::Layer => crate::weights::norm(inventory, name, width),
            Normalisation::RootMeanSquare => scale(inventory, name, width),
        }
    }

    /// The table of embeddings.
    pub(super) fn embeddings(&self) -> (String, Vec<i64>) {
        let names = &self.family.names;
        (format!("{}.weight", names.of(names.words)), vec![self.vocab_size, self.hidden_size])
    }

    /// The output layer, where it is a tensor of its own.
    pub(super) fn output(&self) -> (String, Vec<i64>) {
        (format!("{}.weight", self.family.names.output), vec![self.vocab_size, self.hidden_size])
    }
}

impl ModelConfig for LanguageConfig {
    fn storage(&self) -> &'static Storage {
        &self.family.storage
    }

    fn read_layout(path: &Path) -> Result<HeadLayout, Error> {
        Ok(Self::read(path)?.layout())
    }

    fn write(&self, path: &Path) -> Result<(), Error> {
        self.family.keys.write(path, self)
    }

    fn layout(&self) -> HeadLayout {
        self.unpruned_layout().with_removed(named(Attention::SelfAttention, &self.pruned_heads).collect())
    }

    fn dropout(&self) -> DropoutRates {
        // that of embeddings goes by `classifier`, which a language model has no other use for
        DropoutRates {
            hidden: self.resid_pdrop,
            attention: self.attention_dropout,
            classifier: self.embd_pdrop,
        }
    }

    fn projections(&self, _: Attention, layer: usize) -> Projections {
        self.family.names.layer(layer).projections
    }

    fn without_heads(&self, heads: &HeadSet) -> Self {
        let pruned_heads = joined(Attention::SelfAttention, &self.pruned_heads, heads);
        Self { pruned_heads, ..self.clone() }
    }

    fn uniform(&self) -> Result<Self, String> {
        let layout = self.layout();
        let groups_of = |layer: usize| -> Vec<usize> {
            let module = layout.module(Attention::SelfAttention, layer);
            let heads =
                |group: &i64| module.kept.iter().filter(|&&head| module.key_value_of(head) == *group).count();
            module.kept_key_values().iter().map(heads).collect()
        };
        let first = groups_of(0);
        for layer in 1..=self.num_hidden_layers {
            let groups = groups_of(layer - 1);
            return Err(match groups.first() {
                None => format!("layer {layer} has no head left"),
                Some(heads) if groups.iter().any(|other| other != heads) => {
                    format!("the groups of layer {layer} have {groups:?} heads left")
                }
                Some(_) if groups != first => {
                    format!("layer {layer} has groups of {groups:?} heads left, layer 1 of {first:?}")
                }
                Some(_) => continue,
            });
        }
        if self.family.names.positions.is_some() {
            return Err(format!("{} has no entry for the width of a head", self.model_type));
        }
        Ok(Self {
            num_attention_heads: first.iter().sum(),
            num_key_value_heads: Some(first.len()),
            head_dim: Some(self.d_head()),
            pruned_heads: PrunedHeads::new(),
            ..self.clone()
        })
    }
}
