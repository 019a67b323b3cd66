//! ModernBERT, Warner et al. (2024), <https://arxiv.org/abs/2412.13663>: pre-norm layers, gated feed-forward layers, and rotary positions,
//! with a different base in layers with sliding windows. It has the layers of a language model without the causal mask.
//!
//! Names follow transformers' `ModernBertForSequenceClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/modernbert/modeling_modernbert.py>. The fused maps
//! have no names there; here they are `q`, `k` and `v`, `active` and `factor`.
use super::llama::{LIKE_LLAMA, REMOVED};
use super::{ClassifierFamily, ClassifierHead, ClassifierNames, HeadActivation, PositionStart};
use super::{ConfigKeys, bert};
use super::{LanguageFamily, LanguageNames, Normalisation, SublayerNorms, Windows};
use crate::storage::{Fused, Storage};

/// ModernBERT.
pub static MODERNBERT: ClassifierFamily = ClassifierFamily {
    model_type: "modernbert",
    architecture: "ModernBertForSequenceClassification",
    keys: KEYS,
    names: ClassifierNames {
        words: "embeddings.tok_embeddings",
        positions: None,
        segments: None,
        embedding_norm: "embeddings.norm",
        layers: "layers",
        ..bert::below("model")
    },
    stack: Some(&LAYERS),
    storage: Storage {
        transposed: &[],
        fused: &[
            Fused { name: "attn.Wqkv", parts: &["attn.q", "attn.k", "attn.v"], by_head: false },
            Fused { name: "mlp.Wi", parts: &["mlp.active", "mlp.factor"], by_head: false },
        ],
    },
    shares_layers: false,
    supported: r#"{"norm_bias": false, "classifier_bias": false, "classifier_activation": "gelu", "rope_scaling": null}"#,
    positions: PositionStart::Zero,
    head: HEAD,
    token_head: HEAD,
    unused: &["decoder."],
};

const HEAD: ClassifierHead = ClassifierHead {
    first: Some("head.dense"),
    activation: HeadActivation::Gelu,
    norm: Some("head.norm"),
    last: "classifier",
    drops_input: false,
};

const KEYS: ConfigKeys = ConfigKeys {
    entries: &[
        ("hidden_act", Some("hidden_activation")),
        ("layer_norm_eps", Some("norm_eps")),
        ("attention_probs_dropout_prob", Some("attention_dropout")),
        ("hidden_dropout_prob", Some("embedding_dropout")),
        ("hidden_dropout_prob", Some("mlp_dropout")),
        ("rope_theta", Some("global_rope_theta")),
        ("rope_local_base_freq", Some("local_rope_theta")),
        ("sliding_window", Some("local_attention")),
        ("sliding_window_pattern", Some("global_attn_every_n_layers")),
        ("type_vocab_size", None),
        ("position_embedding_type", None),
        REMOVED,
    ],
    defaults: r#"{"vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
        "num_attention_heads": 12, "hidden_act": "gelu", "max_position_embeddings": 8192, "layer_norm_eps": 1e-5,
        "pad_token_id": 50283, "rope_theta": 160000.0, "rope_local_base_freq": 10000.0, "sliding_window": 128,
        "sliding_window_pattern": 3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
        "classifier_dropout": 0.0, "classifier_pooling": "cls", "type_vocab_size": 0}"#,
};

static LAYERS: LanguageFamily = LanguageFamily {
    keys: KEYS,
    optional: &["rope_local_base_freq"],
    names: LanguageNames {
        prefix: "model",
        words: "embeddings.tok_embeddings",
        attention_norm: SublayerNorms { before: Some("attn_norm"), after: None },
        bare_first: true,
        projections: ["attn.q", "attn.k", "attn.v", "attn.Wo"],
        feed_forward_norm: SublayerNorms { before: Some("mlp_norm"), after: None },
        feed_forward: &["mlp.active", "mlp.factor", "mlp.Wo"],
        norm: "final_norm",
        ..LIKE_LLAMA.names
    },
    norm: Normalisation::LayerWithoutBias,
    windows: Windows::PeriodicFromFirst(3),
    ..LIKE_LLAMA
};
