//! `config.json` of a language model, which determines its tensors and their shapes.
use std::collections::BTreeMap;
use std::path::Path;

use heads::{Attention, HeadLayout, HeadSet, LayerShape};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::ModelConfig;
use crate::limits::{
    EPSILONS, MAX_ROWS, check_counts, check_divides, check_inventory, check_range, check_rates,
};
use crate::parts::{self, Activation, HeadNorm, Inventory, Projections};
use crate::pruned_heads::{PrunedHeads, joined, named};
use crate::rotary::{RotaryConfig, RotaryScaling, normalise_rotary_keys};
use crate::storage::Storage;
use crate::tables::{Bias, LanguageFamily, LayerNames, Windows};
use crate::tables::{LANGUAGE_MODELS, LLAMA};
use crate::{DropoutRates, Error, TensorFile, checkpoint};

/// Configuration of a language model, under the names that Hugging Face transformers uses for Llama.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LanguageConfig {
    /// The model's family.
    #[serde(skip, default = "llama")]
    pub family: &'static LanguageFamily,
    /// The family's name.
    pub model_type: String,
    /// The class that transformers loads the folder into.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// Size of the vocabulary.
    pub vocab_size: i64,
    /// Width of the residual stream.
    pub hidden_size: i64,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Query heads per layer.
    pub num_attention_heads: usize,
    /// Key-value heads per layer, shared by groups of query heads; defaults to `num_attention_heads`.
    #[serde(default)]
    pub num_key_value_heads: Option<usize>,
    /// Width of a head; defaults to `hidden_size / num_attention_heads`.
    #[serde(default)]
    pub head_dim: Option<i64>,
    /// Width of the feed-forward layers; defaults to `4 * hidden_size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intermediate_size: Option<i64>,
    /// Activation of the feed-forward layers.
    pub hidden_act: Activation,
    /// Maximum text length in tokens.
    pub max_position_embeddings: i64,
    /// Added to the variance or mean square in norms.
    #[serde(default = "epsilon")]
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    #[serde(default = "rope_theta")]
    pub rope_theta: f64,
    /// Scaling of the rotary frequencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_scaling: Option<RotaryScaling>,
    /// True if the output layer is the embedding table.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// True if the attention projections have biases, in families that have this key.
    #[serde(default, skip_serializing_if = "is_off")]
    pub attention_bias: bool,
    /// True if the feed-forward layers have biases, in families that have this key.
    #[serde(default, skip_serializing_if = "is_off")]
    pub mlp_bias: bool,
    /// Number of tokens, including itself, that a query sees in layers with a sliding window.
    #[serde(default)]
    pub sliding_window: Option<i64>,
    /// True if layers have sliding windows, in families that have this key.
    #[serde(default, skip_serializing_if = "is_off")]
    pub use_sliding_window: bool,
    /// The first layer with a sliding window, unless `layer_types` is given.
    #[serde(default)]
    pub max_window_layers: Option<usize>,
    /// `sliding_attention` or `full_attention` for each layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_types: Option<Vec<String>>,
    /// Standard deviation of initial weights.
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
    /// BOS token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bos_token_id: Option<u32>,
    /// EOS token, or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eos_token_id: Option<TokenIds>,
    /// Additional keys of some families.
    #[serde(flatten)]
    pub options: LanguageOptions,
    /// Heads that were removed from the weights, by layer, both counted from 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pruned_heads: PrunedHeads,
}

/// Keys that only some families have, as listed in [`LanguageFamily::optional`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LanguageOptions {
    /// Factor of embeddings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_multiplier: Option<f64>,
    /// Factor of attention scores, which replaces division by √d_head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_multiplier: Option<f64>,
    /// Square of the divisor of attention scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_pre_attn_scalar: Option<f64>,
    /// Soft cap of attention scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attn_logit_softcapping: Option<f64>,
    /// Factor of each sublayer's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual_multiplier: Option<f64>,
    /// Divisor of logits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logits_scaling: Option<f64>,
    /// Factor of logits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logit_scale: Option<f64>,
    /// Soft cap of logits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_logit_softcapping: Option<f64>,
    /// True if attention and feed-forward layer run in parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_parallel_residual: Option<bool>,
    /// False if queries and keys are not normalised, in families that have this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_qk_norm: Option<bool>,
    /// Share of each head's dimensions, from the first on, that are rotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_rotary_factor: Option<f64>,
    /// Base of the rotary frequencies in layers with a sliding window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rope_local_base_freq: Option<f64>,
    /// 0 for each layer without rotary positions, 1 for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_rope_layers: Option<Vec<u8>>,
    /// Every N-th layer has no rotary positions, unless `no_rope_layers` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_rope_layer_interval: Option<usize>,
    /// Every N-th layer sees all tokens, unless `layer_types` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sliding_window_pattern: Option<usize>,
    /// Experts per layer.
    #[serde(skip_serializing_if = "Option::is_none", alias = "num_local_experts")]
    pub num_experts: Option<usize>,
    /// Experts per token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_experts_per_tok: Option<usize>,
    /// Width of an expert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moe_intermediate_size: Option<i64>,
    /// True if the routing weights of the selected experts are rescaled to sum to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm_topk_prob: Option<bool>,
    /// Every N-th layer has experts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoder_sparse_step: Option<usize>,
    /// Layers without experts, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mlp_only_layers: Option<Vec<usize>>,
}

/// Returns true for a key that is ignored unless a family has it.
fn is_optional(name: &str) -> bool {
    LANGUAGE_MODELS.iter().any(|family| family.optional.contains(&name))
}

/// A token, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a token id, or a list of them")]
pub enum TokenIds {
    /// One token.
    One(u32),
    /// Any of several tokens.
    Several(Vec<u32>),
}

impl TokenIds {
    /// Returns all tokens.
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

/// transformers' type of layers with a sliding window.
pub const SLIDING: &str = "sliding_attention";

impl LanguageConfig {
    /// Reads and validates the `config.json` of a known family. Fails if the model is impossible or unsupported.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let names = |family: &LanguageFamily| [family.model_type, family.architecture];
        let of_family = |json, family| Self::of_family(path, json, family);
        let inventory = |config: &Self| config.family.storage.inventory(&config.inventory());
        checkpoint::read_config(path, LANGUAGE_MODELS, names, of_family, inventory)
    }

    /// Builds the configuration from these keys; `path` is for messages. Fails if the model is impossible or unsupported.
    pub fn of_family(
        path: &Path,
        json: Map<String, Value>,
        family: &'static LanguageFamily,
    ) -> Result<Self, Error> {
        let refusal = |fault: String| Error::file(path, fault);
        checkpoint::check_supported(&json, family.supported).map_err(refusal)?;
        let mut json = json;
        // `partial_rotary_factor` is checked with the other rotary settings
        let is_foreign =
            |name: &str| name != "partial_rotary_factor" && is_optional(name) && !family.has(name);
        json.retain(|name, _| !is_foreign(name));
        let mut json = family.keys.to_common(json);
        normalise_rotary_keys(&mut json, |name| family.has(name)).map_err(refusal)?;
        if !family.has("partial_rotary_factor") {
            json.remove("partial_rotary_factor");
        }
        let config: Self = checkpoint::parse(path, Value::Object(json))?;
        let config = Self { family, ..config };
        if let Some(width) = config.stored_width(path).filter(|width| *width != config.d_head()) {
            let fault = format!(
                "it lacks `head_dim`: add the line \"head_dim\": {width}, the width of the heads in its tensors"
            );
            return Err(refusal(fault));
        }
        config.validate().map_err(refusal)?;
        Ok(config)
    }

    /// Returns the width of a head in the weights next to a `config.json` that lacks `head_dim`: tools that narrow a model keep the width
    /// of its heads. `None` if the weights do not determine it.
    fn stored_width(&self, path: &Path) -> Option<i64> {
        let is_given = self.head_dim.is_some() || self.family.keys.entries.contains(&("head_dim", None));
        if is_given || !self.pruned_heads.is_empty() {
            return None;
        }
        let file = TensorFile::open_folder(path.parent()?).ok()?;
        let queries = file.names().find(|name| name.ends_with("layers.0.self_attn.q_proj.weight"))?;
        let (rows, heads) = (*file.shape(queries)?.first()?, self.num_attention_heads.max(1) as i64);
        (rows > 0 && rows % heads == 0).then(|| rows / heads)
    }

    /// Refuses an impossible model and returns why: a number is out of range, groups do not divide the heads, no head would remain, or a
    /// variant is unsupported.
    pub fn validate(&self) -> Result<(), String> {
        let keys = &self.family.keys;
        let heads = (keys.own("num_attention_heads"), self.num_attention_heads);
        let groups = (keys.own("num_key_value_heads"), self.key_value_heads());
        check_counts([
            (keys.own("num_hidden_layers"), self.num_hidden_layers),
            heads,
            groups,
            ("num_experts", self.options.num_experts.unwrap_or(1)),
            (keys.own("sliding_window_pattern"), self.options.sliding_window_pattern.unwrap_or(1)),
            ("no_rope_layer_interval", self.options.no_rope_layer_interval.unwrap_or(1)),
            ("decoder_sparse_step", self.options.decoder_sparse_step.unwrap_or(1)),
        ])?;
        self.validate_layer_types()?;
        check_divides(groups, (heads.0, heads.1 as i64))?;
        if self.head_dim.is_none() {
            check_divides(heads, (keys.own("hidden_size"), self.hidden_size))?;
        }
        self.validate_options()?;
        check_inventory(&Self { pruned_heads: PrunedHeads::new(), ..self.clone() }.inventory())?;
        // no tensor bounds rotary positions
        if !(1..=MAX_ROWS).contains(&self.max_position_embeddings) {
            return Err(format!("{} must be from 1 to {MAX_ROWS}", keys.own("max_position_embeddings")));
        }
        self.validate_numbers()?;
        let widths = (0..self.num_hidden_layers).filter_map(|layer| self.rotary(layer));
        if let Some(RotaryConfig { width, .. }) = widths.into_iter().find(|rotary| rotary.width % 2 != 0) {
            let share = self.options.partial_rotary_factor.map(|share| format!(" times {share}"));
            let share = share.unwrap_or_default();
            return Err(format!(
                "head_dim ({}){share} must be even for rotary positions",
                width.max(self.d_head())
            ));
        }
        let windows = (0..self.num_hidden_layers).filter_map(|layer| self.window(layer));
        if let Some(width) = windows.min().filter(|&width| width < 1) {
            return Err(format!("{} ({width}) must be at least 1", keys.own("sliding_window")));
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
        check_range(1.0..=1e16, [(keys.own("rope_theta"), self.rope_theta)])?;
        self.rope_scaling.map_or(Ok(()), RotaryScaling::validate)
    }

    fn validate_options(&self) -> Result<(), String> {
        let options = &self.options;
        let numbers = [
            ("embedding_multiplier", options.embedding_multiplier),
            ("attention_multiplier", options.attention_multiplier),
            ("query_pre_attn_scalar", options.query_pre_attn_scalar),
            ("attn_logit_softcapping", options.attn_logit_softcapping),
            ("residual_multiplier", options.residual_multiplier),
            ("logits_scaling", options.logits_scaling),
            ("logit_scale", options.logit_scale),
            ("final_logit_softcapping", options.final_logit_softcapping),
        ];
        check_range(1e-6..=1e6, numbers.map(|(name, number)| (name, number.unwrap_or(1.0))))?;
        let local =
            (self.family.keys.own("rope_local_base_freq"), options.rope_local_base_freq.unwrap_or(1.0));
        check_range(1.0..=1e16, [local])?;
        let share =
            (self.family.keys.own("partial_rotary_factor"), options.partial_rotary_factor.unwrap_or(1.0));
        check_range(1e-6..=1.0, [share])?;
        let listed = options.no_rope_layers.as_ref().map_or(self.num_hidden_layers, Vec::len);
        if listed != self.num_hidden_layers {
            return Err(format!("no_rope_layers names {listed} of {} layers", self.num_hidden_layers));
        }
        let chosen = options.num_experts_per_tok.unwrap_or(1);
        if self.last_expert().is_some() && !(1..=options.num_experts.unwrap_or(0)).contains(&chosen) {
            return Err(format!("num_experts_per_tok ({chosen}) must be from 1 to num_experts"));
        }
        Ok(())
    }

    fn validate_layer_types(&self) -> Result<(), String> {
        let Some(types) = &self.layer_types else { return Ok(()) };
        if types.len() != self.num_hidden_layers {
            return Err(format!("layer_types names {} of {} layers", types.len(), self.num_hidden_layers));
        }
        match types.iter().find(|name| ![SLIDING, "full_attention"].contains(&name.as_str())) {
            Some(other) => {
                let found = words::excerpt(other);
                Err(format!("layer_types: `{found}` is not `{SLIDING}` or `full_attention`"))
            }
            None => Ok(()),
        }
    }

    /// Returns the number of key-value heads per layer.
    pub fn key_value_heads(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }

    /// Returns the width of a head.
    pub fn d_head(&self) -> i64 {
        self.head_dim.unwrap_or(self.hidden_size / self.num_attention_heads.max(1) as i64)
    }

    /// Returns the width of the feed-forward layers.
    pub fn feed_forward_width(&self) -> i64 {
        self.intermediate_size.unwrap_or(self.hidden_size.saturating_mul(4))
    }

    /// Returns the number of tokens, including itself, that a query of a layer, counted from 0, sees; `None` if unlimited.
    pub fn window(&self, layer: usize) -> Option<i64> {
        self.sliding_window.filter(|_| self.is_local(layer))
    }

    /// Returns true if a layer has a sliding window if the configuration gives its size.
    pub fn is_local(&self, layer: usize) -> bool {
        let named = self.layer_types.as_ref().map(|types| types[layer] == SLIDING);
        let every = |period| self.options.sliding_window_pattern.unwrap_or(period);
        match self.family.windows {
            Windows::Nowhere => false,
            Windows::Everywhere => true,
            Windows::Periodic(period) => named.unwrap_or(!(layer + 1).is_multiple_of(every(period))),
            Windows::PeriodicFromFirst(period) => named.unwrap_or(!layer.is_multiple_of(every(period))),
            Windows::ByLayer => {
                let first = self.max_window_layers.unwrap_or(0);
                self.use_sliding_window && named.unwrap_or(layer >= first)
            }
        }
    }

    /// Returns the rotary settings of a layer; `None` if it has no rotary positions.
    pub fn rotary(&self, layer: usize) -> Option<RotaryConfig> {
        let options = &self.options;
        let has_rotary = match (&options.no_rope_layers, options.no_rope_layer_interval) {
            (Some(listed), _) => listed[layer] != 0,
            (None, Some(interval)) => !(layer + 1).is_multiple_of(interval),
            (None, None) => true,
        };
        let local = options.rope_local_base_freq.filter(|_| self.is_local(layer));
        let share = options.partial_rotary_factor.unwrap_or(1.0);
        (has_rotary && self.family.names.positions.is_none()).then(|| RotaryConfig {
            width: (self.d_head() as f64 * share) as i64,
            interleaved: self.family.interleaved_rotary,
            theta: local.unwrap_or(self.rope_theta),
            scaling: self.rope_scaling.filter(|_| local.is_none()),
        })
    }

    /// Returns the divisor of attention scores.
    pub fn divisor(&self) -> f64 {
        let factor = self.options.attention_multiplier;
        let square = self.options.query_pre_attn_scalar.unwrap_or(self.d_head() as f64);
        factor.map_or_else(|| square.sqrt(), f64::recip)
    }

    /// Returns the divisor of logits.
    pub fn logit_divisor(&self) -> Option<f64> {
        self.options.logits_scaling.or(self.options.logit_scale.map(f64::recip))
    }

    /// Returns the factor of embeddings.
    pub fn word_factor(&self) -> Option<f64> {
        let root = self.family.scales_words.then(|| (self.hidden_size as f64).sqrt());
        root.or(self.options.embedding_multiplier)
    }

    /// Returns the names of a layer's tensors, counted from 0.
    pub fn layer_names(&self, layer: usize) -> LayerNames {
        let names = self.family.names.layer(layer);
        let has_head_norms = self.options.use_qk_norm != Some(false);
        LayerNames { head_norms: names.head_norms.filter(|_| has_head_norms), ..names }
    }

    /// Returns the number of experts of a layer; 0 for a plain feed-forward layer.
    pub fn experts(&self, layer: usize) -> usize {
        let options = &self.options;
        let is_plain = self.family.names.experts.is_none()
            || options.mlp_only_layers.as_ref().is_some_and(|layers| layers.contains(&layer))
            || !(layer + 1).is_multiple_of(options.decoder_sparse_step.unwrap_or(1));
        if is_plain { 0 } else { options.num_experts.unwrap_or(0) }
    }

    /// Returns a tensor name of the last expert; `None` without experts.
    pub fn last_expert(&self) -> Option<String> {
        let layer = (0..self.num_hidden_layers).find(|&layer| self.experts(layer) > 0)?;
        let names = self.family.names.layer(layer).expert(self.experts(layer) - 1);
        names.first().map(|name| format!("{name}.weight"))
    }

    /// Returns the EOS tokens.
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

    /// Returns name and shape of the embedding table.
    pub fn embeddings(&self) -> (String, Vec<i64>) {
        let names = &self.family.names;
        (format!("{}.weight", names.of(names.words)), vec![self.vocab_size, self.hidden_size])
    }

    /// Returns name and shape of an untied output layer.
    pub fn output(&self) -> (String, Vec<i64>) {
        (format!("{}.weight", self.family.names.output), vec![self.vocab_size, self.hidden_size])
    }
}

impl ModelConfig for LanguageConfig {
    fn inventory(&self) -> Inventory {
        parts::inventory(|tensors| self.parts(tensors))
    }

    fn queries_stay(&self) -> bool {
        let names = &self.family.names;
        names.head_norm != HeadNorm::Alike && self.options.use_qk_norm != Some(false)
    }

    fn storage(&self) -> &'static Storage {
        &self.family.storage
    }

    fn read_layout(path: &Path) -> Result<HeadLayout, Error> {
        Ok(Self::read(path)?.layout())
    }

    fn write(&self, path: &Path) -> Result<(), Error> {
        let json = serde_json::to_value(self).map_err(|fault| Error::json(path, &fault))?;
        let Value::Object(mut json) = json else { unreachable!("a structure is an object") };
        json.retain(|name, value| {
            let is_null_width = name == "head_dim" && value.is_null() && self.model_type != LLAMA.model_type;
            !is_null_width && (!is_optional(name) || self.family.has(name))
        });
        // an absent key means false, unless the family's default is true
        for (name, assumed) in self.family.keys.assumed() {
            if assumed == true && !json.contains_key(&name) {
                json.insert(name, Value::Bool(false));
            }
        }
        self.family.keys.write(path, &json)
    }

    fn layout(&self) -> HeadLayout {
        self.unpruned_layout().with_removed(named(Attention::SelfAttention, &self.pruned_heads).collect())
    }

    fn dropout(&self) -> DropoutRates {
        // a language model has no classifier, so `classifier` is its embedding dropout
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

    fn with_attention_bias(&self) -> Option<Self> {
        let biases = self.family.biases;
        // if the key also adds biases to the feed-forward layers, more than attention would change
        let is_asked_for = [biases.inputs, biases.output] == [Bias::OfAttention; 2]
            && biases.feed_forward != Bias::OfAttention;
        is_asked_for.then(|| Self { attention_bias: true, ..self.clone() })
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
                    format!("layer {layer} has groups of {groups:?} heads left, layer 1 has {first:?}")
                }
                Some(_) => continue,
            });
        }
        if self.queries_stay() {
            return Err(format!("the query and key norms of {} have factors for all heads", self.model_type));
        }
        if self.family.keys.entries.contains(&("head_dim", None)) {
            return Err(format!("the config.json of {} has no key for the head width", self.model_type));
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
