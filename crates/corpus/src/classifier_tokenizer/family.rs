//! Families of classifiers: what their tokenisers consist of unless the folder says otherwise.
//!
//! The defaults are those of `BertTokenizer`, `DistilBertTokenizer`, `RobertaTokenizer` and `XLMRobertaTokenizer` of
//! transformers 4.57.
use std::path::Path;

use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::decoders::wordpiece::WordPiece;
use tokenizers::pre_tokenizers::metaspace::Metaspace;
use tokenizers::{DecoderWrapper, ModelWrapper, Tokenizer};
use words::excerpt;

use super::settings::Settings;
use super::{byte_level, unigram, wordpiece, wrong};
use crate::Error;
use crate::foreign::read_json;

/// What the tokenisers of some models have in common.
#[derive(Debug)]
pub(super) struct Family {
    /// The `model_type` of these models in `config.json`.
    model_types: &'static [&'static str],
    /// The type of the tokeniser's model in `tokenizer.json`.
    algorithm: &'static str,
    /// The files that are read if there is no `tokenizer.json`.
    pub(super) files: &'static [&'static str],
    /// Reads those files, and makes all but the decoder, the special tokens and the template.
    pub(super) read: fn(&Path, &Settings) -> Result<Tokenizer, Error>,
    /// The decoder, as in transformers.
    pub(super) decoder: fn() -> DecoderWrapper,
    /// Names of the special tokens.
    pub(super) specials: Specials<&'static str>,
    /// Whether the mask swallows the spaces before it.
    pub(super) mask_takes_spaces: bool,
    /// Where special tokens go in a pair; a single text has one at each end.
    pub(super) pair: &'static str,
    /// Whether the model tells the first text from the second.
    pub(super) has_segments: bool,
}

/// What `config.json` says about the tokeniser.
#[derive(Default, serde::Deserialize)]
pub(super) struct Config {
    model_type: Option<String>,
    tokenizer_class: Option<String>,
}

/// One value for each special token that every family has.
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
    /// The family of the model in a `tokenizer.json`, not of the classifier: a BERT may well use XLM-RoBERTa's pieces.
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

    /// The family of the classifier, or BERT's if there is no `model_type`. The error lists the known ones.
    pub(super) fn of_config(config: &Config) -> Result<&'static Self, String> {
        let Some(asked) = &config.model_type else { return Ok(&BERT) };
        let found = FAMILIES.into_iter().find(|family| family.model_types.contains(&asked.as_str()));
        found.ok_or_else(|| {
            let known = FAMILIES.map(|family| family.model_types.join(", ")).join(", ");
            format!(
                "without `tokenizer.json`, its `model_type` must be one of {known}, not `{}`",
                excerpt(asked)
            )
        })
    }
}

impl Config {
    /// Reads a `config.json`; without one, nothing is stated.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        if path.exists() { read_json(path, wrong) } else { Ok(Self::default()) }
    }

    /// The class of the tokeniser in transformers if `tokenizer_config.json` names none.
    pub(super) fn tokenizer_class(self) -> Option<String> {
        let of_model = |model_type: &str| match model_type {
            "bert" => Some("BertTokenizer".to_owned()),
            "distilbert" => Some("DistilBertTokenizer".to_owned()),
            _ => None,
        };
        self.tokenizer_class.or_else(|| of_model(self.model_type.as_deref()?))
    }
}

impl<T> Specials<T> {
    /// In the order in which [`train`](super::ClassifierTokenizer::train) numbers them.
    pub(super) fn all(&self) -> [&T; 5] {
        [&self.pad, &self.unknown, &self.begin, &self.separator, &self.mask]
    }
}
