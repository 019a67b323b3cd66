//! MPNet, Song et al. (2020), <https://arxiv.org/abs/2004.09297>: RoBERTa without segments, but with a relative position bias that all
//! layers share.
//!
//! Names follow transformers' `MPNetForSequenceClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/mpnet/modeling_mpnet.py>.
use super::llama::REMOVED;
use super::{
    ClassifierFamily, ClassifierHead, ClassifierNames, DistanceNames, HeadActivation, PositionStart,
};
use super::{ConfigKeys, bert};
use crate::storage::Storage;

/// MPNet.
pub static MPNET: ClassifierFamily = ClassifierFamily {
    model_type: "mpnet",
    architecture: "MPNetForSequenceClassification",
    keys: ConfigKeys {
        entries: &[
            ("type_vocab_size", None),
            ("classifier_dropout", None),
            ("position_embedding_type", None),
            REMOVED,
        ],
        defaults: r#"{"type_vocab_size": 1, "pad_token_id": 1}"#,
    },
    names: ClassifierNames {
        segments: None,
        distances: Some(DistanceNames::Bias("encoder.relative_attention_bias")),
        projections: ["attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o"],
        attention_norm: "attention.LayerNorm",
        ..bert::below("mpnet")
    },
    stack: None,
    storage: Storage::PLAIN,
    shares_layers: false,
    supported: "{}",
    positions: PositionStart::AfterOne,
    head: ClassifierHead {
        first: Some("classifier.dense"),
        activation: HeadActivation::Tanh,
        norm: None,
        last: "classifier.out_proj",
        drops_input: true,
    },
    token_head: ClassifierHead::OF_TOKENS,
    unused: &["lm_head.", "mpnet.pooler."],
};
