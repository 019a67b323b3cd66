//! What makes tokens of sentences.
use std::fmt::Debug;
use std::path::Path;

use core_masking::TranslatorConfig;
use core_masking::families::FSMT;
use corpus::fsmt_tokenizer::FsmtTokenizer;
use corpus::marian_tokenizer::MarianTokenizer;
use corpus::tokenizer::SubwordTokenizer;

use crate::error::Error;

/// Tokens of source and target, as they were trained here or as a model's publisher has them.
pub(super) trait Tokenizer: Debug + Send + Sync {
    /// Ids of a source sentence, with the end symbol.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// Ids of a target sentence, with the end symbol.
    fn encode_target(&self, text: &str) -> Vec<u32>;

    /// The text of target ids.
    fn decode(&self, ids: &[u32]) -> String;

    /// What embeddings must fit.
    fn symbols(&self) -> Symbols;
}

/// What embeddings must fit.
pub(super) struct Symbols {
    /// Tokens of the source.
    source: usize,
    /// Tokens of the target.
    target: usize,
    end: u32,
    pad: u32,
}

impl Tokenizer for SubwordTokenizer {
    fn encode(&self, text: &str) -> Vec<u32> {
        self.encode(text)
    }

    fn encode_target(&self, text: &str) -> Vec<u32> {
        self.encode(text)
    }

    fn decode(&self, ids: &[u32]) -> String {
        self.decode(ids)
    }

    fn symbols(&self) -> Symbols {
        let size = self.vocabulary_size();
        Symbols { source: size, target: size, end: self.end(), pad: self.pad() }
    }
}

impl Tokenizer for MarianTokenizer {
    fn encode(&self, text: &str) -> Vec<u32> {
        self.encode(text)
    }

    fn encode_target(&self, text: &str) -> Vec<u32> {
        self.encode_target(text)
    }

    fn decode(&self, ids: &[u32]) -> String {
        self.decode(ids)
    }

    fn symbols(&self) -> Symbols {
        let size = self.vocabulary_size();
        Symbols { source: size, target: size, end: self.end(), pad: self.pad() }
    }
}

impl Tokenizer for FsmtTokenizer {
    fn encode(&self, text: &str) -> Vec<u32> {
        self.encode(text)
    }

    fn encode_target(&self, text: &str) -> Vec<u32> {
        self.encode_target(text)
    }

    fn decode(&self, ids: &[u32]) -> String {
        self.decode(ids)
    }

    fn symbols(&self) -> Symbols {
        let (source, target) = (self.source_vocabulary_size(), self.target_vocabulary_size());
        Symbols { source, target, end: self.end(), pad: self.pad() }
    }
}

/// The tokeniser of a model's publisher; `None` in a folder that was trained here.
///
/// # Errors
/// If it is at fault.
pub(super) fn of_publisher(
    folder: &Path,
    config: &TranslatorConfig,
) -> Result<Option<Box<dyn Tokenizer>>, Error> {
    if config.family.model_type == FSMT.model_type {
        return Ok(Some(Box::new(FsmtTokenizer::load(folder)?)));
    }
    let is_published = folder.join("source.spm").exists();
    Ok(if is_published { Some(Box::new(MarianTokenizer::load(folder)?)) } else { None })
}

/// Refuses a tokeniser that does not belong to the model in `folder`, of the subject `name`.
///
/// # Errors
/// If it has tokens without an embedding, or other symbols.
pub(super) fn check(
    tokenizer: &dyn Tokenizer,
    config: &TranslatorConfig,
    folder: &Path,
    name: &str,
) -> Result<(), Error> {
    let Symbols { source, target, end, pad } = tokenizer.symbols();
    for (tokens, embeddings) in [(source, config.vocab_size), (target, config.target_vocabulary())] {
        if tokens as i64 > embeddings {
            return Err(Error::Vocabulary { folder: folder.to_owned(), tokens, embeddings });
        }
    }
    if [end, pad] != [config.eos_token_id, config.pad_token_id] {
        return Err(Error::OtherModel { folder: folder.to_owned(), name: name.to_owned() });
    }
    Ok(())
}
