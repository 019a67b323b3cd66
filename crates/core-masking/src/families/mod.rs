//! The families that are known, one file each: what their folders say and how their tensors are called.
mod albert;
mod bart;
mod bert;
mod camembert;
mod config_keys;
mod distilbert;
mod electra;
mod fsmt;
mod gpt2;
mod llama;
mod marian;
mod mpnet;
mod roberta;
mod t5;

use crate::classifier::ClassifierFamily;
use crate::language_model::LanguageFamily;
use crate::translator::TranslatorFamily;

pub use albert::ALBERT;
pub use bart::{BART, M2M100, MBART, PEGASUS};
pub use bert::BERT;
pub use camembert::CAMEMBERT;
pub use config_keys::ConfigKeys;
pub(crate) use config_keys::assume;
pub use distilbert::DISTILBERT;
pub use electra::ELECTRA;
pub use fsmt::FSMT;
pub use gpt2::GPT2;
pub use llama::{LLAMA, MISTRAL, QWEN2, QWEN3};
pub use marian::MARIAN;
pub use mpnet::MPNET;
pub use roberta::{ROBERTA, XLM_ROBERTA};
pub use t5::{MT5, T5};

/// Encoders with a classifier on top.
pub const CLASSIFIERS: &[&ClassifierFamily] =
    &[&BERT, &ROBERTA, &XLM_ROBERTA, &DISTILBERT, &CAMEMBERT, &ELECTRA, &MPNET, &ALBERT];

/// Encoder-decoder models.
pub const TRANSLATORS: &[&TranslatorFamily] = &[&MARIAN, &FSMT, &BART, &MBART, &M2M100, &PEGASUS, &T5, &MT5];

/// Decoders that predict the next token.
pub const LANGUAGE_MODELS: &[&LanguageFamily] = &[&GPT2, &LLAMA, &MISTRAL, &QWEN2, &QWEN3];
