//! SmolLM3, <https://huggingface.co/blog/smollm3>: a Llama in which some layers have no positions (NoPE).
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/smollm3/modeling_smollm3.py>.
use super::ConfigKeys;
use super::LanguageFamily;
use super::llama::{LIKE_LLAMA, REMOVED};

/// SmolLM3.
pub static SMOLLM3: LanguageFamily = LanguageFamily {
    model_type: "smollm3",
    architecture: "SmolLM3ForCausalLM",
    keys: ConfigKeys {
        entries: &[REMOVED],
        defaults: r#"{"hidden_act": "silu", "num_key_value_heads": 4, "max_position_embeddings": 32768,
            "rope_theta": 2e6, "no_rope_layer_interval": 4, "tie_word_embeddings": true}"#,
    },
    optional: &["no_rope_layers", "no_rope_layer_interval"],
    supported: &[("use_sliding_window", false)],
    ..LIKE_LLAMA
};
