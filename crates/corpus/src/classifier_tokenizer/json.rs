//! `tokenizer.json`, checked before the library reads it: some parts would make the library panic.
use tokenizers::{Tokenizer, TruncationDirection};
use words::excerpt;

use super::family::Family;
use crate::foreign_tokenizer::parts::{self, Role};

/// A `tokenizer.json`.
pub(super) struct Parsed {
    pub(super) inner: Tokenizer,
    pub(super) family: &'static Family,
    /// `Left` if the file says that texts are cut at their start.
    pub(super) truncation_side: Option<TruncationDirection>,
}

/// Reads a `tokenizer.json`. Left out are the decoder, since the library panics on a malformed one, and what the file
/// says about padding and truncation, except for the side that texts are cut on, which counts in transformers too.
pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    let mut json = parts::check(text, &ROLES)?;
    let truncation_side = match json["truncation"]["direction"].as_str() {
        Some("Left") => Some(TruncationDirection::Left),
        _ => None,
    };
    for part in ["decoder", "truncation", "padding"] {
        if let Some(part) = json.get_mut(part) {
            part.take();
        }
    }
    let inner: Tokenizer = json.to_string().parse().map_err(|error| excerpt(&format!("{error}")))?;
    let family = Family::of_model(inner.get_model())?;
    Ok(Parsed { inner, family, truncation_side })
}

/// The allowed steps before a text is cut into pieces.
const ROLES: [Role; 2] = [
    Role { name: "normaliser", part: "normalizer", allowed: &NORMALIZERS },
    Role { name: "pre-tokeniser", part: "pre_tokenizer", allowed: &PRE_TOKENIZERS },
];

const NORMALIZERS: [&str; 12] = [
    "BertNormalizer",
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Nmt",
    "Precompiled",
    "Replace",
    "Sequence",
    "Strip",
    "StripAccents",
];
const PRE_TOKENIZERS: [&str; 8] = [
    "BertPreTokenizer",
    "ByteLevel",
    "Digits",
    "Metaspace",
    "Punctuation",
    "Sequence",
    "Whitespace",
    "WhitespaceSplit",
];
