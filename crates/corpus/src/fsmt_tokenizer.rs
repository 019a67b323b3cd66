//! Pieces of fairseq's translators in the format of transformers (`fsmt`), such as facebook/wmt19-en-de. Moses splits
//! texts into words, `merges.txt` cuts words into pieces (Sennrich et al. 2016, <https://aclanthology.org/P16-1162>),
//! and `vocab-src.json` and `vocab-tgt.json` number the pieces.
//!
//! After `FSMTTokenizer` of transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/fsmt/tokenization_fsmt.py>.
//! Differs from it for target texts: as in fairseq, they go by the language and the vocabulary of the target, not by
//! those of the source.
mod merges;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use self::merges::{END_OF_WORD, Merges};
use words::excerpt;

use crate::Error;
use crate::foreign::{MOST_BYTES, read_json, read_text, wrong};
use crate::foreign_tokenizer::Name;
use crate::marian_tokenizer::join_punctuation;
use crate::moses::Moses;
use crate::numbering::Numbering;
use crate::sentence_tokenizer::SentenceTokenizer;
use crate::special_tokens::{Part, SpecialToken, SpecialTokens};

/// Pieces of a source and a target language, each with its own numbering.
pub struct FsmtTokenizer {
    source: Side,
    target: Side,
    merges: Merges,
    /// The special tokens, whose ids both sides share.
    specials: SpecialTokens,
    end: u32,
    pad: u32,
    unknown: u32,
    lower_case: bool,
    joins_punctuation: bool,
}

/// A language and its vocabulary.
struct Side {
    moses: Moses,
    ids: HashMap<String, u32>,
    /// In the order of their ids.
    pieces: Vec<String>,
}

/// `tokenizer_config.json`
#[derive(serde::Deserialize)]
struct Settings {
    langs: [String; 2],
    #[serde(default)]
    do_lower_case: bool,
    #[serde(default)]
    clean_up_tokenization_spaces: bool,
    #[serde(default = "begin")]
    bos_token: Name,
    #[serde(default = "pad")]
    pad_token: Name,
    #[serde(default = "end")]
    sep_token: Name,
    #[serde(default = "unknown")]
    unk_token: Name,
}

fn begin() -> Name {
    Name::Plain("<s>".into())
}

fn pad() -> Name {
    Name::Plain("<pad>".into())
}

fn end() -> Name {
    Name::Plain("</s>".into())
}

fn unknown() -> Name {
    Name::Plain("<unk>".into())
}

/// The sizes of the vocabularies according to the model's `config.json`.
#[derive(Default, serde::Deserialize)]
struct Sizes {
    src_vocab_size: Option<usize>,
    tgt_vocab_size: Option<usize>,
}

impl FsmtTokenizer {
    /// Reads `tokenizer_config.json`, `vocab-src.json`, `vocab-tgt.json` and `merges.txt` of a folder. If there is a
    /// `config.json`, the vocabularies must have the sizes that it states.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let settings: Settings = read_json(&folder.join("tokenizer_config.json"))?;
        let config = folder.join("config.json");
        let sizes: Sizes = if config.exists() { read_json(&config)? } else { Sizes::default() };
        let [from, to] = &settings.langs;
        let source = Side::read(&folder.join("vocab-src.json"), from, sizes.src_vocab_size)?;
        let path = folder.join("vocab-tgt.json");
        let target = Side::read(&path, to, sizes.tgt_vocab_size)?;
        let special = |name: &Name| source.shared(&target, name.as_str(), folder);
        let [begin, pad, end, unknown] =
            [&settings.bos_token, &settings.pad_token, &settings.sep_token, &settings.unk_token].map(special);
        let specials = [begin?, pad?, end?, unknown?];
        let [_, pad, end, unknown] = specials.each_ref().map(|token| token.id);
        let specials = SpecialTokens(specials.into());
        let path = folder.join("merges.txt");
        let merges = Merges::parse(&read_text(&path, MOST_BYTES)?).map_err(|reason| wrong(&path, reason))?;
        let (lower_case, joins_punctuation) = (settings.do_lower_case, settings.clean_up_tokenization_spaces);
        Ok(Self { source, target, merges, specials, end, pad, unknown, lower_case, joins_punctuation })
    }

    fn encode_with(&self, side: &Side, text: &str) -> Vec<u32> {
        let lowered = self.lower_case.then(|| self.lower(text));
        let mut ids = self.specials.encode(lowered.as_deref().unwrap_or(text), |text| self.cut(side, text));
        ids.push(self.end);
        ids
    }

    /// `text` in lower case, except for special tokens.
    fn lower(&self, text: &str) -> String {
        let lower = |part| match part {
            // Letter by letter: transformers ignores that a sigma at the end of a word has a form of its own.
            Part::Text(text) => text.chars().flat_map(char::to_lowercase).collect(),
            Part::Special(token) => token.text.clone(),
        };
        self.specials.parts(text).into_iter().map(lower).collect()
    }

    /// Ids of the pieces of a text without special tokens.
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
    /// Ids of the pieces of a source text, then the end symbol.
    fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_with(&self.source, text)
    }

    /// Ids of the pieces of a target text, then the end symbol.
    fn encode_target(&self, text: &str) -> Vec<u32> {
        self.encode_with(&self.target, text)
    }

    /// Text of target `ids`; special tokens and ids outside the vocabulary are left out.
    fn decode(&self, ids: &[u32]) -> String {
        let pieces = ids
            .iter()
            .filter(|id| !self.specials.has(**id))
            .filter_map(|&id| self.target.pieces.get(id as usize));
        let text = pieces.map(|piece| piece.replace(' ', "").replace(END_OF_WORD, " ")).collect::<String>();
        let words: Vec<&str> = crate::moses::words(&text).collect();
        let text = self.target.moses.detokenize(&words);
        if self.joins_punctuation { join_punctuation(&text) } else { text }
    }

    /// Number of source pieces, and so of rows in the encoder's embedding table.
    fn source_vocabulary_size(&self) -> usize {
        self.source.pieces.len()
    }

    /// Number of target pieces, and so of rows in the decoder's embedding table.
    fn target_vocabulary_size(&self) -> usize {
        self.target.pieces.len()
    }

    /// Id of the end symbol.
    fn end(&self) -> u32 {
        self.end
    }

    /// Id of the padding symbol.
    fn pad(&self) -> u32 {
        self.pad
    }
}

impl Side {
    /// Reads a vocabulary; `size` is the one that the model's configuration states.
    fn read(path: &Path, language: &str, size: Option<usize>) -> Result<Self, Error> {
        let numbering: Numbering = read_json(path)?;
        let ids = numbering.into_unique().map_err(|reason| wrong(path, reason))?;
        let mut pieces = vec![None; ids.len()];
        for (piece, &id) in &ids {
            if let Some(place) = pieces.get_mut(id as usize) {
                *place = Some(piece.clone());
            }
        }
        if let Some(gap) = pieces.iter().position(Option::is_none) {
            let last = pieces.len() - 1;
            return Err(wrong(path, format!("no piece has the id {gap}, but ids must run from 0 to {last}")));
        }
        if let Some(size) = size.filter(|size| *size != ids.len()) {
            let found = ids.len();
            return Err(wrong(
                path,
                format!("it has {found} pieces, but `config.json` says that there are {size}"),
            ));
        }
        Ok(Self { moses: Moses::new(language), ids, pieces: pieces.into_iter().flatten().collect() })
    }

    /// A special token of the source side, which must have the same id on the target side.
    fn shared(&self, target: &Self, token: &str, folder: &Path) -> Result<SpecialToken, Error> {
        let id = |side: &Self, name: &str| {
            let lacks = || wrong(&folder.join(name), format!("it lacks `{}`", excerpt(token)));
            side.ids.get(token).copied().filter(|_| !token.is_empty()).ok_or_else(lacks)
        };
        let (here, there) = (id(self, "vocab-src.json")?, id(target, "vocab-tgt.json")?);
        if here == there {
            return Ok(SpecialToken { text: token.to_owned(), id: here });
        }
        let token = excerpt(token);
        let reason =
            format!("`{token}` has the id {there}, but {here} in `vocab-src.json`: they must be equal");
        Err(wrong(&folder.join("vocab-tgt.json"), reason))
    }
}

impl fmt::Debug for FsmtTokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = [&self.source, &self.target].map(|side| side.pieces.len());
        formatter.debug_struct("FsmtTokenizer").field("pieces", &sizes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
