//! Marian's translators, Junczys-Dowmunt et al. (2018), <https://aclanthology.org/P18-4020>, such as opus-mt: one embedding table for
//! source, target and output, or one for the source and one for target and output; and a bias on the logits.
//!
//! Names follow transformers' `MarianMTModel`:
//! <https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/marian/modeling_marian.py>.
use super::ConfigKeys;
use super::{EmbeddingNames, Norms, Positions, Sinusoids, TranslatorFamily, VASWANI};

/// Marian.
pub static MARIAN: TranslatorFamily = TranslatorFamily {
    model_type: "marian",
    architecture: "MarianMTModel",
    keys: ConfigKeys { entries: &[], defaults: "{}" },
    layers: &VASWANI,
    embeddings: SHARED,
    separate: Some(EmbeddingNames {
        source: "model.encoder.embed_tokens.weight",
        target: "model.decoder.embed_tokens.weight",
        copies: &[("lm_head.weight", "model.decoder.embed_tokens.weight")],
        ..SHARED
    }),
    generation: r#"{"forced_eos_token_id": 0}"#,
    positions: Positions::Sinusoids(Sinusoids::Vaswani),
    norms: Norms { before: false, of_embeddings: false },
    supported: &[
        ("add_bias_logits", false),
        ("add_final_layer_norm", false),
        ("is_encoder_decoder", true),
        ("normalize_before", false),
        ("normalize_embedding", false),
        ("static_position_embeddings", true),
        ("tie_word_embeddings", true),
    ],
    unused: &[],
};

/// Names in folders with one embedding table.
pub(super) const SHARED: EmbeddingNames = EmbeddingNames {
    source: "model.shared.weight",
    target: "model.shared.weight",
    output: None,
    bias: Some("final_logits_bias"),
    copies: &[
        ("model.encoder.embed_tokens.weight", "model.shared.weight"),
        ("model.decoder.embed_tokens.weight", "model.shared.weight"),
        ("lm_head.weight", "model.shared.weight"),
    ],
};
