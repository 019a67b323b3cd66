//! `config.json` of a translator, which determines its tensors and their shapes.
use std::collections::BTreeMap;
use std::path::Path;

use heads::{Attention, HeadLayout, HeadSet, LayerShape};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::ModelConfig;
use crate::config_keys::assume;
use crate::limits::{check_counts, check_divides, check_inventory, check_rates};
use crate::parts::{self, Activation, Inventory, Projections};
use crate::pruned_heads::{PrunedHeads, by_layer, named};
use crate::tables::{EmbeddingNames, Positions, TranslatorFamily};
use crate::tables::{MARIAN, TRANSLATORS};
use crate::{DropoutRates, Error, checkpoint};

/// Configuration of a translator, under the names that Hugging Face transformers uses for Marian.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranslatorConfig {
    /// The model's family.
    #[serde(skip, default = "marian")]
    pub family: &'static TranslatorFamily,
    /// The family's name.
    pub model_type: String,
    /// The class that transformers loads the folder into.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// Size of the source vocabulary.
    pub vocab_size: i64,
    /// Size of the target vocabulary; defaults to the source vocabulary's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoder_vocab_size: Option<i64>,
    /// Width of the residual stream.
    pub d_model: i64,
    /// Number of encoder layers.
    pub encoder_layers: usize,
    /// Heads per encoder layer.
    pub encoder_attention_heads: usize,
    /// Width of the encoder's feed-forward layers.
    pub encoder_ffn_dim: i64,
    /// Number of decoder layers.
    pub decoder_layers: usize,
    /// Heads per self-attention and per cross-attention of a decoder layer.
    pub decoder_attention_heads: usize,
    /// Width of the decoder's feed-forward layers.
    pub decoder_ffn_dim: i64,
    /// Activation of the feed-forward layers.
    pub activation_function: Activation,
    /// Maximum sentence length in tokens.
    pub max_position_embeddings: i64,
    /// True if embeddings are multiplied by the square root of `d_model`.
    #[serde(default)]
    pub scale_embedding: bool,
    /// Dropout on embeddings and on the output of each sublayer, in training.
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// Padding token.
    pub pad_token_id: u32,
    /// End-of-sentence token.
    pub eos_token_id: u32,
    /// Token that the decoder starts with.
    pub decoder_start_token_id: u32,
    /// Token that a sentence of maximum length must end with.
    #[serde(default)]
    pub forced_eos_token_id: Option<u32>,
    /// True if source and target share one embedding table; by default the family decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_encoder_decoder_embeddings: Option<bool>,
    /// True if the output layer is the embedding table; by default the family decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie_word_embeddings: Option<bool>,
    /// True if positions are sinusoidal and fixed; by default the family decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub static_position_embeddings: Option<bool>,
    /// Keys that only T5 has.
    #[serde(flatten)]
    pub relative: RelativeEntries,
    /// Heads that were removed from the weights, by attention type and layer, layers and heads counted from 0. Unlike transformers'
    /// `pruned_heads`, which has one attention module per layer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pruned_attention_heads: BTreeMap<Attention, PrunedHeads>,
}

/// Keys that only T5 has, under transformers' names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RelativeEntries {
    /// Width of a head; defaults to `d_model / heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d_kv: Option<i64>,
    /// Number of buckets of distances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_attention_num_buckets: Option<i64>,
    /// Distance from which on all are in one bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_attention_max_distance: Option<i64>,
    /// Added to the mean square in norms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_norm_epsilon: Option<f64>,
    /// Kind of feed-forward layers; gated ones have three maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_forward_proj: Option<FeedForwardProjection>,
    /// True if decoder states are divided by the square root of `d_model`; by default if the output layer is tied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_decoder_outputs: Option<bool>,
}

/// Feed-forward layers of T5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeedForwardProjection {
    /// max(0, x)
    Relu,
    /// max(0, x), gated
    GatedRelu,
    /// GELU by its tanh approximation, gated
    GatedGelu,
    /// x * sigmoid(x), gated
    GatedSilu,
}

fn marian() -> &'static TranslatorFamily {
    &MARIAN
}

fn dropout() -> f64 {
    0.1
}

impl TranslatorConfig {
    /// Reads and validates the `config.json` of a known family. Fails if the model is impossible or unsupported.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let names = |family: &TranslatorFamily| [family.model_type, family.architecture];
        let of_family = |json, family| Self::of_family(path, json, family);
        checkpoint::read_config(path, TRANSLATORS, names, of_family, Self::inventory)
    }

    fn of_family(
        path: &Path,
        mut json: Map<String, Value>,
        family: &'static TranslatorFamily,
    ) -> Result<Self, Error> {
        let refusal = |fault: String| Error::file(path, fault);
        checkpoint::check_supported(&json, family.supported).map_err(refusal)?;
        assume(&mut json, family.generation);
        json.entry("architectures").or_insert_with(|| vec![family.architecture].into());
        let config: Self = checkpoint::parse(path, Value::Object(family.keys.to_common(json)))?;
        let config = Self { family, ..config };
        config.validate().map_err(refusal)?;
        Ok(config)
    }

    /// Refuses an impossible model and returns why: a number is out of range, heads do not divide `d_model`, no head would remain, a token
    /// is outside the vocabulary, or tokens or vocabularies contradict each other.
    pub fn validate(&self) -> Result<(), String> {
        let heads = [
            ("encoder_attention_heads", self.encoder_attention_heads),
            ("decoder_attention_heads", self.decoder_attention_heads),
        ];
        check_counts(heads)?;
        check_counts([("encoder_layers", self.encoder_layers), ("decoder_layers", self.decoder_layers)])?;
        match self.relative.d_kv {
            Some(width) if !(1..=1 << 16).contains(&width) => {
                return Err("d_kv must be from 1 to 65536".to_owned());
            }
            Some(_) => {}
            None => {
                heads.into_iter().try_for_each(|heads| check_divides(heads, ("d_model", self.d_model)))?;
            }
        }
        self.check_relative()?;
        check_inventory(&Self { pruned_attention_heads: BTreeMap::new(), ..self.clone() }.inventory())?;
        // This table is computed, so no tensor limits its size: 256 MB at most.
        let most = ((1 << 26) / self.d_model).max(1);
        if !(1..=most).contains(&self.max_position_embeddings) {
            let fault = "max_position_embeddings must be from 1 to";
            return Err(format!("{fault} {most} for a d_model of {}", self.d_model));
        }
        let is_sinusoidal = matches!(self.family.positions, Positions::Sinusoids(_));
        if is_sinusoidal && (self.d_model % 2 != 0 || self.d_model < 4) {
            return Err(format!(
                "d_model ({}) must be even for sinusoidal positions, and at least 4",
                self.d_model
            ));
        }
        check_rates([("dropout", self.dropout)])?;
        let removed = self.layout().removed().clone();
        self.unpruned_layout()
            .without(&removed)
            .map_err(|fault| format!("pruned_attention_heads: {fault}"))?;
        self.validate_symbols()
    }

    fn validate_symbols(&self) -> Result<(), String> {
        let symbols = [
            ("pad_token_id", Some(self.pad_token_id)),
            ("eos_token_id", Some(self.eos_token_id)),
            ("decoder_start_token_id", Some(self.decoder_start_token_id)),
            ("forced_eos_token_id", self.forced_eos_token_id),
        ];
        if self.pad_token_id == self.eos_token_id {
            return Err(
                "pad_token_id and eos_token_id must differ: the padding is never generated".to_owned()
            );
        }
        let (source, target) = (self.vocab_size, self.target_vocabulary());
        if self.shares_vocabulary() && source != target {
            return Err(format!(
                "decoder_vocab_size ({target}) differs from vocab_size ({source}), which is not supported"
            ));
        }
        let is_beyond = |id: &Option<u32>| id.is_some_and(|id| i64::from(id) >= source.min(target));
        match symbols.iter().find(|(_, id)| is_beyond(id)) {
            Some((name, _)) => {
                let name_of_size = self.family.keys.own("vocab_size");
                Err(format!("{name} is not below {name_of_size} ({})", source.min(target)))
            }
            None => Ok(()),
        }
    }

    /// Returns the names of embeddings and output layer.
    pub fn embeddings(&self) -> &'static EmbeddingNames {
        let separate = self.family.separate.as_ref().filter(|_| self.is_separate());
        separate.unwrap_or(&self.family.embeddings)
    }

    fn is_separate(&self) -> bool {
        self.family.separate.is_some() && self.share_encoder_decoder_embeddings == Some(false)
    }

    /// Returns the name of the target embeddings.
    pub fn target_embedding(&self) -> &'static str {
        let names = self.embeddings();
        if self.tie_word_embeddings == Some(true) && !self.is_separate() {
            names.source
        } else {
            names.target
        }
    }

    /// Returns the name of the output layer, which may be the target embeddings.
    pub fn output_layer(&self) -> &'static str {
        let own = self.embeddings().output.filter(|_| self.tie_word_embeddings == Some(false));
        own.unwrap_or_else(|| self.target_embedding())
    }

    fn shares_vocabulary(&self) -> bool {
        self.target_embedding() == self.embeddings().source
    }

    /// Returns tied copies that a folder may also contain, each with its original.
    pub fn copies(&self) -> Vec<(&'static str, &'static str)> {
        let (names, target) = (self.embeddings(), self.target_embedding());
        let tied = (names.target != target).then_some((names.target, target));
        let output = names.output.filter(|_| self.output_layer() == target).map(|output| (output, target));
        let original = |of| if of == names.target { target } else { of };
        names.copies.iter().map(|&(copy, of)| (copy, original(of))).chain(tied).chain(output).collect()
    }

    /// Returns the size of the target vocabulary.
    pub fn target_vocabulary(&self) -> i64 {
        self.decoder_vocab_size.unwrap_or(self.vocab_size)
    }

    fn unpruned_layout(&self) -> HeadLayout {
        let shape = |layers, heads| {
            let plain = LayerShape::plain(layers, heads, self.d_model);
            LayerShape { d_head: self.relative.d_kv.unwrap_or(plain.d_head), ..plain }
        };
        let encoder = shape(self.encoder_layers, self.encoder_attention_heads);
        let decoder = shape(self.decoder_layers, self.decoder_attention_heads);
        HeadLayout::new([
            (Attention::EncEnc, encoder),
            (Attention::EncDec, decoder),
            (Attention::DecDec, decoder),
        ])
    }

    /// Returns the factor of a linear map's initial weights: below 1 for the last map of a sublayer.
    pub fn initial_scale(&self, name: &str) -> f64 {
        let sublayers =
            if name.contains(".encoder.") { 2 * self.encoder_layers } else { 3 * self.decoder_layers };
        let is_last = name.ends_with("out_proj.weight") || name.ends_with("fc2.weight");
        if is_last { 1.0 / (sublayers as f64).sqrt() } else { 1.0 }
    }
}

impl ModelConfig for TranslatorConfig {
    fn inventory(&self) -> Inventory {
        parts::inventory(|tensors| self.parts(tensors))
    }

    fn read_layout(path: &Path) -> Result<HeadLayout, Error> {
        Ok(Self::read(path)?.layout())
    }

    fn write(&self, path: &Path) -> Result<(), Error> {
        self.family.keys.write(path, self)
    }

    fn layout(&self) -> HeadLayout {
        let removed = self.pruned_attention_heads.iter();
        let removed = removed.flat_map(|(&attention, pruned)| named(attention, pruned)).collect();
        self.unpruned_layout().with_removed(removed)
    }

    fn dropout(&self) -> DropoutRates {
        DropoutRates { hidden: self.dropout, attention: 0.0, classifier: 0.0 }
    }

    fn projections(&self, attention: Attention, layer: usize) -> Projections {
        self.family.layers.projections(attention, layer)
    }

    fn without_heads(&self, heads: &HeadSet) -> Self {
        let removed: HeadSet = self.layout().removed().iter().chain(heads.iter()).collect();
        let types = self.unpruned_layout();
        let by_type = types.types().map(|(attention, _)| (attention, by_layer(attention, &removed)));
        let pruned_attention_heads = by_type.filter(|(_, pruned)| !pruned.is_empty()).collect();
        Self { pruned_attention_heads, ..self.clone() }
    }
}
