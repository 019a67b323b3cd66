//! Data sets, tokenisation, batches, fetching, and the synthetic demo language; no libtorch.
//!
//! - [`grammar`] makes the demo's language pair, with gold dependency arcs.
//! - [`labelled`] reads what classifiers are trained on.
//! - [`parallel`] reads line-parallel text files.
//! - [`tokenizer`] trains, saves and loads byte-level BPE subwords.
//! - [`batches`] groups sentences of like length.
//! - [`fetch`] downloads data sets and checks them.
//! - [`hub`] brings models of the Hugging Face hub.
pub mod batches;
mod error;
pub mod fetch;
pub mod grammar;
pub mod hub;
pub mod labelled;
pub mod parallel;
pub mod tokenizer;

pub use error::Error;
