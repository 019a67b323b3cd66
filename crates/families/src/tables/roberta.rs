//! RoBERTa, Liu et al. (2019), <https://arxiv.org/abs/1907.11692>, and XLM-R, Conneau et al. (2020),
//! <https://aclanthology.org/2020.acl-main.747>, which has another vocabulary: BERT as in fairseq, with positions that start after the
//! padding token, and another classification head.
//!
//! Names follow transformers' `RobertaForSequenceClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/roberta/modeling_roberta.py>.
use super::{ClassifierFamily, ClassifierHead, HeadActivation, PositionStart};
use super::{ConfigKeys, bert};
use crate::storage::Storage;

pub(super) const FAMILY: ClassifierFamily = ClassifierFamily {
    model_type: "roberta",
    architecture: "RobertaForSequenceClassification",
    keys: ConfigKeys { entries: &[], defaults: r#"{"type_vocab_size": 2, "pad_token_id": 1}"# },
    names: bert::below("roberta"),
    stack: None,
    storage: Storage::PLAIN,
    shares_layers: false,
    supported: "{}",
    positions: PositionStart::AfterPadding,
    head: ClassifierHead {
        first: Some("classifier.dense"),
        activation: HeadActivation::Tanh,
        norm: None,
        last: "classifier.out_proj",
        drops_input: true,
    },
    token_head: ClassifierHead::OF_TOKENS,
    unused: &["lm_head.", "roberta.pooler."],
};

/// RoBERTa.
pub static ROBERTA: ClassifierFamily = FAMILY;

/// XLM-R.
pub static XLM_ROBERTA: ClassifierFamily = ClassifierFamily {
    model_type: "xlm-roberta",
    architecture: "XLMRobertaForSequenceClassification",
    ..FAMILY
};
