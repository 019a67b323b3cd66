//! What makes tokens of sentences.
use std::path::Path;

use core_masking::marian::MarianConfig;
use corpus::marian_tokenizer::MarianTokenizer;
use corpus::tokenizer::SubwordTokenizer;

use crate::error::Error;

/// Subwords of the model, as they were trained here or as they come from a hub.
#[derive(Debug)]
pub(super) enum Tokenizer {
    Subwords(Box<SubwordTokenizer>),
    Marian(Box<MarianTokenizer>),
}

impl Tokenizer {
    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        match self {
            Self::Subwords(tokenizer) => tokenizer.encode(text),
            Self::Marian(tokenizer) => tokenizer.encode(text),
        }
    }

    pub(super) fn encode_target(&self, text: &str) -> Vec<u32> {
        match self {
            Self::Subwords(tokenizer) => tokenizer.encode(text),
            Self::Marian(tokenizer) => tokenizer.encode_target(text),
        }
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        match self {
            Self::Subwords(tokenizer) => tokenizer.decode(ids),
            Self::Marian(tokenizer) => tokenizer.decode(ids),
        }
    }

    /// Number of tokens, then the end symbol and the padding symbol.
    fn symbols(&self) -> (usize, [u32; 2]) {
        match self {
            Self::Subwords(tokenizer) => (tokenizer.vocabulary_size(), [tokenizer.end(), tokenizer.pad()]),
            Self::Marian(tokenizer) => (tokenizer.vocabulary_size(), [tokenizer.end(), tokenizer.pad()]),
        }
    }

    /// That of a folder as it comes from a hub.
    pub(super) fn of_hub(folder: &Path) -> Result<Self, Error> {
        Ok(Self::Marian(Box::new(MarianTokenizer::load(folder)?)))
    }

    /// That of a model of ours.
    pub(super) fn of_training(folder: &Path) -> Result<Self, Error> {
        Ok(Self::Subwords(Box::new(SubwordTokenizer::load(&folder.join("tokenizer.json"))?)))
    }

    /// Refuses a tokeniser that does not belong to the model in `folder`, of the subject `name`.
    pub(super) fn check(&self, config: &MarianConfig, folder: &Path, name: &str) -> Result<(), Error> {
        let ((tokens, [end, pad]), embeddings) = (self.symbols(), config.vocab_size);
        if tokens as i64 > embeddings {
            return Err(Error::Vocabulary { folder: folder.to_owned(), tokens, embeddings });
        }
        if [end, pad] != [config.eos_token_id, config.pad_token_id] {
            return Err(Error::OtherModel { folder: folder.to_owned(), name: name.to_owned() });
        }
        Ok(())
    }
}
