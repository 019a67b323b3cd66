//! StarCoder 2, Lozhkov et al. (2024), <https://arxiv.org/abs/2402.19173>: layer norm, biases, feed-forward layers without a gate, sliding
//! windows in all layers.
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/starcoder2/modeling_starcoder2.py>.
use super::ConfigKeys;
use super::llama::{LIKE_LLAMA, REMOVED};
use super::{Bias, Biases, LanguageFamily, LanguageNames, Normalisation, Windows};

/// StarCoder 2.
pub static STARCODER2: LanguageFamily = LanguageFamily {
    model_type: "starcoder2",
    architecture: "Starcoder2ForCausalLM",
    keys: ConfigKeys {
        entries: &[
            ("rms_norm_eps", Some("norm_epsilon")),
            ("attention_bias", Some("use_bias")),
            ("mlp_bias", None),
            ("embd_pdrop", Some("embedding_dropout")),
            ("resid_pdrop", Some("residual_dropout")),
            REMOVED,
        ],
        defaults: r#"{"hidden_act": "gelu_pytorch_tanh", "num_key_value_heads": 2, "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-5, "attention_bias": true, "tie_word_embeddings": true}"#,
    },
    optional: &["sliding_window"],
    names: LanguageNames { feed_forward: &["mlp.c_fc", "mlp.c_proj"], ..LIKE_LLAMA.names },
    norm: Normalisation::Layer,
    biases: Biases { inputs: Bias::OfAttention, output: Bias::OfAttention, feed_forward: Bias::OfAttention },
    windows: Windows::Everywhere,
    ..LIKE_LLAMA
};
