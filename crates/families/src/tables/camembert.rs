//! CamemBERT, Martin et al. (2020), <https://aclanthology.org/2020.acl-main.645>: RoBERTa for French, under RoBERTa's names.
use super::ClassifierFamily;
use super::roberta;

/// CamemBERT.
pub static CAMEMBERT: ClassifierFamily = ClassifierFamily {
    model_type: "camembert",
    architecture: "CamembertForSequenceClassification",
    ..roberta::FAMILY
};
