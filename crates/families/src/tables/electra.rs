//! ELECTRA, Clark et al. (2020), <https://arxiv.org/abs/2003.10555>: BERT with optionally narrower embeddings, and RoBERTa's classification
//! head with another activation.
//!
//! Names follow transformers' `ElectraForSequenceClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/electra/modeling_electra.py>.
use super::{ClassifierFamily, ClassifierHead, ClassifierNames, HeadActivation, PositionStart};
use super::{ConfigKeys, bert};
use crate::storage::Storage;

/// ELECTRA.
pub static ELECTRA: ClassifierFamily = ClassifierFamily {
    model_type: "electra",
    architecture: "ElectraForSequenceClassification",
    keys: ConfigKeys { entries: &[], defaults: r#"{"embedding_size": 128, "type_vocab_size": 2}"# },
    names: ClassifierNames { embedding_map: Some("embeddings_project"), ..bert::below("electra") },
    stack: None,
    storage: Storage::PLAIN,
    shares_layers: false,
    supported: "{}",
    positions: PositionStart::Zero,
    head: ClassifierHead {
        first: Some("classifier.dense"),
        activation: HeadActivation::Gelu,
        norm: None,
        last: "classifier.out_proj",
        drops_input: true,
    },
    token_head: ClassifierHead::OF_TOKENS,
    unused: &["discriminator_predictions.", "generator_predictions.", "generator_lm_head."],
};
