//! Gemma, <https://arxiv.org/abs/2403.08295>, <https://arxiv.org/abs/2408.00118> and <https://arxiv.org/abs/2503.19786>: embeddings are
//! multiplied by the square root of their width, norms by 1 + weight. Gemma 2 soft-caps attention scores and logits, and also normalises
//! each sublayer's output. Gemma 3 normalises queries and keys, and its layers with sliding windows have a different rotary base. As in
//! transformers, its soft cap of attention scores is not used.
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/gemma/modeling_gemma.py>.
use super::ConfigKeys;
use super::llama::{LIKE_LLAMA, REMOVED};
use super::{Bias, Biases, LanguageFamily, LanguageNames, Normalisation, SublayerNorms, Windows};

/// Gemma. Its activation is the tanh approximation of GELU, although `hidden_act` of the first files is `gelu`.
pub static GEMMA: LanguageFamily = LanguageFamily {
    model_type: "gemma",
    architecture: "GemmaForCausalLM",
    keys: ConfigKeys {
        entries: &[("hidden_act", None), REMOVED],
        defaults: r#"{"hidden_act": "gelu_pytorch_tanh", "num_key_value_heads": 16, "head_dim": 256,
            "max_position_embeddings": 8192, "tie_word_embeddings": true}"#,
    },
    ..LIKE_GEMMA
};

const LIKE_GEMMA: LanguageFamily = LanguageFamily {
    norm: Normalisation::ShiftedRootMeanSquare,
    biases: Biases { inputs: Bias::OfAttention, output: Bias::OfAttention, feed_forward: Bias::Never },
    scales_words: true,
    supported: &[("use_bidirectional_attention", false)],
    ..LIKE_LLAMA
};

const GEMMA2_NAMES: LanguageNames = LanguageNames {
    attention_norm: SublayerNorms {
        before: Some("input_layernorm"),
        after: Some("post_attention_layernorm"),
    },
    feed_forward_norm: SublayerNorms {
        before: Some("pre_feedforward_layernorm"),
        after: Some("post_feedforward_layernorm"),
    },
    ..LIKE_LLAMA.names
};

/// Gemma 2.
pub static GEMMA2: LanguageFamily = LanguageFamily {
    model_type: "gemma2",
    architecture: "Gemma2ForCausalLM",
    keys: ConfigKeys {
        entries: &[("hidden_act", Some("hidden_activation")), REMOVED],
        defaults: r#"{"hidden_act": "gelu_pytorch_tanh", "num_key_value_heads": 4, "head_dim": 256,
            "max_position_embeddings": 8192, "sliding_window": 4096, "query_pre_attn_scalar": 256.0,
            "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "tie_word_embeddings": true}"#,
    },
    optional: &[
        "sliding_window",
        "layer_types",
        "query_pre_attn_scalar",
        "attn_logit_softcapping",
        "final_logit_softcapping",
    ],
    names: GEMMA2_NAMES,
    windows: Windows::Periodic(2),
    ..LIKE_GEMMA
};

/// Gemma 3, text only.
pub static GEMMA3_TEXT: LanguageFamily = LanguageFamily {
    model_type: "gemma3_text",
    architecture: "Gemma3ForCausalLM",
    keys: ConfigKeys {
        entries: &[("hidden_act", Some("hidden_activation")), REMOVED],
        defaults: r#"{"hidden_act": "gelu_pytorch_tanh", "num_key_value_heads": 4, "head_dim": 256,
            "max_position_embeddings": 131072, "sliding_window": 4096, "query_pre_attn_scalar": 256.0,
            "rope_theta": 1e6, "rope_local_base_freq": 1e4, "tie_word_embeddings": true}"#,
    },
    optional: &[
        "sliding_window",
        "sliding_window_pattern",
        "layer_types",
        "query_pre_attn_scalar",
        "final_logit_softcapping",
        "rope_local_base_freq",
    ],
    names: LanguageNames { head_norms: Some(["self_attn.q_norm", "self_attn.k_norm"]), ..GEMMA2_NAMES },
    windows: Windows::Periodic(6),
    ..LIKE_GEMMA
};
