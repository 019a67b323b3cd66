//! GPT-2, Radford et al. (2019): learned positions, layer norm, and query, key and value fused into one tensor, `[in, out]`.
//!
//! Names follow transformers' `GPT2LMHeadModel`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/gpt2/modeling_gpt2.py>. The fused maps have no names
//! there; here they are `q`, `k` and `v` in place of `c_attn`.
use super::ConfigKeys;
use super::{Bias, Biases, HeadNorm, LanguageFamily, LanguageNames, Normalisation, SublayerNorms, Windows};
use crate::storage::{Fused, Storage};

/// GPT-2.
pub static GPT2: LanguageFamily = LanguageFamily {
    model_type: "gpt2",
    architecture: "GPT2LMHeadModel",
    keys: ConfigKeys {
        entries: &[
            ("hidden_size", Some("n_embd")),
            ("num_hidden_layers", Some("n_layer")),
            ("num_attention_heads", Some("n_head")),
            ("intermediate_size", Some("n_inner")),
            ("hidden_act", Some("activation_function")),
            ("max_position_embeddings", Some("n_positions")),
            ("rms_norm_eps", Some("layer_norm_epsilon")),
            ("attention_dropout", Some("attn_pdrop")),
            ("num_key_value_heads", None),
            ("head_dim", None),
            ("rope_theta", None),
            ("rope_scaling", None),
            ("rope_parameters", None),
            ("attention_bias", None),
            ("mlp_bias", None),
        ],
        defaults: r#"{"vocab_size": 50257, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
            "hidden_act": "gelu_new", "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
            "embd_pdrop": 0.1, "resid_pdrop": 0.1, "attention_dropout": 0.1, "bos_token_id": 50256,
            "eos_token_id": 50256}"#,
    },
    optional: &["embd_pdrop", "resid_pdrop"],
    names: LanguageNames {
        prefix: "transformer",
        words: "wte",
        positions: Some("wpe"),
        rows_before: 0,
        layers: "h",
        attention_norm: SublayerNorms { before: Some("ln_1"), after: None },
        bare_first: false,
        projections: ["attn.q", "attn.k", "attn.v", "attn.c_proj"],
        head_norms: None,
        head_norm: HeadNorm::Alike,
        feed_forward_norm: SublayerNorms { before: Some("ln_2"), after: None },
        feed_forward: &["mlp.c_fc", "mlp.c_proj"],
        experts: None,
        norm: "ln_f",
        output: "lm_head",
    },
    storage: Storage {
        transposed: &["attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"],
        fused: &[Fused { name: "attn.c_attn", parts: &["attn.q", "attn.k", "attn.v"], by_head: false }],
    },
    norm: Normalisation::Layer,
    biases: Biases { inputs: Bias::Always, output: Bias::Always, feed_forward: Bias::Always },
    shared_norm: false,
    interleaved_rotary: false,
    scales_words: false,
    windows: Windows::Nowhere,
    supported: &[
        ("scale_attn_weights", true),
        ("scale_attn_by_inverse_layer_idx", false),
        ("add_cross_attention", false),
    ],
    unused: &["attn.bias", "attn.masked_bias"],
};
