//! Data sets, tokenisation, batches, fetching, and the synthetic demo language; no libtorch.
//!
//! - [`grammar`] makes the demo's language pair, with gold dependency arcs.
//! - [`repeats`] makes blocks of random symbols said twice, on which language models learn induction.
//! - [`labelled`] reads what classifiers are trained on.
//! - [`images`] reads folders of images by class, and prepares images for models.
//! - [`checksum`] is what signatures have of the texts of a split.
//! - [`choices`] reads questions with several answers, and minimal pairs.
//! - [`classifier_tokenizer`] loads, trains and saves the tokens of classifiers.
//! - [`language_tokenizer`] loads, trains and saves the tokens of language models.
//! - [`documents`] reads what language models are trained and measured on.
//! - [`marian_tokenizer`] loads the pieces of opus-mt folders.
//! - [`moses`] splits text into words and joins them as the Moses toolkit does.
//! - [`fsmt_tokenizer`] loads the pieces of fairseq's translators.
//! - [`names`] tells names that stay in their folder.
//! - [`splits`] says where the texts of a split are, as the file of a subject has it.
//! - [`parallel`] reads line-parallel text files.
//! - [`pairs`] reads tables of sentence pairs, and chooses some of the pairs of a file.
//! - [`tables`] reads tables that nobody has described yet.
//! - [`tokenizer`] trains, saves and loads byte-level BPE subwords.
//! - [`sentence_tokenizer`] is what the tokenisers of translators have in common.
//! - [`batches`] groups sentences of like length.
//! - [`fetch`] downloads data sets and checks them.
//! - [`trees`] reads sentences with their dependency trees.
//! - [`placed`] is a token with its place in the text.
//! - [`hub`] brings models of the Hugging Face hub.
//! - [`progress`] draws how far downloads are.
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
