//! Tokens of decoder-only language models: byte-level BPE as in GPT-2 (Radford et al. 2019,
//! <https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf>, Section 2.2)
//! and its successors, BPE with bytes for rare letters as in Llama 2, and single characters as in nanoGPT.
//!
//! Special tokens are not recognised in texts: `<|endoftext|>` in a document is encoded as its letters. Nothing is cut,
//! filled up or put around a text; [`begin`](LanguageTokenizer::begin) and [`end`](LanguageTokenizer::end) say what a
//! model expects there.
mod characters;
mod json;
mod settings;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, ModelWrapper, PreTokenizerWrapper, Tokenizer};

use self::json::{Around, Parsed};
use self::settings::Stated;
use words::excerpt;

use crate::Error;
use crate::foreign::{MOST_BYTES, read_text};
use crate::foreign_tokenizer::lists;
use crate::foreign_tokenizer::loaded::{check_added, check_bpe, check_ids, set_prefix_space};
use crate::placed::PlacedToken;
use crate::tokenizer::learn;

/// Stands before and after documents, in GPT-2 as in what we train, where it has id 0.
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// Cuts the texts of a language model into tokens.
#[derive(Debug, Clone)]
pub struct LanguageTokenizer {
    inner: Tokenizer,
    /// Ids of the characters, if tokens are characters.
    characters: Option<HashMap<char, u32>>,
    begin: Option<u32>,
    end: Option<u32>,
    /// What `tokenizer.json` says is put around texts; for other readers of the file.
    post_processor: Value,
    vocabulary_size: usize,
}

impl LanguageTokenizer {
    /// Reads a Hugging Face folder: `tokenizer.json` or, without one, GPT-2's `vocab.json` and `merges.txt`; and the names
    /// of the special tokens from `tokenizer_config.json` or the older `special_tokens_map.json`, if they are there.
    ///
    /// # Errors
    /// If a file is missing or malformed, or has parts that the library would panic on, that would drop text, or that
    /// draw at random.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let stated = Stated::read(folder)?;
        let path = folder.join("tokenizer.json");
        if path.exists() {
            let parsed = read_text(&path, MOST_BYTES).map(|text| json::parse(&text))?;
            return parsed
                .and_then(|parsed| Self::new(parsed, &stated))
                .map_err(|reason| wrong(&path, reason));
        }
        if !folder.join("vocab.json").exists() {
            return Err(wrong(folder, "it holds neither `tokenizer.json` nor `vocab.json`".to_owned()));
        }
        stated.check_is_gpt2(folder)?;
        let mut inner = Tokenizer::new(lists::read(folder, wrong)?);
        inner.with_pre_tokenizer(Some(ByteLevel::default()));
        inner.with_decoder(Some(ByteLevel::default()));
        let parsed = Parsed { inner, post_processor: Value::Null };
        Self::new(parsed, &stated).map_err(|reason| wrong(&folder.join("vocab.json"), reason))
    }

    /// Learns byte-level BPE as GPT-2 has it from `lines`, until the vocabulary has `vocabulary_size` entries or there is
    /// nothing left to merge. Equal lines give equal tokenisers. [`END_OF_TEXT`] has id 0.
    ///
    /// # Errors
    /// If the vocabulary has no room for the 256 bytes and the special token.
    pub fn train_bytes<S: AsRef<str> + Send>(
        lines: impl Iterator<Item = S> + Send,
        vocabulary_size: usize,
    ) -> Result<Self, Error> {
        let inner = Tokenizer::from(learn(lines, vocabulary_size, &[END_OF_TEXT])?);
        let parsed = Parsed { inner, post_processor: Value::Null };
        Ok(Self::new(parsed, &Stated::default()).expect("the trainer adds the special token and all bytes"))
    }

    /// A token for each character that occurs in `texts`, by code point from id 1 on; [`END_OF_TEXT`] has id 0. As in
    /// nanoGPT's `data/shakespeare_char/prepare.py`, which has no token between documents.
    pub fn characters<S: AsRef<str>>(texts: impl Iterator<Item = S>) -> Self {
        let parsed = json::parse(&characters::json(texts)).expect("a tokeniser of ours");
        Self::new(parsed, &Stated::default()).expect("every token is a character or the special one")
    }

    /// Writes a `tokenizer.json` to `path`, and a `tokenizer_config.json` beside it with the names of the special tokens,
    /// so that transformers opens the folder too.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let write = |path: &Path, json: &Value| {
            fs::write(path, format!("{json:#}\n"))
                .map_err(|source| Error::Write { path: path.to_owned(), source })
        };
        write(path, &self.to_json())?;
        write(&path.with_file_name("tokenizer_config.json"), &self.settings())
    }

    /// Ids of the tokens of `text`, without special ones.
    ///
    /// # Errors
    /// If tokens are characters, and one of `text` is not among them.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        if let Some(known) = &self.characters {
            let id = |character| {
                let id = known.get(&character).copied();
                id.ok_or(Error::UnknownCharacter { character, known: known.len() })
            };
            return text.chars().map(id).collect();
        }
        let encoding = self.inner.encode_fast(text, false);
        let encoding = encoding.map_err(|error| Error::Encoding { reason: excerpt(&error.to_string()) })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The tokens of `text` with their places in it, without special ones.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    pub fn encode_placed(&self, text: &str) -> Result<Vec<PlacedToken>, Error> {
        if self.characters.is_some() {
            let ids = self.encode(text)?.into_iter();
            let bytes = text.char_indices().map(|(start, letter)| Some(start..start + letter.len_utf8()));
            return Ok(ids.zip(bytes).map(|(id, bytes)| PlacedToken { id, bytes }).collect());
        }
        let encoding = self.inner.encode(text, false);
        let encoding = encoding.map_err(|error| Error::Encoding { reason: excerpt(&error.to_string()) })?;
        Ok(PlacedToken::of(&encoding))
    }

    /// The text of `ids`. Special tokens are left out, and bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// If no token has one of the ids.
    pub fn decode(&self, ids: &[u32]) -> Result<String, Error> {
        if let Some(&id) = ids.iter().find(|&&id| self.inner.id_to_token(id).is_none()) {
            return Err(Error::UnknownToken { id, size: self.vocabulary_size });
        }
        let text = self.inner.decode(ids, true);
        text.map_err(|error| Error::Encoding { reason: excerpt(&error.to_string()) })
    }

    /// Id of the token before a document: the one that the folder says is put there, or else the token named `bos_token`,
    /// or else [`end`](Self::end), as for GPT-2 and Qwen.
    pub fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// Id of the token after a document: the one named `eos_token`, or else the one that the folder says is put there, or
    /// else [`END_OF_TEXT`].
    pub fn end(&self) -> Option<u32> {
        self.end
    }

    /// One more than the highest id, so the least number of rows that an embedding table needs.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    fn to_json(&self) -> Value {
        let mut json = serde_json::to_value(&self.inner).expect("a tokeniser is plain data");
        json["post_processor"] = self.post_processor.clone();
        json
    }

    fn settings(&self) -> Value {
        let token = |id: Option<u32>| id.and_then(|id| self.inner.id_to_token(id));
        let add_prefix_space = match self.inner.get_pre_tokenizer() {
            Some(PreTokenizerWrapper::ByteLevel(byte_level)) => byte_level.add_prefix_space,
            _ => false,
        };
        serde_json::json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": token(self.begin),
            "eos_token": token(self.end),
            "add_prefix_space": add_prefix_space,
            "clean_up_tokenization_spaces": false,
        })
    }

    /// Checks what `encode` and `decode` rely on, and finds the special tokens.
    fn new(parsed: Parsed, stated: &Stated) -> Result<Self, String> {
        let Parsed { mut inner, mut post_processor } = parsed;
        set_prefix_space(&mut inner, stated.add_prefix_space());
        let characters = match inner.get_model() {
            ModelWrapper::BPE(model) => {
                check_bpe(model, inner.get_pre_tokenizer())?;
                None
            }
            ModelWrapper::WordLevel(_) => Some(characters::ids(&inner)?),
            _ => return Err("its model is neither BPE nor one of single characters".to_owned()),
        };
        check_ids(&inner)?;
        check_added(&inner)?;
        let id = |token: &str| inner.token_to_id(token);
        let named = |token: Option<&str>| match token {
            Some(token) => id(token).map(Some).ok_or_else(|| format!("it lacks `{}`", excerpt(token))),
            None => Ok(None),
        };
        if let (true, Some(token), Some(id)) = (stated.adds_begin(), stated.begin(), named(stated.begin())?) {
            post_processor = json::begins_with(token, id);
        }
        let Around { first, last } = json::around(&post_processor, &inner)?;
        let end = named(stated.end())?.or(last).or_else(|| id(END_OF_TEXT));
        let begin = first.or(named(stated.begin())?).or(end);
        let specials = [begin, end].into_iter().flatten().filter_map(|id| inner.id_to_token(id));
        let specials: Vec<AddedToken> = specials.map(|token| AddedToken::from(token, true)).collect();
        mark_special(&mut inner, specials);
        inner.set_encode_special_tokens(true); // not part of the JSON
        let highest = inner.get_vocab(true).into_values().max();
        let vocabulary_size = highest.map_or(0, |highest| highest as usize + 1);
        Ok(Self { inner, characters, begin, end, post_processor, vocabulary_size })
    }
}

/// Lets the library leave these out when it decodes; those that a file calls special already keep their details.
fn mark_special(inner: &mut Tokenizer, tokens: Vec<AddedToken>) {
    let known = inner.get_added_tokens_decoder();
    let is_marked =
        |token: &AddedToken| known.values().any(|known| known.special && known.content == token.content);
    let new: Vec<AddedToken> = tokens.into_iter().filter(|token| !is_marked(token)).collect();
    inner.add_special_tokens(&new);
}

fn wrong(path: &Path, reason: String) -> Error {
    Error::LanguageTokenizer { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests;
