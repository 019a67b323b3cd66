//! OLMo 2, <https://arxiv.org/abs/2501.00656>: normalises each sublayer's output instead of its input; queries and keys of all heads share
//! one norm, so those of a removed head are kept.
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/olmo2/modeling_olmo2.py>.
use super::ConfigKeys;
use super::llama::{LIKE_LLAMA, REMOVED};
use super::{Bias, Biases, HeadNorm, LanguageFamily, LanguageNames, SublayerNorms};

/// OLMo 2.
pub static OLMO2: LanguageFamily = LanguageFamily {
    model_type: "olmo2",
    architecture: "Olmo2ForCausalLM",
    keys: ConfigKeys {
        entries: &[REMOVED],
        defaults: r#"{"hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-5}"#,
    },
    names: LanguageNames {
        attention_norm: SublayerNorms { before: None, after: Some("post_attention_layernorm") },
        head_norms: Some(["self_attn.q_norm", "self_attn.k_norm"]),
        head_norm: HeadNorm::Joined,
        feed_forward_norm: SublayerNorms { before: None, after: Some("post_feedforward_layernorm") },
        ..LIKE_LLAMA.names
    },
    biases: Biases { inputs: Bias::OfAttention, output: Bias::OfAttention, feed_forward: Bias::Never },
    ..LIKE_LLAMA
};
