//! `config.json` of a language model: which tensors there are, and how large.
use std::collections::BTreeMap;
use std::path::Path;

use heads::{Attention, HeadLayout, HeadSet, LayerShape};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::ModelConfig;
use crate::limits::{
    EPSILONS, MOST_ROWS, check_counts, check_divides, check_inventory, check_range, check_rates,
};
use crate::parts::{self, Activation, HeadNorm, Inventory, Projections};
use crate::pruned_heads::{PrunedHeads, joined, named};
use crate::rotary::{RotaryScaling, Turning, of_one_age};
use crate::storage::Storage;
use crate::tables::{Bias, LanguageFamily, LayerNames, Windows};
use crate::tables::{LANGUAGE_MODELS, LLAMA};
use crate::{DropoutRates, Error, TensorFile, checkpoint};

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
    /// What some families add.
    #[serde(flatten)]
    pub options: LanguageOptions,
    /// Heads that were cut out of the weights, by layer, both counted from 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pruned_heads: PrunedHeads,
}

/// Entries that some families have: each names its own in [`LanguageFamily::optional`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LanguageOptions {
    /// Factor of embeddings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_multiplier: Option<f64>,
    /// Factor of the scores of attention, in the place of the square root of a head's width as their divisor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_multiplier: Option<f64>,
    /// Divisor of the scores of attention, squared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_pre_attn_scalar: Option<f64>,
    /// The greatest size of a score of attention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attn_logit_softcapping: Option<f64>,
    /// Factor of what each sublayer adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual_multiplier: Option<f64>,
    /// Divisor of logits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logits_scaling: Option<f64>,
    /// Factor of logits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logit_scale: Option<f64>,
    /// The greatest size of a logit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_logit_softcapping: Option<f64>,
    /// True if the feed-forward block reads what attention reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_parallel_residual: Option<bool>,
    /// False if queries and keys are not normalised, where the family leaves that open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_qk_norm: Option<bool>,
    /// Share of each head that turns, its first numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_rotary_factor: Option<f64>,
    /// Base of the frequencies of rotary positions in layers with windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rope_local_base_freq: Option<f64>,
    /// 0 for each layer without rotary positions, 1 for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_rope_layers: Option<Vec<u8>>,
    /// Unless they are listed: every N-th layer is without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_rope_layer_interval: Option<usize>,
    /// Unless `layer_types` names them: every N-th layer sees all tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sliding_window_pattern: Option<usize>,
    /// Experts of a layer.
    #[serde(skip_serializing_if = "Option::is_none", alias = "num_local_experts")]
    pub num_experts: Option<usize>,
    /// Experts that each token is read by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_experts_per_tok: Option<usize>,
    /// Width of an expert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moe_intermediate_size: Option<i64>,
    /// True if the shares of the experts that are chosen sum to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm_topk_prob: Option<bool>,
    /// Every N-th layer has experts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoder_sparse_step: Option<usize>,
    /// Layers without experts, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mlp_only_layers: Option<Vec<usize>>,
}

/// Entries that count only where a family has them.
const OPTIONAL: [&str; 28] = [
    "embd_pdrop",
    "resid_pdrop",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "layer_types",
    "embedding_multiplier",
    "attention_multiplier",
    "query_pre_attn_scalar",
    "attn_logit_softcapping",
    "residual_multiplier",
    "logits_scaling",
    "logit_scale",
    "final_logit_softcapping",
    "use_parallel_residual",
    "use_qk_norm",
    "partial_rotary_factor",
    "rope_local_base_freq",
    "no_rope_layers",
    "no_rope_layer_interval",
    "sliding_window_pattern",
    "num_experts",
    "num_local_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "norm_topk_prob",
    "decoder_sparse_step",
    "mlp_only_layers",
];

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
pub const SLIDING: &str = "sliding_attention";

impl LanguageConfig {
    /// Reads and validates a `config.json` of a family that is known.
    ///
    /// # Errors
    /// If the file is missing, no JSON, of another model type, or describes an impossible or unsupported model.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let names = |family: &LanguageFamily| [family.model_type, family.architecture];
        let of_family = |json, family| Self::of_family(path, json, family);
        let inventory = |config: &Self| config.family.storage.inventory(&config.inventory());
        checkpoint::read_config(path, LANGUAGE_MODELS, names, of_family, inventory)
    }

    /// The configuration with these entries, of this family; `path` is for messages.
    ///
    /// # Errors
    /// As for [`read`](Self::read), but for the file.
    pub fn of_family(
        path: &Path,
        json: Map<String, Value>,
        family: &'static LanguageFamily,
    ) -> Result<Self, Error> {
        let refusal = |fault: String| Error::file(path, fault);
        checkpoint::check_supported(&json, family.supported).map_err(refusal)?;
        let mut json = json;
        // `partial_rotary_factor` is judged with the other rotary settings
        let is_foreign =
            |name: &str| name != "partial_rotary_factor" && OPTIONAL.contains(&name) && !family.has(name);
        json.retain(|name, _| !is_foreign(name));
        let mut json = family.keys.to_common(json);
        of_one_age(&mut json, |name| family.has(name)).map_err(refusal)?;
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

    /// Width of a head in the weights next to a `config.json` that may give it and does not: tools that narrow a model leave its heads
    /// as they were. `None` if weights do not tell.
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

    /// Refuses an impossible model: the fault, in words.
    ///
    /// # Errors
    /// If a number is out of its range, groups do not divide the heads, no head would be left, or an unsupported variant is
    /// asked for.
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
        // rotary positions have no table
        if !(1..=MOST_ROWS).contains(&self.max_position_embeddings) {
            return Err(format!("{} must be from 1 to {MOST_ROWS}", keys.own("max_position_embeddings")));
        }
        self.validate_numbers()?;
        let widths = (0..self.num_hidden_layers).filter_map(|layer| self.turning(layer));
        if let Some(Turning { width, .. }) = widths.into_iter().find(|turning| turning.width % 2 != 0) {
            let share = self.options.partial_rotary_factor.map(|share| format!(", of which {share} turn,"));
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
            return Err(format!("no_rope_layers names {listed} layers of {}", self.num_hidden_layers));
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
        self.sliding_window.filter(|_| self.is_local(layer))
    }

    /// Returns true if a layer looks at the nearest tokens alone, should there be a window.
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

    /// Rotary positions of a layer, if it has any.
    pub fn turning(&self, layer: usize) -> Option<Turning> {
        let options = &self.options;
        let turns = match (&options.no_rope_layers, options.no_rope_layer_interval) {
            (Some(listed), _) => listed[layer] != 0,
            (None, Some(interval)) => !(layer + 1).is_multiple_of(interval),
            (None, None) => true,
        };
        let local = options.rope_local_base_freq.filter(|_| self.is_local(layer));
        let share = options.partial_rotary_factor.unwrap_or(1.0);
        (turns && self.family.names.positions.is_none()).then(|| Turning {
            width: (self.d_head() as f64 * share) as i64,
            interleaved: self.family.interleaved_rotary,
            theta: local.unwrap_or(self.rope_theta),
            scaling: self.rope_scaling.filter(|_| local.is_none()),
        })
    }

    /// Divisor of the scores of attention.
    pub fn divisor(&self) -> f64 {
        let factor = self.options.attention_multiplier;
        let square = self.options.query_pre_attn_scalar.unwrap_or(self.d_head() as f64);
        factor.map_or_else(|| square.sqrt(), f64::recip)
    }

    /// Divisor of logits, if they have one.
    pub fn logit_divisor(&self) -> Option<f64> {
        self.options.logits_scaling.or(self.options.logit_scale.map(f64::recip))
    }

    /// Factor of embeddings, if they have one.
    pub fn word_factor(&self) -> Option<f64> {
        let root = self.family.scales_words.then(|| (self.hidden_size as f64).sqrt());
        root.or(self.options.embedding_multiplier)
    }

    /// Names of a layer's tensors, counted from 0.
    pub fn layer_names(&self, layer: usize) -> LayerNames {
        let names = self.family.names.layer(layer);
        let has_head_norms = self.options.use_qk_norm != Some(false);
        LayerNames { head_norms: names.head_norms.filter(|_| has_head_norms), ..names }
    }

    /// Experts of a layer; 0 if it has a plain feed-forward block.
    pub fn experts(&self, layer: usize) -> usize {
        let options = &self.options;
        let is_plain = self.family.names.experts.is_none()
            || options.mlp_only_layers.as_ref().is_some_and(|layers| layers.contains(&layer))
            || !(layer + 1).is_multiple_of(options.decoder_sparse_step.unwrap_or(1));
        if is_plain { 0 } else { options.num_experts.unwrap_or(0) }
    }

    /// A tensor of the last expert, if there are experts.
    pub fn last_expert(&self) -> Option<String> {
        let layer = (0..self.num_hidden_layers).find(|&layer| self.experts(layer) > 0)?;
        let names = self.family.names.layer(layer).expert(self.experts(layer) - 1);
        names.first().map(|name| format!("{name}.weight"))
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

    /// The table of embeddings.
    pub fn embeddings(&self) -> (String, Vec<i64>) {
        let names = &self.family.names;
        (format!("{}.weight", names.of(names.words)), vec![self.vocab_size, self.hidden_size])
    }

    /// The output layer, where it is a tensor of its own.
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
            !is_null_width && (!OPTIONAL.contains(&name.as_str()) || self.family.has(name))
        });
        // what is left out is off, unless the family assumes that it is on
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

    fn with_attention_bias(&self) -> Option<Self> {
        let biases = self.family.biases;
        // where the entry is of the feed-forward block too, more than attention would change
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
                    format!("layer {layer} has groups of {groups:?} heads left, layer 1 of {first:?}")
                }
                Some(_) => continue,
            });
        }
        if self.queries_stay() {
            return Err(format!("the query and key norms of {} have factors for all heads", self.model_type));
        }
        if self.family.keys.entries.contains(&("head_dim", None)) {
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
