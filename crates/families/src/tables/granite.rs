//! Granite, <https://arxiv.org/abs/2405.04324>: a Llama with factors for embeddings, scores, sublayers and logits.
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/granite/modeling_granite.py>.
use super::ConfigKeys;
use super::LanguageFamily;
use super::llama::{LIKE_LLAMA, REMOVED};

/// Granite 3 and 4 without experts.
pub static GRANITE: LanguageFamily = LanguageFamily {
    model_type: "granite",
    architecture: "GraniteForCausalLM",
    keys: ConfigKeys {
        entries: &[REMOVED],
        defaults: r#"{"hidden_act": "silu", "max_position_embeddings": 2048, "attention_multiplier": 1.0}"#,
    },
    optional: &["embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"],
    ..LIKE_LLAMA
};
