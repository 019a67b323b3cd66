//! fairseq's translators, Ng et al. (2019), <https://aclanthology.org/W19-5333>, among them the model of Michel et al. (2019): separate
//! vocabularies, the target embeddings tied to the output layer, and positions that start after the padding token.
//!
//! Names follow transformers' `FSMTForConditionalGeneration`:
//! <https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/fsmt/modeling_fsmt.py>.
use super::ConfigKeys;
use super::{EmbeddingNames, Norms, Positions, Sinusoids, TranslatorFamily, VASWANI};

/// fairseq's translators.
pub static FSMT: TranslatorFamily = TranslatorFamily {
    model_type: "fsmt",
    architecture: "FSMTForConditionalGeneration",
    keys: ConfigKeys {
        entries: &[("vocab_size", Some("src_vocab_size")), ("decoder_vocab_size", Some("tgt_vocab_size"))],
        defaults: r#"{"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "activation_function": "relu",
            "scale_embedding": true}"#,
    },
    layers: &VASWANI,
    embeddings: EmbeddingNames {
        source: "model.encoder.embed_tokens.weight",
        target: "model.decoder.output_projection.weight",
        output: None,
        bias: None,
        copies: &[("model.decoder.embed_tokens.weight", "model.decoder.output_projection.weight")],
    },
    separate: None,
    generation: r#"{"forced_eos_token_id": 2, "num_beams": 5, "max_length": 200}"#,
    positions: Positions::Sinusoids(Sinusoids::Fairseq),
    norms: Norms { before: false, of_embeddings: false },
    supported: &[("is_encoder_decoder", true)],
    unused: &[],
};
