//! Marian's translators, Junczys-Dowmunt et al. (2018), <https://aclanthology.org/P18-4020>, such as the opus-mt models: one
//! embedding table for source, target and output, and a bias on the logits.
//!
//! Names follow transformers' `MarianMTModel`:
//! <https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/marian/modeling_marian.py>.
use super::ConfigKeys;
use crate::translator::{EmbeddingNames, POST_NORM, Sinusoids, TranslatorFamily};

/// Marian.
pub static MARIAN: TranslatorFamily = TranslatorFamily {
    model_type: "marian",
    architecture: "MarianMTModel",
    keys: ConfigKeys { entries: &[], defaults: "{}" },
    layers: &POST_NORM,
    embeddings: EmbeddingNames {
        source: "model.shared.weight",
        target: "model.shared.weight",
        bias: Some("final_logits_bias"),
        copies: &[
            ("model.encoder.embed_tokens.weight", "model.shared.weight"),
            ("model.decoder.embed_tokens.weight", "model.shared.weight"),
            ("lm_head.weight", "model.shared.weight"),
        ],
    },
    generation: r#"{"forced_eos_token_id": 0}"#,
    sinusoids: Sinusoids::Vaswani,
    supported: &[
        ("add_bias_logits", false),
        ("add_final_layer_norm", false),
        ("is_encoder_decoder", true),
        ("normalize_before", false),
        ("normalize_embedding", false),
        ("share_encoder_decoder_embeddings", true),
        ("static_position_embeddings", true),
        ("tie_word_embeddings", true),
    ],
};
