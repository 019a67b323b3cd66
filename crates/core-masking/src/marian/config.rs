//! `config.json` of a Marian folder: which tensors there are, and how large.
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::weights::Inventory;
use crate::{Attention, Error, HeadLayout, LayerShape, checkpoint};

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
        let config: Self =
            serde_json::from_value(json).map_err(|source| Error::Json { path: path.to_owned(), source })?;
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
        let sizes = [
            ("vocab_size", self.vocab_size, 1 << 24),
            ("d_model", self.d_model, 1 << 16),
            ("encoder_layers", self.encoder_layers as i64, 1 << 10),
            ("encoder_attention_heads", self.encoder_attention_heads as i64, 1 << 10),
            ("encoder_ffn_dim", self.encoder_ffn_dim, 1 << 20),
            ("decoder_layers", self.decoder_layers as i64, 1 << 10),
            ("decoder_attention_heads", self.decoder_attention_heads as i64, 1 << 10),
            ("decoder_ffn_dim", self.decoder_ffn_dim, 1 << 20),
            ("max_position_embeddings", self.max_position_embeddings, 1 << 16),
        ];
        if let Some((name, _, most)) = sizes.iter().find(|(_, size, most)| !(1..=*most).contains(size)) {
            return Err(format!("{name} must be from 1 to {most}"));
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
        self.validate_symbols()?;
        self.validate_variant()
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
        let mut inventory = vec![
            ("model.shared.weight".to_owned(), vec![self.vocab_size, self.d_model]),
            ("final_logits_bias".to_owned(), vec![1, self.vocab_size]),
        ];
        for layer in 0..self.encoder_layers {
            let name = format!("model.encoder.layers.{layer}");
            self.layer_inventory(&name, &["self_attn"], self.encoder_ffn_dim, &mut inventory);
        }
        for layer in 0..self.decoder_layers {
            let name = format!("model.decoder.layers.{layer}");
            self.layer_inventory(&name, &["self_attn", "encoder_attn"], self.decoder_ffn_dim, &mut inventory);
        }
        inventory
    }

    fn layer_inventory(&self, name: &str, attentions: &[&str], width: i64, inventory: &mut Inventory) {
        let d_model = self.d_model;
        let mut linear = |part: String, output: i64, input: i64| {
            inventory.push((format!("{name}.{part}.weight"), vec![output, input]));
            inventory.push((format!("{name}.{part}.bias"), vec![output]));
        };
        for attention in attentions {
            for part in ["q", "k", "v", "out"] {
                linear(format!("{attention}.{part}_proj"), d_model, d_model);
            }
        }
        linear("fc1".to_owned(), width, d_model);
        linear("fc2".to_owned(), d_model, width);
        let norms = attentions.iter().map(|attention| format!("{attention}_layer_norm"));
        for norm in norms.chain(["final_layer_norm".to_owned()]) {
            inventory.push((format!("{name}.{norm}.weight"), vec![d_model]));
            inventory.push((format!("{name}.{norm}.bias"), vec![d_model]));
        }
    }
}
