//! DeBERTa-v2 and v3, He et al. (2021), <https://arxiv.org/abs/2006.03654> and <https://arxiv.org/abs/2111.09543>: BERT without a position
//! table, but with disentangled attention, whose scores compare contents with embeddings of distances in both directions.
//!
//! Names follow transformers' `DebertaV2ForSequenceClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/deberta_v2/modeling_deberta_v2.py>.
use super::llama::REMOVED;
use super::{
    ClassifierFamily, ClassifierHead, ClassifierNames, DistanceNames, HeadActivation, PositionStart,
};
use super::{ConfigKeys, bert};
use crate::storage::Storage;

/// DeBERTa-v2 and v3.
pub static DEBERTA_V2: ClassifierFamily = ClassifierFamily {
    model_type: "deberta-v2",
    architecture: "DebertaV2ForSequenceClassification",
    keys: ConfigKeys {
        entries: &[("classifier_dropout", Some("cls_dropout")), ("position_embedding_type", None), REMOVED],
        defaults: r#"{"relative_attention": false, "position_biased_input": true, "pos_att_type": null, "share_att_key": false,
            "norm_rel_ebd": "none", "type_vocab_size": 0, "layer_norm_eps": 1e-7}"#,
    },
    names: ClassifierNames {
        positions: None,
        segments: None,
        distances: Some(DistanceNames::Embeddings {
            table: "encoder.rel_embeddings",
            norm: "encoder.LayerNorm",
        }),
        projections: [
            "attention.self.query_proj",
            "attention.self.key_proj",
            "attention.self.value_proj",
            "attention.output.dense",
        ],
        ..bert::below("deberta")
    },
    stack: None,
    storage: Storage::PLAIN,
    shares_layers: false,
    supported: r#"{"relative_attention": true, "position_biased_input": false, "pos_att_type": ["p2c", "c2p"],
        "share_att_key": true, "norm_rel_ebd": "layer_norm", "type_vocab_size": 0, "conv_kernel_size": null,
        "pooler_hidden_act": "gelu", "pooler_dropout": 0}"#,
    positions: PositionStart::Zero,
    head: ClassifierHead {
        first: Some("pooler.dense"),
        activation: HeadActivation::Gelu,
        norm: None,
        last: "classifier",
        drops_input: false,
    },
    token_head: ClassifierHead::OF_TOKENS,
    unused: &["lm_predictions.", "mask_predictions.", "cls."],
};
