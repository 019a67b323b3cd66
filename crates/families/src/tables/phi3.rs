//! Phi-3 and Phi-4-mini, <https://arxiv.org/abs/2404.14219>: a Llama with fused maps, and heads that may be rotated in part. Variants for
//! long texts use `longrope`, which is refused.
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/phi3/modeling_phi3.py>.
use super::ConfigKeys;
use super::llama::{LIKE_LLAMA, REMOVED};
use super::{Bias, Biases, LanguageFamily, Windows};
use crate::storage::{Fused, Storage};

/// Phi-3 and similar models.
pub static PHI3: LanguageFamily = LanguageFamily {
    model_type: "phi3",
    architecture: "Phi3ForCausalLM",
    keys: ConfigKeys {
        entries: &[REMOVED],
        defaults: r#"{"hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-5}"#,
    },
    optional: &["embd_pdrop", "resid_pdrop", "sliding_window", "partial_rotary_factor"],
    storage: Storage {
        transposed: &[],
        fused: &[
            Fused {
                name: "self_attn.qkv_proj",
                parts: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
                by_head: false,
            },
            Fused { name: "mlp.gate_up_proj", parts: &["mlp.gate_proj", "mlp.up_proj"], by_head: false },
        ],
    },
    biases: Biases { inputs: Bias::Never, output: Bias::Never, feed_forward: Bias::Never },
    windows: Windows::Everywhere,
    ..LIKE_LLAMA
};
