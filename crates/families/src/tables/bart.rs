//! BART, Lewis et al. (2020), <https://aclanthology.org/2020.acl-main.703>, and similar models: mBART, Liu et al. (2020),
//! <https://aclanthology.org/2020.tacl-1.47>, M2M100, Fan et al. (2021), <https://arxiv.org/abs/2010.11125>, with NLLB,
//! <https://arxiv.org/abs/2207.04672>, and Pegasus, Zhang et al. (2020), <https://arxiv.org/abs/1912.08777>. They differ in positions and
//! norms; `normalize_before` and `add_final_layer_norm` in their files have no effect.
//!
//! Names follow transformers' `BartForConditionalGeneration`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/bart/modeling_bart.py>.
use super::ConfigKeys;
use super::marian::SHARED;
use super::{EmbeddingNames, Norms, Positions, Sinusoids, TranslatorFamily, VASWANI};

/// BART.
pub static BART: TranslatorFamily = LIKE_BART;

const LIKE_BART: TranslatorFamily = TranslatorFamily {
    model_type: "bart",
    architecture: "BartForConditionalGeneration",
    keys: ConfigKeys {
        entries: &[],
        defaults: r#"{"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "activation_function": "gelu",
            "max_position_embeddings": 1024}"#,
    },
    layers: &VASWANI,
    embeddings: SHARED,
    separate: None,
    generation: r#"{"forced_eos_token_id": 2}"#,
    positions: Positions::Learned { first: 2 },
    norms: Norms { before: false, of_embeddings: true },
    supported: &[("is_encoder_decoder", true), ("tie_word_embeddings", true)],
    unused: &[],
};

/// mBART, whose decoder starts with a language code in mBART-25, and with EOS and the code in mBART-50.
pub static MBART: TranslatorFamily = TranslatorFamily {
    model_type: "mbart",
    architecture: "MBartForConditionalGeneration",
    keys: ConfigKeys {
        entries: &[],
        defaults: r#"{"pad_token_id": 1, "eos_token_id": 2, "activation_function": "gelu", "max_position_embeddings": 1024}"#,
    },
    norms: Norms { before: true, of_embeddings: true },
    ..LIKE_BART
};

/// M2M100 and NLLB.
pub static M2M100: TranslatorFamily = TranslatorFamily {
    model_type: "m2m_100",
    architecture: "M2M100ForConditionalGeneration",
    keys: ConfigKeys {
        entries: &[],
        defaults: r#"{"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "activation_function": "relu",
            "scale_embedding": true, "max_position_embeddings": 1024}"#,
    },
    embeddings: EmbeddingNames { bias: None, ..SHARED },
    generation: "{}",
    positions: Positions::Sinusoids(Sinusoids::Fairseq),
    norms: Norms { before: true, of_embeddings: false },
    ..LIKE_BART
};

/// Pegasus, whose files contain the position tables.
pub static PEGASUS: TranslatorFamily = TranslatorFamily {
    model_type: "pegasus",
    architecture: "PegasusForConditionalGeneration",
    keys: ConfigKeys {
        entries: &[],
        defaults: r#"{"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "activation_function": "gelu",
            "max_position_embeddings": 1024}"#,
    },
    generation: r#"{"forced_eos_token_id": 1}"#,
    positions: Positions::Sinusoids(Sinusoids::Vaswani),
    norms: Norms { before: true, of_embeddings: false },
    ..LIKE_BART
};
