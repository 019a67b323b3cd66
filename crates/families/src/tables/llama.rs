//! Llama, Touvron et al. (2023), <https://arxiv.org/abs/2302.13971>, and similar models: Mistral, Jiang et al. (2023),
//! <https://arxiv.org/abs/2310.06825>, with sliding windows, and Qwen, <https://arxiv.org/abs/2407.10671> and
//! <https://arxiv.org/abs/2505.09388>, with biases (2) or normalised queries and keys (3). All have rotary positions, grouped-query
//! attention, and gated feed-forward layers.
//!
//! Names follow transformers' `LlamaForCausalLM`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/llama/modeling_llama.py>.
use super::ConfigKeys;
use super::{Bias, Biases, HeadNorm, LanguageFamily, LanguageNames, Normalisation, SublayerNorms, Windows};
use crate::storage::Storage;

/// Key of the removed heads. For these families, transformers refuses its own key, `pruned_heads`.
pub(super) const REMOVED: (&str, Option<&str>) = ("pruned_heads", Some("pruned_query_heads"));

/// Llama.
pub static LLAMA: LanguageFamily = LIKE_LLAMA;

/// Base of all tables that differ little from Llama.
pub(super) const LIKE_LLAMA: LanguageFamily = LanguageFamily {
    model_type: "llama",
    architecture: "LlamaForCausalLM",
    keys: ConfigKeys {
        entries: &[REMOVED],
        defaults: r#"{"hidden_act": "silu", "max_position_embeddings": 2048}"#,
    },
    optional: &[],
    names: LanguageNames {
        prefix: "model",
        words: "embed_tokens",
        positions: None,
        rows_before: 0,
        layers: "layers",
        attention_norm: SublayerNorms { before: Some("input_layernorm"), after: None },
        bare_first: false,
        projections: ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"],
        head_norms: None,
        head_norm: HeadNorm::Alike,
        feed_forward_norm: SublayerNorms { before: Some("post_attention_layernorm"), after: None },
        feed_forward: &["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"],
        experts: None,
        norm: "norm",
        output: "lm_head",
    },
    storage: Storage::PLAIN,
    norm: Normalisation::RootMeanSquare,
    biases: Biases {
        inputs: Bias::OfAttention,
        output: Bias::OfAttention,
        feed_forward: Bias::OfFeedForward,
    },
    shared_norm: false,
    interleaved_rotary: false,
    scales_words: false,
    windows: Windows::Nowhere,
    supported: &[],
    unused: &["rotary_emb.inv_freq"],
};

/// Mistral.
pub static MISTRAL: LanguageFamily = LanguageFamily {
    model_type: "mistral",
    architecture: "MistralForCausalLM",
    keys: ConfigKeys {
        entries: &[REMOVED],
        defaults: r#"{"hidden_act": "silu", "num_key_value_heads": 8, "max_position_embeddings": 131072,
            "sliding_window": 4096}"#,
    },
    optional: &["sliding_window"],
    biases: Biases { inputs: Bias::Never, output: Bias::Never, feed_forward: Bias::Never },
    windows: Windows::Everywhere,
    ..LIKE_LLAMA
};

/// Qwen 2 and 2.5.
pub static QWEN2: LanguageFamily = LanguageFamily {
    model_type: "qwen2",
    architecture: "Qwen2ForCausalLM",
    keys: ConfigKeys { entries: &[REMOVED], defaults: OF_QWEN2 },
    optional: BY_LAYER,
    biases: Biases { inputs: Bias::Always, output: Bias::Never, feed_forward: Bias::Never },
    windows: Windows::ByLayer,
    ..LIKE_LLAMA
};

/// Qwen 3.
pub static QWEN3: LanguageFamily = LanguageFamily {
    model_type: "qwen3",
    architecture: "Qwen3ForCausalLM",
    keys: ConfigKeys { entries: &[REMOVED], defaults: OF_QWEN3 },
    optional: BY_LAYER,
    names: QWEN3_NAMES,
    biases: Biases { inputs: Bias::OfAttention, output: Bias::OfAttention, feed_forward: Bias::Never },
    windows: Windows::ByLayer,
    ..LIKE_LLAMA
};

/// Qwen 3 with experts.
pub static QWEN3_MOE: LanguageFamily = LanguageFamily {
    model_type: "qwen3_moe",
    architecture: "Qwen3MoeForCausalLM",
    keys: ConfigKeys {
        entries: &[REMOVED],
        defaults: r#"{"hidden_act": "silu", "num_key_value_heads": 4, "max_position_embeddings": 32768, "num_experts_per_tok": 8,
            "moe_intermediate_size": 768, "norm_topk_prob": false, "decoder_sparse_step": 1, "sliding_window": 4096}"#,
    },
    optional: &[
        "sliding_window",
        "use_sliding_window",
        "num_experts",
        "num_local_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
        "norm_topk_prob",
        "decoder_sparse_step",
        "mlp_only_layers",
    ],
    names: LanguageNames { experts: Some(["mlp.gate", "mlp.experts"]), ..QWEN3_NAMES },
    biases: Biases { inputs: Bias::OfAttention, output: Bias::OfAttention, feed_forward: Bias::Never },
    windows: Windows::ByLayer,
    ..LIKE_LLAMA
};

const QWEN3_NAMES: LanguageNames =
    LanguageNames { head_norms: Some(["self_attn.q_norm", "self_attn.k_norm"]), ..LIKE_LLAMA.names };

const BY_LAYER: &[&str] = &["sliding_window", "use_sliding_window", "max_window_layers", "layer_types"];

const OF_QWEN2: &str = r#"{"hidden_act": "silu", "num_key_value_heads": 32, "max_position_embeddings": 32768,
    "sliding_window": 4096, "max_window_layers": 28}"#;

const OF_QWEN3: &str = r#"{"hidden_act": "silu", "num_key_value_heads": 32, "head_dim": 128,
    "max_position_embeddings": 32768, "sliding_window": 4096, "max_window_layers": 28}"#;
