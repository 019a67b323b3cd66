//! Pieces of fairseq's translators as transformers keeps them, `fsmt`, such as facebook/wmt19-en-de: Moses splits the
//! words, `merges.txt` cuts them into pieces (Sennrich et al. 2016, <https://aclanthology.org/P16-1162>),
//! `vocab-src.json` and `vocab-tgt.json` number these.
//!
//! After `FSMTTokenizer` of transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/fsmt/tokenization_fsmt.py>.
//! Differs from it in target texts, which go by the target language and its vocabulary, as in fairseq; there they go by
//! those of the source.
mod merges;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;

use self::merges::{END_OF_WORD, Merges};
use crate::Error;
use crate::classifier_tokenizer::Name;
use crate::foreign::shown;
use crate::marian_tokenizer::join_punctuation;
use crate::moses::Moses;
use crate::numbering::Numbering;
use crate::sentence_tokenizer::SentenceTokenizer;

/// Pieces of a source and a target language, each under a numbering of its own.
pub struct FsmtTokenizer {
    source: Side,
    target: Side,
    merges: Merges,
    /// Special tokens with their ids, which both sides share.
    specials: Vec<(String, u32)>,
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
    /// By their ids.
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

/// Sizes of the vocabularies that a model's `config.json` states.
#[derive(Default, serde::Deserialize)]
struct Sizes {
    src_vocab_size: Option<usize>,
    tgt_vocab_size: Option<usize>,
}

impl FsmtTokenizer {
    /// Reads `tokenizer_config.json`, `vocab-src.json`, `vocab-tgt.json` and `merges.txt` of a folder; where there is a
    /// `config.json`, too, the vocabularies must have the sizes that it states.
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
        let specials = vec![begin?, pad?, end?, unknown?];
        let [pad, end, unknown] = [1, 2, 3].map(|place| specials[place].1);
        let path = folder.join("merges.txt");
        let merges = Merges::parse(&read(&path)?).map_err(|reason| wrong(&path, reason))?;
        let (lower_case, joins_punctuation) = (settings.do_lower_case, settings.clean_up_tokenization_spaces);
        Ok(Self { source, target, merges, specials, end, pad, unknown, lower_case, joins_punctuation })
    }

    fn encode_with(&self, side: &Side, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let lowered;
        let mut rest = text;
        if self.lower_case {
            lowered = self.lower(text);
            rest = &lowered;
        }
        while let Some((before, token, after)) = self.first_special(rest) {
            self.push_pieces(side, before, &mut ids);
            ids.push(token.1);
            rest = after;
        }
        self.push_pieces(side, rest, &mut ids);
        ids.push(self.end);
        ids
    }

    /// `text` in small letters but for special tokens.
    fn lower(&self, text: &str) -> String {
        // Letter by letter, since transformers knows no sigma at the end of a word.
        let small = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
        let (mut lowered, mut rest) = (String::new(), text);
        while let Some((before, token, after)) = self.first_special(rest) {
            lowered += &small(before);
            lowered += &token.0;
            rest = after;
        }
        lowered + &small(rest)
    }

    /// The first special token in `text`, the longest if several begin there, and what stands around it.
    fn first_special<'a>(&self, text: &'a str) -> Option<(&'a str, &(String, u32), &'a str)> {
        let places = self.specials.iter().filter_map(|token| Some((text.find(&token.0)?, token)));
        let (place, token) = places.min_by_key(|(place, token)| (*place, usize::MAX - token.0.len()))?;
        Some((&text[..place], token, &text[place + token.0.len()..]))
    }

    fn push_pieces(&self, side: &Side, text: &str, ids: &mut Vec<u32>) {
        for mut word in side.moses.tokenize(&side.moses.clean(text)) {
            word += END_OF_WORD;
            let pieces = self.merges.cut(&word);
            ids.extend(pieces.map(|piece| side.ids.get(piece).copied().unwrap_or(self.unknown)));
        }
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
        let special = |id: &u32| self.specials.iter().any(|(_, special)| special == id);
        let pieces =
            ids.iter().filter(|id| !special(id)).filter_map(|&id| self.target.pieces.get(id as usize));
        let text = pieces.map(|piece| piece.replace(' ', "").replace(END_OF_WORD, " ")).collect::<String>();
        let words: Vec<&str> = crate::moses::words(&text).collect();
        let text = self.target.moses.detokenize(&words);
        if self.joins_punctuation { join_punctuation(&text) } else { text }
    }

    /// Number of source pieces, which is what the encoder's embedding must have room for.
    fn source_vocabulary_size(&self) -> usize {
        self.source.pieces.len()
    }

    /// Number of target pieces, which is what the decoder's embedding must have room for.
    fn target_vocabulary_size(&self) -> usize {
        self.target.pieces.len()
    }

    /// Id of the end symbol.
    fn end(&self) -> u32 {
        self.end
    }

    /// Id of what fills up a batch.
    fn pad(&self) -> u32 {
        self.pad
    }
}

impl Side {
    /// `size` is what the model's configuration states.
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

    /// A special token of the source side and its id, which the target side must have, too.
    fn shared(&self, target: &Self, token: &str, folder: &Path) -> Result<(String, u32), Error> {
        let id = |side: &Self, name: &str| {
            let lacks = || wrong(&folder.join(name), format!("it lacks `{}`", shown(token)));
            side.ids.get(token).copied().filter(|_| !token.is_empty()).ok_or_else(lacks)
        };
        let (here, there) = (id(self, "vocab-src.json")?, id(target, "vocab-tgt.json")?);
        if here == there {
            return Ok((token.to_owned(), here));
        }
        let token = shown(token);
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

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    serde_json::from_str(&read(path)?).map_err(|error| wrong(path, shown(&error.to_string())))
}

fn wrong(path: &Path, reason: String) -> Error {
    Error::Fsmt { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests;
