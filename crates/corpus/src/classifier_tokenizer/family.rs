//! Families of classifiers: what their tokenisers are made of where the folder does not say otherwise.
//!
//! Defaults are those of transformers 4.57: `BertTokenizer`, `DistilBertTokenizer`, `RobertaTokenizer`,
//! `XLMRobertaTokenizer`.
use std::path::Path;

use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::decoders::wordpiece::WordPiece;
use tokenizers::pre_tokenizers::metaspace::Metaspace;
use tokenizers::{DecoderWrapper, ModelWrapper, Tokenizer};

use super::settings::Settings;
use super::{byte_level, read, unigram, wordpiece, wrong};
use crate::Error;
use crate::foreign::shown;

/// What the tokenisers of some models have in common.
#[derive(Debug)]
pub(super) struct Family {
    /// What `config.json` calls these models.
    model_types: &'static [&'static str],
    /// Type of the tokeniser's model in `tokenizer.json`.
    algorithm: &'static str,
    /// The files that are read where there is no `tokenizer.json`.
    pub(super) files: &'static [&'static str],
    /// Reads them: all parts but decoder, special tokens and template.
    pub(super) read: fn(&Path, &Settings) -> Result<Tokenizer, Error>,
    /// The decoder that transformers gives them.
    pub(super) decoder: fn() -> DecoderWrapper,
    /// Names of the special tokens.
    pub(super) specials: Specials<&'static str>,
    /// Whether the mask takes the spaces before it.
    pub(super) mask_takes_spaces: bool,
    /// Where special tokens go in a pair; in one text, they go around it.
    pub(super) pair: &'static str,
    /// Whether the model tells the first text from the second.
    pub(super) has_segments: bool,
}

/// Something for each special token that every family has.
#[derive(Debug, Clone)]
pub(super) struct Specials<T> {
    pub(super) unknown: T,
    pub(super) separator: T,
    pub(super) pad: T,
    pub(super) begin: T,
    pub(super) mask: T,
}

const FAMILIES: [&Family; 3] = [&BERT, &ROBERTA, &XLM_ROBERTA];

pub(super) static BERT: Family = Family {
    model_types: &["bert", "distilbert"],
    algorithm: "WordPiece",
    files: &["vocab.txt"],
    read: wordpiece::load,
    decoder: || WordPiece::default().into(),
    specials: Specials { unknown: "[UNK]", separator: "[SEP]", pad: "[PAD]", begin: "[CLS]", mask: "[MASK]" },
    mask_takes_spaces: false,
    pair: "begin:0 $A:0 separator:0 $B:1 separator:1",
    has_segments: true,
};

static ROBERTA: Family = Family {
    model_types: &["roberta"],
    algorithm: "BPE",
    files: &["vocab.json", "merges.txt"],
    read: byte_level::load,
    decoder: || ByteLevel::default().into(),
    specials: ROBERTA_SPECIALS,
    mask_takes_spaces: true,
    pair: ROBERTA_PAIR,
    has_segments: false,
};

static XLM_ROBERTA: Family = Family {
    model_types: &["xlm-roberta"],
    algorithm: "Unigram",
    files: &["sentencepiece.bpe.model"],
    read: unigram::load,
    decoder: || Metaspace::default().into(),
    specials: ROBERTA_SPECIALS,
    mask_takes_spaces: true,
    pair: ROBERTA_PAIR,
    has_segments: false,
};

const ROBERTA_SPECIALS: Specials<&str> =
    Specials { unknown: "<unk>", separator: "</s>", pad: "<pad>", begin: "<s>", mask: "<mask>" };

const ROBERTA_PAIR: &str = "begin:0 $A:0 separator:0 separator:0 $B:0 separator:0";

impl Family {
    /// That of the model in a `tokenizer.json`: a BERT may well have the pieces of XLM-RoBERTa.
    pub(super) fn of_model(model: &ModelWrapper) -> Result<&'static Self, String> {
        let algorithm = match model {
            ModelWrapper::BPE(_) => "BPE",
            ModelWrapper::Unigram(_) => "Unigram",
            ModelWrapper::WordLevel(_) => "WordLevel",
            ModelWrapper::WordPiece(_) => "WordPiece",
        };
        let found = FAMILIES.into_iter().find(|family| family.algorithm == algorithm);
        found.ok_or_else(|| {
            let known = FAMILIES.map(|family| family.algorithm).join(", ");
            format!("its model is of the type {algorithm}: known are {known}")
        })
    }

    /// That of the `model_type` in a `config.json`; BERT's where there is none.
    pub(super) fn of_config(path: &Path) -> Result<&'static Self, Error> {
        #[derive(serde::Deserialize)]
        struct Config {
            model_type: Option<String>,
        }
        if !path.exists() {
            return Ok(&BERT);
        }
        let config: Config =
            serde_json::from_str(&read(path)?).map_err(|error| wrong(path, shown(&error.to_string())))?;
        let Some(asked) = config.model_type else { return Ok(&BERT) };
        let found = FAMILIES.into_iter().find(|family| family.model_types.contains(&asked.as_str()));
        found.ok_or_else(|| {
            let known = FAMILIES.map(|family| family.model_types.join(", ")).join(", ");
            wrong(
                path,
                format!(
                    "without `tokenizer.json`, its `model_type` must be one of {known}, not `{}`",
                    shown(&asked)
                ),
            )
        })
    }
}

impl<T> Specials<T> {
    /// In the order in which [`train`](super::ClassifierTokenizer::train) numbers them.
    pub(super) fn all(&self) -> [&T; 5] {
        [&self.pad, &self.unknown, &self.begin, &self.separator, &self.mask]
    }
}
