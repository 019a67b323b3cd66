//! Tokenizer of fairseq's translators in the format of transformers (`fsmt`), such as facebook/wmt19-en-de. Moses splits texts into words,
//! `merges.txt` splits words into subwords (Sennrich et al. 2016, <https://aclanthology.org/P16-1162>), and `vocab-src.json` and
//! `vocab-tgt.json` map them to ids.
//!
//! Follows `FSMTTokenizer` of transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/fsmt/tokenization_fsmt.py>. Differs from it for target
//! texts: as in fairseq, they use the target's language and vocabulary, not the source's.
mod merges;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

use words::excerpt;

use self::merges::{END_OF_WORD, Merges};
use crate::Error;
use crate::foreign::{read_json, read_text, wrong};
use crate::foreign_tokenizer::{Name, join_punctuation, require};
use crate::moses::Moses;
use crate::sentence_tokenizer::SentenceTokenizer;
use crate::special_tokens::{Span, SpecialToken, SpecialTokens};

/// BPE tokenizer of a source and a target language with separate vocabularies.
pub struct FsmtTokenizer {
    source: Side,
    target: Side,
    merges: Merges,
    /// Special tokens, whose ids both vocabularies share.
    specials: SpecialTokens,
    end: u32,
    pad: u32,
    unknown: u32,
    lower_case: bool,
    joins_punctuation: bool,
}

struct Side {
    moses: Moses,
    ids: BTreeMap<String, u32>,
    pieces: HashMap<u32, String>,
}

#[derive(serde::Deserialize)]
struct Settings {
    langs: [String; 2],
    #[serde(default)]
    do_lower_case: bool,
    #[serde(default)]
    clean_up_tokenization_spaces: bool,
    bos_token: Option<Name>,
    pad_token: Option<Name>,
    sep_token: Option<Name>,
    unk_token: Option<Name>,
}

impl FsmtTokenizer {
    /// Reads a folder's `tokenizer_config.json`, `vocab-src.json`, `vocab-tgt.json` and `merges.txt`.
    ///
    /// # Errors
    /// If a file is missing or malformed, or the two vocabularies give a special token different ids.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let files = ["tokenizer_config.json", "vocab-src.json", "vocab-tgt.json", "merges.txt"];
        require(folder, &[&files])?;
        let [settings, source, target, path] = files.map(|file| folder.join(file));
        let settings: Settings = read_json(&settings)?;
        let [from, to] = &settings.langs;
        let (source, target) = (Side::read(&source, from)?, Side::read(&target, to)?);
        let special = |name: &Option<Name>, usual: &str| {
            let text = name.as_ref().map_or(usual, Name::as_str);
            match [&source, &target].map(|side| side.ids.get(text)) {
                [Some(&id), Some(other)] if id == *other && !text.is_empty() => {
                    Ok(SpecialToken { text: text.to_owned(), id })
                }
                _ => {
                    let token = excerpt(text);
                    let reason =
                        format!("`vocab-src.json` and `vocab-tgt.json` must give `{token}` the same id");
                    Err(wrong(folder, reason))
                }
            }
        };
        let specials = [
            special(&settings.bos_token, "<s>")?,
            special(&settings.pad_token, "<pad>")?,
            special(&settings.sep_token, "</s>")?,
            special(&settings.unk_token, "<unk>")?,
        ];
        let [_, pad, end, unknown] = specials.each_ref().map(|token| token.id);
        let specials = SpecialTokens(specials.into());
        let merges = Merges::parse(&read_text(&path)?).map_err(|reason| wrong(&path, reason))?;
        let (lower_case, joins_punctuation) = (settings.do_lower_case, settings.clean_up_tokenization_spaces);
        Ok(Self { source, target, merges, specials, end, pad, unknown, lower_case, joins_punctuation })
    }

    fn encode_with(&self, side: &Side, text: &str) -> Result<Vec<u32>, Error> {
        let lowered = self.lower_case.then(|| self.lower(text));
        let text = lowered.as_deref().unwrap_or(text);
        let mut ids = self.specials.encode(text, |text| Ok(self.cut(side, text)))?;
        ids.push(self.end);
        Ok(ids)
    }

    /// Returns `text` in lower case; special tokens stay unchanged.
    fn lower(&self, text: &str) -> String {
        let lower = |span| match span {
            // Character by character, because transformers ignores the final form of sigma.
            Span::Text(text) => text.chars().flat_map(char::to_lowercase).collect(),
            Span::Special(token) => token.text.clone(),
        };
        self.specials.spans(text).into_iter().map(lower).collect()
    }

    fn cut(&self, side: &Side, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        for mut word in side.moses.tokenize(&side.moses.clean(text)) {
            word += END_OF_WORD;
            let pieces = self.merges.cut(&word);
            ids.extend(pieces.map(|piece| side.ids.get(piece).copied().unwrap_or(self.unknown)));
        }
        ids
    }
}

impl SentenceTokenizer for FsmtTokenizer {
    fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.encode_with(&self.source, text)
    }

    fn encode_target(&self, text: &str) -> Result<Vec<u32>, Error> {
        self.encode_with(&self.target, text)
    }

    fn decode(&self, ids: &[u32]) -> String {
        let ids = ids.iter().filter(|id| !self.specials.has(**id));
        let pieces = ids.filter_map(|id| self.target.pieces.get(id));
        let text = pieces.map(|piece| piece.replace(' ', "").replace(END_OF_WORD, " ")).collect::<String>();
        let words: Vec<&str> = crate::moses::words(&text).collect();
        let text = self.target.moses.detokenize(&words);
        if self.joins_punctuation { join_punctuation(&text) } else { text }
    }

    fn token(&self, id: u32, is_source: bool) -> String {
        let side = if is_source { &self.source } else { &self.target };
        side.pieces.get(&id).cloned().unwrap_or_default()
    }

    fn end(&self) -> u32 {
        self.end
    }

    fn pad(&self) -> u32 {
        self.pad
    }
}

impl Side {
    fn read(path: &Path, language: &str) -> Result<Self, Error> {
        let ids: BTreeMap<String, u32> = read_json(path)?;
        let pieces: HashMap<u32, String> = ids.iter().map(|(piece, &id)| (id, piece.clone())).collect();
        if pieces.len() < ids.len() {
            return Err(wrong(path, "each piece must have a unique id".to_owned()));
        }
        Ok(Self { moses: Moses::new(language), ids, pieces })
    }
}

impl fmt::Debug for FsmtTokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = [&self.source, &self.target].map(|side| side.ids.len());
        formatter.debug_struct("FsmtTokenizer").field("pieces", &sizes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
