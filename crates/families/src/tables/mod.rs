//! Known families, one file each: the meaning of their configurations and the names of their tensors.
mod albert;
mod bart;
mod bert;
mod camembert;
mod cohere;
mod deberta;
mod distilbert;
mod electra;
mod fsmt;
mod gemma;
mod glm4;
mod gpt2;
mod gpt_neox;
mod granite;
mod llama;
mod marian;
mod modernbert;
mod mpnet;
mod of_classifiers;
mod of_language_models;
mod of_translators;
mod olmo2;
mod opt;
mod phi3;
mod roberta;
mod smollm3;
mod starcoder2;
mod t5;
mod vit;

pub use crate::config_keys::ConfigKeys;
pub use crate::parts::{HeadNorm, Normalisation};
pub use albert::ALBERT;
pub use bart::{BART, M2M100, MBART, PEGASUS};
pub use bert::BERT;
pub use camembert::CAMEMBERT;
pub use cohere::COHERE;
pub use deberta::DEBERTA_V2;
pub use distilbert::DISTILBERT;
pub use electra::ELECTRA;
pub use fsmt::FSMT;
pub use gemma::{GEMMA, GEMMA2, GEMMA3_TEXT};
pub use glm4::GLM4;
pub use gpt_neox::GPT_NEOX;
pub use gpt2::GPT2;
pub use granite::GRANITE;
pub use llama::{LLAMA, MISTRAL, QWEN2, QWEN3, QWEN3_MOE};
pub use marian::MARIAN;
pub use modernbert::MODERNBERT;
pub use mpnet::MPNET;
pub use of_classifiers::{
    BlockNames, Classified, ClassifierFamily, ClassifierHead, ClassifierNames, DistanceNames, HeadActivation,
    PatchNames, PositionStart,
};
pub use of_language_models::{
    Bias, Biases, LanguageFamily, LanguageNames, LayerNames, SublayerNorms, Windows,
};
pub use of_translators::{
    Architecture, EmbeddingNames, Norms, Positions, RELATIVE, Sinusoids, TranslatorFamily, VASWANI,
    position_table, stack,
};
pub use olmo2::OLMO2;
pub use opt::OPT;
pub use phi3::PHI3;
pub use roberta::{ROBERTA, XLM_ROBERTA};
pub use smollm3::SMOLLM3;
pub use starcoder2::STARCODER2;
pub use t5::{MT5, T5};
pub use vit::{DEIT, VIT};

/// Encoders with a classification head.
pub const CLASSIFIERS: &[&ClassifierFamily] = &[
    &BERT,
    &ROBERTA,
    &XLM_ROBERTA,
    &DISTILBERT,
    &CAMEMBERT,
    &ELECTRA,
    &MPNET,
    &ALBERT,
    &DEBERTA_V2,
    &MODERNBERT,
    &VIT,
    &DEIT,
];

/// Encoder-decoder models.
pub const TRANSLATORS: &[&TranslatorFamily] = &[&MARIAN, &FSMT, &BART, &MBART, &M2M100, &PEGASUS, &T5, &MT5];

/// Decoders that predict the next token.
pub const LANGUAGE_MODELS: &[&LanguageFamily] = &[
    &GPT2,
    &LLAMA,
    &MISTRAL,
    &QWEN2,
    &QWEN3,
    &QWEN3_MOE,
    &GPT_NEOX,
    &OPT,
    &GEMMA,
    &GEMMA2,
    &GEMMA3_TEXT,
    &OLMO2,
    &PHI3,
    &SMOLLM3,
    &GRANITE,
    &STARCODER2,
    &COHERE,
    &GLM4,
];
