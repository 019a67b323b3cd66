//! GLM-4 (0414), <https://arxiv.org/abs/2406.12793>: norms before and after each sublayer, inside the residual connection; rotary positions
//! pair neighbouring dimensions of the first half of each head.
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/glm4/modeling_glm4.py>.
use super::ConfigKeys;
use super::llama::{LIKE_LLAMA, REMOVED};
use super::{Bias, Biases, LanguageFamily, LanguageNames, SublayerNorms};
use crate::storage::{Fused, Storage};

/// GLM-4.
pub static GLM4: LanguageFamily = LanguageFamily {
    model_type: "glm4",
    architecture: "Glm4ForCausalLM",
    keys: ConfigKeys {
        entries: &[REMOVED],
        defaults: r#"{"hidden_act": "silu", "max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128,
            "rms_norm_eps": 1.5625e-7, "partial_rotary_factor": 0.5}"#,
    },
    optional: &["partial_rotary_factor"],
    names: LanguageNames {
        attention_norm: SublayerNorms {
            before: Some("input_layernorm"),
            after: Some("post_self_attn_layernorm"),
        },
        feed_forward_norm: SublayerNorms {
            before: Some("post_attention_layernorm"),
            after: Some("post_mlp_layernorm"),
        },
        ..LIKE_LLAMA.names
    },
    storage: Storage {
        transposed: &[],
        fused: &[Fused {
            name: "mlp.gate_up_proj",
            parts: &["mlp.gate_proj", "mlp.up_proj"],
            by_head: false,
        }],
    },
    biases: Biases { inputs: Bias::OfAttention, output: Bias::Never, feed_forward: Bias::Never },
    interleaved_rotary: true,
    ..LIKE_LLAMA
};
