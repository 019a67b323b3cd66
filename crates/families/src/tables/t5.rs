//! T5: Raffel et al. (2020), <https://arxiv.org/abs/1910.10683>. T5 1.1 and Flan-T5, <https://arxiv.org/abs/2210.11416>, have gated
//! feed-forward layers and an untied output layer. mT5, Xue et al. (2021), <https://aclanthology.org/2021.naacl-main.41>, is a
//! multilingual T5 1.1.
//!
//! Names follow transformers' `T5ForConditionalGeneration`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/t5/modeling_t5.py>. Files of transformers 5 have
//! `tie_word_embeddings` even if the output layer is untied, so the tensors decide.
use super::ConfigKeys;
use super::{EmbeddingNames, Norms, Positions, RELATIVE, TranslatorFamily};

/// T5, T5 1.1, Flan-T5.
pub static T5: TranslatorFamily = LIKE_T5;

const LIKE_T5: TranslatorFamily = TranslatorFamily {
    model_type: "t5",
    architecture: "T5ForConditionalGeneration",
    keys: ConfigKeys {
        entries: &[
            ("decoder_layers", Some("num_layers")),
            ("decoder_layers", Some("num_decoder_layers")),
            ("encoder_layers", Some("num_layers")),
            ("encoder_attention_heads", Some("num_heads")),
            ("decoder_attention_heads", Some("num_heads")),
            ("encoder_ffn_dim", Some("d_ff")),
            ("decoder_ffn_dim", Some("d_ff")),
            ("dropout", Some("dropout_rate")),
            ("activation_function", None),
            ("max_position_embeddings", None),
            ("scale_embedding", None),
        ],
        // no position table bounds the length; 4,096 is plenty
        defaults: r#"{"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "activation_function": "relu",
            "max_position_embeddings": 4096, "d_kv": 64}"#,
    },
    layers: &RELATIVE,
    embeddings: EmbeddingNames {
        source: "shared.weight",
        target: "shared.weight",
        output: Some("lm_head.weight"),
        bias: None,
        copies: &[
            ("encoder.embed_tokens.weight", "shared.weight"),
            ("decoder.embed_tokens.weight", "shared.weight"),
        ],
    },
    separate: None,
    generation: "{}",
    positions: Positions::Nowhere,
    norms: Norms { before: true, of_embeddings: false },
    supported: &[("is_encoder_decoder", true)],
    unused: &["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"],
};

/// mT5.
pub static MT5: TranslatorFamily =
    TranslatorFamily { model_type: "mt5", architecture: "MT5ForConditionalGeneration", ..LIKE_T5 };
