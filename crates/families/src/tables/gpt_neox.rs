//! GPT-NeoX, Black et al. (2022), <https://arxiv.org/abs/2204.06745>, and Pythia, Biderman et al. (2023),
//! <https://arxiv.org/abs/2304.01373>: sublayers in parallel, unless `use_parallel_residual` is false; part of each head is rotated.
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/gpt_neox/modeling_gpt_neox.py>.
use super::ConfigKeys;
use super::llama::{LIKE_LLAMA, REMOVED};
use super::{Bias, Biases, LanguageFamily, LanguageNames, Normalisation};
use crate::storage::{Fused, Storage};

/// GPT-NeoX.
pub static GPT_NEOX: LanguageFamily = LanguageFamily {
    model_type: "gpt_neox",
    architecture: "GPTNeoXForCausalLM",
    keys: ConfigKeys {
        entries: &[
            ("rms_norm_eps", Some("layer_norm_eps")),
            ("rope_theta", Some("rotary_emb_base")),
            ("partial_rotary_factor", Some("rotary_pct")),
            ("resid_pdrop", Some("hidden_dropout")),
            ("num_key_value_heads", None),
            ("head_dim", None),
            ("mlp_bias", None),
            REMOVED,
        ],
        defaults: r#"{"hidden_act": "gelu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "partial_rotary_factor": 0.25,
            "attention_bias": true, "use_parallel_residual": true}"#,
    },
    optional: &["use_parallel_residual"],
    names: LanguageNames {
        prefix: "gpt_neox",
        words: "embed_in",
        projections: ["attention.query", "attention.key", "attention.value", "attention.dense"],
        feed_forward: &["mlp.dense_h_to_4h", "mlp.dense_4h_to_h"],
        norm: "final_layer_norm",
        output: "embed_out",
        ..LIKE_LLAMA.names
    },
    storage: Storage {
        transposed: &[],
        fused: &[Fused {
            name: "attention.query_key_value",
            parts: &["attention.query", "attention.key", "attention.value"],
            by_head: true,
        }],
    },
    norm: Normalisation::Layer,
    biases: Biases { inputs: Bias::OfAttention, output: Bias::OfAttention, feed_forward: Bias::Always },
    unused: &["attention.bias", "attention.masked_bias", "rotary_emb.inv_freq"],
    ..LIKE_LLAMA
};
