//! DistilBERT, Sanh et al. (2019), <https://arxiv.org/abs/1910.01108>: half of BERT's layers, no segments, and a classification head with
//! ReLU.
//!
//! Names follow transformers' `DistilBertForSequenceClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/distilbert/modeling_distilbert.py>.
use super::ConfigKeys;
use super::{ClassifierFamily, ClassifierHead, ClassifierNames, HeadActivation, PositionStart};
use crate::storage::Storage;

/// DistilBERT.
pub static DISTILBERT: ClassifierFamily = ClassifierFamily {
    model_type: "distilbert",
    architecture: "DistilBertForSequenceClassification",
    keys: ConfigKeys {
        entries: &[
            ("hidden_size", Some("dim")),
            ("num_hidden_layers", Some("n_layers")),
            ("num_attention_heads", Some("n_heads")),
            ("intermediate_size", Some("hidden_dim")),
            ("hidden_act", Some("activation")),
            ("hidden_dropout_prob", Some("dropout")),
            ("attention_probs_dropout_prob", Some("attention_dropout")),
            ("classifier_dropout", Some("seq_classif_dropout")),
            ("type_vocab_size", None),
            ("layer_norm_eps", None),
            ("position_embedding_type", None),
        ],
        defaults: r#"{"type_vocab_size": 1, "classifier_dropout": 0.2}"#,
    },
    names: ClassifierNames {
        prefix: "distilbert",
        words: "embeddings.word_embeddings",
        positions: Some("embeddings.position_embeddings"),
        patches: None,
        segments: None,
        embedding_norm: "embeddings.LayerNorm",
        embedding_map: None,
        distances: None,
        layers: "transformer.layer",
        projections: ["attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"],
        attention_norm: "sa_layer_norm",
        feed_forward: ["ffn.lin1", "ffn.lin2"],
        norm: "output_layer_norm",
    },
    stack: None,
    storage: Storage::PLAIN,
    shares_layers: false,
    supported: "{}",
    positions: PositionStart::Zero,
    head: ClassifierHead {
        first: Some("pre_classifier"),
        activation: HeadActivation::Relu,
        norm: None,
        last: "classifier",
        drops_input: false,
    },
    token_head: ClassifierHead::OF_TOKENS,
    unused: &["vocab_"],
};
