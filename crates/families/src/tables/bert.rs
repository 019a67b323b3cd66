//! BERT, Devlin et al. (2019), <https://aclanthology.org/N19-1423>: learned positions, segments, and a pooler on the first
//! position.
//!
//! Names follow transformers' `BertForSequenceClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/bert/modeling_bert.py>.
use super::ConfigKeys;
use super::{ClassifierFamily, ClassifierHead, ClassifierNames, HeadActivation, PositionStart};
use crate::storage::Storage;

/// BERT.
pub static BERT: ClassifierFamily = ClassifierFamily {
    model_type: "bert",
    architecture: "BertForSequenceClassification",
    keys: ConfigKeys { entries: &[], defaults: "{}" },
    names: LAYERS,
    stack: None,
    storage: Storage::PLAIN,
    shares_layers: false,
    supported: "{}",
    positions: PositionStart::Zero,
    head: ClassifierHead {
        first: Some("bert.pooler.dense"),
        activation: HeadActivation::Tanh,
        norm: None,
        last: "classifier",
        drops_input: false,
    },
    token_head: ClassifierHead::OF_TOKENS,
    unused: &["cls."],
};

pub(super) const LAYERS: ClassifierNames = ClassifierNames {
    prefix: "bert",
    words: "embeddings.word_embeddings",
    positions: Some("embeddings.position_embeddings"),
    patches: None,
    segments: Some("embeddings.token_type_embeddings"),
    embedding_norm: "embeddings.LayerNorm",
    embedding_map: None,
    distances: None,
    layers: "encoder.layer",
    projections: [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
    ],
    attention_norm: "attention.output.LayerNorm",
    feed_forward: ["intermediate.dense", "output.dense"],
    norm: "output.LayerNorm",
};

/// Returns BERT's names with another prefix.
pub(super) const fn below(prefix: &'static str) -> ClassifierNames {
    ClassifierNames { prefix, ..LAYERS }
}
