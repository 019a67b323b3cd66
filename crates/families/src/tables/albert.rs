//! ALBERT, Lan et al. (2020), <https://arxiv.org/abs/1909.11942>: BERT with narrow embeddings and one layer that is applied several times.
//! Gates are separate for each application; a head is removed from all of them.
//!
//! Names follow transformers' `AlbertForSequenceClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/albert/modeling_albert.py>.
use super::{ClassifierFamily, ClassifierHead, ClassifierNames, HeadActivation, PositionStart};
use super::{ConfigKeys, bert};
use crate::storage::Storage;

/// ALBERT.
pub static ALBERT: ClassifierFamily = ClassifierFamily {
    model_type: "albert",
    architecture: "AlbertForSequenceClassification",
    keys: ConfigKeys {
        entries: &[("classifier_dropout", Some("classifier_dropout_prob"))],
        defaults: r#"{"embedding_size": 128, "type_vocab_size": 2, "hidden_act": "gelu_new", "classifier_dropout": 0.1,
            "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}"#,
    },
    names: ClassifierNames {
        embedding_map: Some("encoder.embedding_hidden_mapping_in"),
        layers: "encoder.albert_layer_groups.0.albert_layers",
        projections: ["attention.query", "attention.key", "attention.value", "attention.dense"],
        attention_norm: "attention.LayerNorm",
        feed_forward: ["ffn", "ffn_output"],
        norm: "full_layer_layer_norm",
        ..bert::below("albert")
    },
    stack: None,
    storage: Storage::PLAIN,
    shares_layers: true,
    supported: r#"{"num_hidden_groups": 1, "inner_group_num": 1}"#,
    positions: PositionStart::Zero,
    head: ClassifierHead {
        first: Some("albert.pooler"),
        activation: HeadActivation::Tanh,
        norm: None,
        last: "classifier",
        drops_input: false,
    },
    token_head: ClassifierHead::OF_TOKENS,
    unused: &["predictions.", "sop_classifier."],
};
