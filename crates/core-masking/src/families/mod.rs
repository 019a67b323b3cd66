//! The families that are known, one file each: what their folders say and how their tensors are called.
mod bert;
mod config_keys;
mod distilbert;
mod fsmt;
mod marian;
mod roberta;

use crate::classifier::ClassifierFamily;
use crate::translator::TranslatorFamily;

pub use bert::BERT;
pub use config_keys::ConfigKeys;
pub(crate) use config_keys::assume;
pub use distilbert::DISTILBERT;
pub use fsmt::FSMT;
pub use marian::MARIAN;
pub use roberta::{ROBERTA, XLM_ROBERTA};

/// Encoders with a classifier on top.
pub const CLASSIFIERS: &[&ClassifierFamily] = &[&BERT, &ROBERTA, &XLM_ROBERTA, &DISTILBERT];

/// Encoder-decoder models.
pub const TRANSLATORS: &[&TranslatorFamily] = &[&MARIAN, &FSMT];
