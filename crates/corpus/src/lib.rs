//! Data sets, tokenizers, batches, downloads and the synthetic demo data; no libtorch.
//!
//! - [`grammar`] generates the demo's language pair with gold dependency arcs, and the demo data of the other tasks.
//! - [`repeats`] generates repeated random symbols, on which language models learn induction heads.
//! - [`labelled`] reads training and test data of classifiers.
//! - [`images`] reads folders of images by class, and preprocesses images for models.
//! - [`checksum`] computes the checksums of the texts of a split.
//! - [`choices`] reads multiple-choice questions and minimal pairs.
//! - [`classifier_tokenizer`] and [`language_tokenizer`] load, train and save tokenizers of classifiers and language models.
//! - [`documents`] reads the texts that language models are trained and evaluated on.
//! - [`marian_tokenizer`] loads the tokenizers of opus-mt models.
//! - [`moses`] tokenises and detokenises text as the Moses toolkit does.
//! - [`fsmt_tokenizer`] loads the tokenizers of fairseq's translation models.
//! - [`piece_tokenizer`] loads the tokenizers of T5, BART, mBART, M2M100 and Pegasus.
//! - [`names`] checks that names stay inside their folder.
//! - [`splits`] is the description of a split in a setup file.
//! - [`parallel`] reads parallel text.
//! - [`pairs`] reads tables of sentence pairs, and selects pairs.
//! - [`tables`] reads tables that no format describes yet.
//! - [`tokenizer`] trains, saves and loads byte-level BPE.
//! - [`sentence_tokenizer`] is the common interface of tokenizers for translation.
//! - [`batches`] groups sentences of similar length.
//! - [`fetch`] downloads data sets and verifies them.
//! - [`trees`] reads sentences with their dependency trees.
//! - [`placed`] is a token with its position in the text.
//! - [`hub`] downloads models from the Hugging Face hub.
//! - [`progress`] is the progress bar of downloads.
mod archive;
pub mod batches;
pub mod checksum;
pub mod choices;
pub mod classifier_tokenizer;
mod compressed;
pub mod documents;
mod error;
pub mod fetch;
mod foreign;
mod foreign_tokenizer;
pub mod fsmt_tokenizer;
pub mod grammar;
pub mod hub;
pub mod images;
pub mod labelled;
pub mod language_tokenizer;
pub mod marian_tokenizer;
mod markup;
pub mod moses;
pub mod names;
pub mod pairs;
pub mod parallel;
pub mod piece_tokenizer;
mod pieces;
pub mod placed;
pub mod progress;
#[cfg(test)]
mod refusals;
pub mod repeats;
mod rows;
pub mod sentence_tokenizer;
mod special_tokens;
pub mod splits;
pub mod tables;
#[cfg(test)]
mod test_files;
pub mod tokenizer;
mod transfer;
pub mod trees;

pub use error::Error;
pub use foreign_tokenizer::guarded;
