//! `config.json` of a Marian folder: which tensors there are, and how large.
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::pruning::{PrunedHeads, by_layer, named};
use crate::weights::{Inventory, check_parameters, check_sizes, linear, norm};
use crate::{Attention, Error, HeadLayout, HeadSet, LayerShape, checkpoint};

/// The nonlinearity between the two linear maps of a feed-forward block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// max(0, x), Vaswani et al. (2017)
    Relu,
    /// x * sigmoid(x), as in the opus-mt models
    #[serde(alias = "silu")]
    Swish,
}

/// Sizes and symbols of a Marian translator, under the names of Hugging Face transformers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarianConfig {
    /// Always `marian`.
    pub model_type: String,
    /// The class that transformers loads the folder into.
    #[serde(default = "architectures")]
    pub architectures: Vec<String>,
    /// Pieces of the vocabulary that source and target share.
    pub vocab_size: i64,
    /// Width of the residual stream.
    pub d_model: i64,
    /// Encoder layers.
    pub encoder_layers: usize,
    /// Heads in an encoder layer.
    pub encoder_attention_heads: usize,
    /// Width of the encoder's feed-forward blocks.
    pub encoder_ffn_dim: i64,
    /// Decoder layers.
    pub decoder_layers: usize,
    /// Heads in a decoder layer, self-attention and attention to the encoder alike.
    pub decoder_attention_heads: usize,
    /// Width of the decoder's feed-forward blocks.
    pub decoder_ffn_dim: i64,
    /// Between the two linear maps of a feed-forward block.
    pub activation_function: Activation,
    /// The longest sentence, in tokens.
    pub max_position_embeddings: i64,
    /// Whether embeddings are multiplied by the square root of `d_model`.
    #[serde(default)]
    pub scale_embedding: bool,
    /// Dropout on embeddings and on the output of each sublayer, in training.
    #[serde(default = "dropout")]
    pub dropout: f64,
    /// The padding symbol.
    pub pad_token_id: u32,
    /// The end-of-sentence symbol.
    pub eos_token_id: u32,
    /// What the decoder starts from.
    pub decoder_start_token_id: u32,
    /// The symbol that a sentence of the greatest length must end with.
    #[serde(default)]
    pub forced_eos_token_id: Option<u32>,
    /// Whether source and target share one embedding table; only `true` is supported.
    #[serde(default = "yes")]
    pub share_encoder_decoder_embeddings: bool,
    /// Whether the output layer is the embedding table; only `true` is supported.
    #[serde(default = "yes")]
    pub tie_word_embeddings: bool,
    /// Whether positions are sinusoidal and fixed; only `true` is supported.
    #[serde(default = "yes")]
    pub static_position_embeddings: bool,
    /// Heads that were cut out of the weights, by attention type and layer, layers and heads counted from 0. Not of
    /// transformers, whose `pruned_heads` knows one attention module in a layer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pruned_attention_heads: BTreeMap<Attention, PrunedHeads>,
}

fn architectures() -> Vec<String> {
    vec!["MarianMTModel".to_owned()]
}

fn dropout() -> f64 {
    0.1
}

fn yes() -> bool {
    true
}

/// Refuses variants that only entries of foreign files speak of; opus-mt's files have them all, with these values.
fn validate_foreign(json: &serde_json::Value) -> Result<(), String> {
    let required = [
        ("add_bias_logits", false),
        ("add_final_layer_norm", false),
        ("is_encoder_decoder", true),
        ("normalize_before", false),
        ("normalize_embedding", false),
    ];
    for (name, wanted) in required {
        if json.get(name).and_then(serde_json::Value::as_bool).is_some_and(|found| found != wanted) {
            return Err(format!("{name} is {}, which is not supported", !wanted));
        }
    }
    match (json.get("decoder_vocab_size"), json.get("vocab_size")) {
        (Some(serde_json::Value::Number(target)), Some(serde_json::Value::Number(source)))
            if target != source =>
        {
            Err(format!(
                "decoder_vocab_size ({target}) differs from vocab_size ({source}), which is not supported"
            ))
        }
        _ => Ok(()),
    }
}

impl MarianConfig {
    /// Reads and validates a `config.json`.
    ///
    /// # Errors
    /// If the file is missing, no JSON, of another model type, or describes an impossible or unsupported model.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let json: serde_json::Value = checkpoint::read_config(path, "marian")?;
        validate_foreign(&json).map_err(|fault| Error::Config { path: path.to_owned(), fault })?;
        let config: Self = checkpoint::parse(path, json)?;
        config.validate().map_err(|fault| Error::Config { path: path.to_owned(), fault })?;
        Ok(config)
    }

    /// Refuses an impossible model: the fault, in words.
    ///
    /// # Errors
    /// If a size is zero, heads do not divide `d_model`, a symbol lies outside the vocabulary, or an unsupported
    /// variant is asked for.
    pub fn validate(&self) -> Result<(), String> {
        // Far beyond any translator, and small enough that a forged file cannot exhaust the memory.
        check_sizes(&[
            ("vocab_size", self.vocab_size, 1 << 24),
            ("d_model", self.d_model, 1 << 16),
            ("encoder_layers", self.encoder_layers as i64, 1 << 8),
            ("encoder_attention_heads", self.encoder_attention_heads as i64, 1 << 8),
            ("encoder_ffn_dim", self.encoder_ffn_dim, 1 << 20),
            ("decoder_layers", self.decoder_layers as i64, 1 << 8),
            ("decoder_attention_heads", self.decoder_attention_heads as i64, 1 << 8),
            ("decoder_ffn_dim", self.decoder_ffn_dim, 1 << 20),
            ("max_position_embeddings", self.max_position_embeddings, 1 << 16),
        ])?;
        // The one table that is computed, so that no tensor of a file vouches for its size: 256 MB.
        let most = (1 << 26) / self.d_model;
        if self.max_position_embeddings > most {
            return Err(format!(
                "max_position_embeddings must be from 1 to {most} for a d_model of {}",
                self.d_model
            ));
        }
        for (name, heads) in [
            ("encoder_attention_heads", self.encoder_attention_heads as i64),
            ("decoder_attention_heads", self.decoder_attention_heads as i64),
        ] {
            if self.d_model % heads != 0 {
                return Err(format!("{name} ({heads}) does not divide d_model ({})", self.d_model));
            }
        }
        if self.d_model % 2 != 0 {
            return Err(format!("d_model ({}) must be even for sinusoidal positions", self.d_model));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(format!("dropout ({}) must be at least 0 and below 1", self.dropout));
        }
        let removed = self.layout().removed().clone();
        self.unpruned_layout()
            .without(&removed)
            .map_err(|fault| format!("pruned_attention_heads: {fault}"))?;
        self.validate_symbols()?;
        self.validate_variant()?;
        check_parameters(&self.inventory())
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
        match symbols.iter().find(|(_, id)| id.is_some_and(|id| i64::from(id) >= self.vocab_size)) {
            Some((name, _)) => Err(format!("{name} is not below vocab_size ({})", self.vocab_size)),
            None => Ok(()),
        }
    }

    fn validate_variant(&self) -> Result<(), String> {
        let required = [
            ("share_encoder_decoder_embeddings", self.share_encoder_decoder_embeddings),
            ("tie_word_embeddings", self.tie_word_embeddings),
            ("static_position_embeddings", self.static_position_embeddings),
        ];
        match required.iter().find(|(_, set)| !set) {
            Some((name, _)) => Err(format!("{name} is false, which is not supported")),
            None => Ok(()),
        }
    }

    /// The heads of the model.
    pub fn layout(&self) -> HeadLayout {
        let removed = self.pruned_attention_heads.iter();
        let removed = removed.flat_map(|(&attention, pruned)| named(attention, pruned)).collect();
        self.unpruned_layout().with_removed(removed)
    }

    /// The same model with these heads cut out, of which the model has all.
    pub(super) fn without_heads(&self, heads: &HeadSet) -> Self {
        let removed: HeadSet = self.layout().removed().iter().chain(heads.iter()).collect();
        let types = self.unpruned_layout();
        let by_type = types.types().map(|(attention, _)| (attention, by_layer(attention, &removed)));
        let pruned_attention_heads = by_type.filter(|(_, pruned)| !pruned.is_empty()).collect();
        Self { pruned_attention_heads, ..self.clone() }
    }

    fn unpruned_layout(&self) -> HeadLayout {
        let encoder = LayerShape { layers: self.encoder_layers, heads: self.encoder_attention_heads };
        let decoder = LayerShape { layers: self.decoder_layers, heads: self.decoder_attention_heads };
        HeadLayout::new([
            (Attention::EncEnc, encoder),
            (Attention::EncDec, decoder),
            (Attention::DecDec, decoder),
        ])
    }

    /// What the initial weights of a linear map are multiplied by: below 1 for the last map of a sublayer.
    pub(super) fn initial_scale(&self, name: &str) -> f64 {
        let sublayers = match name.contains(".encoder.") {
            true => 2 * self.encoder_layers,
            false => 3 * self.decoder_layers,
        };
        let is_last = name.ends_with("out_proj.weight") || name.ends_with("fc2.weight");
        if is_last { 1.0 / (sublayers as f64).sqrt() } else { 1.0 }
    }

    /// Name and shape of each tensor in `model.safetensors`.
    pub fn inventory(&self) -> Inventory {
        let layout = self.layout();
        let mut inventory = vec![
            ("model.shared.weight".to_owned(), vec![self.vocab_size, self.d_model]),
            ("final_logits_bias".to_owned(), vec![1, self.vocab_size]),
        ];
        for layer in 0..self.encoder_layers {
            let name = format!("model.encoder.layers.{layer}");
            let modules = [(Attention::EncEnc, self.encoder_attention_heads)];
            self.layer_inventory(&layout, &name, layer, &modules, self.encoder_ffn_dim, &mut inventory);
        }
        for layer in 0..self.decoder_layers {
            let name = format!("model.decoder.layers.{layer}");
            let heads = self.decoder_attention_heads;
            let modules = [(Attention::DecDec, heads), (Attention::EncDec, heads)];
            self.layer_inventory(&layout, &name, layer, &modules, self.decoder_ffn_dim, &mut inventory);
        }
        inventory
    }

    /// `modules`: the attention modules with the number of heads that they had at first.
    fn layer_inventory(
        &self,
        layout: &HeadLayout,
        name: &str,
        layer: usize,
        modules: &[(Attention, usize)],
        width: i64,
        inventory: &mut Inventory,
    ) {
        let d_model = self.d_model;
        for &(attention, heads) in modules {
            let kept = layout.kept(attention, layer).len() as i64 * (d_model / heads as i64);
            let [query, key, value, output] = projections(attention, layer);
            [query, key, value].iter().for_each(|name| linear(inventory, name, kept, d_model));
            linear(inventory, &output, d_model, kept);
        }
        linear(inventory, &format!("{name}.fc1"), width, d_model);
        linear(inventory, &format!("{name}.fc2"), d_model, width);
        for &(attention, _) in modules {
            norm(inventory, &format!("{}_layer_norm", module(attention, layer)), d_model);
        }
        norm(inventory, &format!("{name}.final_layer_norm"), d_model);
    }
}

/// Name of an attention module; its normalisation and projections begin with it.
pub(super) fn module(attention: Attention, layer: usize) -> String {
    let (stack, part) = match attention {
        Attention::EncEnc | Attention::SelfAttention => ("encoder", "self_attn"),
        Attention::EncDec => ("decoder", "encoder_attn"),
        Attention::DecDec => ("decoder", "self_attn"),
    };
    format!("model.{stack}.layers.{layer}.{part}")
}

/// Query, key, value and output projection of an attention module.
pub(super) fn projections(attention: Attention, layer: usize) -> [String; 4] {
    let name = module(attention, layer);
    ["q", "k", "v", "out"].map(|part| format!("{name}.{part}_proj"))
}
