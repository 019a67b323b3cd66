//! Size, tokeniser and training settings of a language model that is trained from scratch.
use core_masking::families::{GPT2, LLAMA};
use core_masking::language_model::{LanguageFamily, LanguageOptions, TokenIds};
use core_masking::{Activation, LanguageConfig, ModelConfig};
use serde::{Deserialize, Serialize};
use training::Keep;

use crate::spec::{check_training, section};
use corpus::splits::check;

/// Families that can be trained from scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FamilyName {
    Gpt2,
    Llama,
}

section! {
    /// Size of a language model.
    model DecoderSpec {
        /// `gpt2` or `llama`.
        pub family: FamilyName,
        /// Key-value heads per layer, each shared by a group of query heads; defaults to the number of heads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub key_value_heads: Option<usize>,
        /// Maximum text length in tokens.
        pub positions: i64,
        /// Dropout: everywhere in GPT-2, on attention weights in Llama.
        #[serde(default)]
        pub dropout: f64,
        /// True if the output layer shares the weights of the embeddings.
        #[serde(default = "tied")]
        pub tied: bool,
        /// Standard deviation of the initial weights.
        #[serde(default = "crate::spec::initializer_range")]
        pub initializer_range: f64,
    }
}

fn tied() -> bool {
    true
}

/// Tokeniser of the texts.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenizerSpec {
    /// Units of the tokens.
    pub kind: TokenKind,
    /// Maximum vocabulary size of `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenKind {
    /// Byte-level BPE.
    Bytes,
    /// Each character is a token.
    Characters,
}

section! {
    /// AdamW with linear warm-up and cosine decay.
    training PretrainingSpec {
        /// Tokens per batch of whole documents, padding included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub batch_tokens: Option<usize>,
        /// Train on blocks of text that begin anywhere, instead of documents. An epoch then has `blocks.steps` updates.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub blocks: Option<BlockSpec>,
        /// Learning rate at the end of the warm-up.
        pub learning_rate: f64,
        /// Optimiser updates of linear warm-up.
        #[serde(default)]
        pub warmup_steps: usize,
        /// Final learning rate, as a share of the maximum.
        #[serde(default = "final_share")]
        pub final_share: f64,
        /// Weight decay, applied to all weights except biases and normalisations.
        #[serde(default = "weight_decay")]
        pub weight_decay: f64,
        /// Decay rates of Adam's moments.
        #[serde(default = "adam_betas")]
        pub adam_betas: [f64; 2],
        /// Maximum L2 norm of the gradient of all weights together.
        #[serde(default = "crate::spec::clip_norm")]
        pub clip_norm: f64,
        /// The epoch that becomes the model: `best` on the development split, or `last`.
        #[serde(default = "keep")]
        pub keep: Keep,
    }
}

/// Blocks of text that begin anywhere, as in nanoGPT.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlockSpec {
    /// Predicted tokens per block.
    pub length: usize,
    /// Blocks per batch.
    pub batch_size: usize,
    /// Batches per epoch.
    pub steps: usize,
}

fn final_share() -> f64 {
    0.1
}

fn weight_decay() -> f64 {
    0.1
}

fn adam_betas() -> [f64; 2] {
    [0.9, 0.95]
}

fn keep() -> Keep {
    Keep::Best
}

impl PretrainingSpec {
    pub(super) fn validate(&self) -> Result<(), String> {
        let rate = ("learning_rate", self.learning_rate);
        check_training(self.epochs, rate, self.clip_norm, self.weight_decay, self.adam_betas)?;
        check(&[
            (
                "[training] needs either batch_tokens or blocks",
                self.batch_tokens.is_some() != self.blocks.is_some(),
            ),
            (
                "training.batch_tokens must be from 1 to 16777216",
                self.batch_tokens.is_none_or(|tokens| (1..=1 << 24).contains(&tokens)),
            ),
            ("training.warmup_steps must be at most 1000000", self.warmup_steps <= 1_000_000),
            ("training.final_share must be from 0 to 1", (0.0..=1.0).contains(&self.final_share)),
        ])?;
        let Some(BlockSpec { length, batch_size, steps }) = self.blocks else { return Ok(()) };
        check(&[
            ("training.blocks.length must be from 1 to 1048576", (1..=1 << 20).contains(&length)),
            ("training.blocks.batch_size must be from 1 to 65536", (1..=1 << 16).contains(&batch_size)),
            ("training.blocks.steps must be from 1 to 1000000", (1..=1_000_000).contains(&steps)),
        ])
    }
}

impl DecoderSpec {
    /// Returns the configuration with all heads, for a tokeniser's vocabulary size.
    pub(super) fn config(&self, vocabulary: usize, symbols: Symbols) -> LanguageConfig {
        let family: &'static LanguageFamily = match self.family {
            FamilyName::Gpt2 => &GPT2,
            FamilyName::Llama => &LLAMA,
        };
        let is_gpt2 = self.family == FamilyName::Gpt2;
        let of_gpt2 = if is_gpt2 { self.dropout } else { 0.0 };
        LanguageConfig {
            family,
            model_type: family.model_type.to_owned(),
            architectures: vec![family.architecture.to_owned()],
            vocab_size: vocabulary as i64,
            hidden_size: self.d_model,
            num_hidden_layers: self.layers,
            num_attention_heads: self.heads,
            num_key_value_heads: self.key_value_heads,
            head_dim: None,
            intermediate_size: Some(self.d_ff),
            hidden_act: if is_gpt2 { Activation::GeluNew } else { Activation::Silu },
            max_position_embeddings: self.positions,
            rms_norm_eps: 1e-5,
            rope_theta: 10_000.0,
            rope_scaling: None,
            tie_word_embeddings: self.tied,
            attention_bias: false,
            mlp_bias: false,
            sliding_window: None,
            use_sliding_window: false,
            max_window_layers: None,
            layer_types: None,
            initializer_range: self.initializer_range,
            embd_pdrop: of_gpt2,
            resid_pdrop: of_gpt2,
            attention_dropout: self.dropout,
            bos_token_id: symbols.begin,
            eos_token_id: symbols.end.map(TokenIds::One),
            options: LanguageOptions::default(),
            pruned_heads: [].into(),
        }
    }

    /// Refuses an impossible model.
    pub(super) fn validate(&self) -> Result<(), String> {
        check(&[(
            "model.key_value_heads is for llama: GPT-2 has keys and values of each head",
            self.family == FamilyName::Llama || self.key_value_heads.is_none(),
        )])?;
        let config = self.config(1, Symbols::default());
        config.validate()?;
        self.open_heads.validate(&config.layout())
    }
}

/// BOS and EOS tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Symbols {
    pub begin: Option<u32>,
    pub end: Option<u32>,
}
