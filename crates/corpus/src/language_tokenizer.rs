//! Tokenizers of decoder-only language models: byte-level BPE as in GPT-2 (Radford et al. 2019,
//! <https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf>, Section 2.2) and its
//! successors, BPE with byte fallback as in Llama 2, and single characters as in nanoGPT.
//!
//! Special tokens are not recognised in texts: `<|endoftext|>` in a document is encoded as characters. Texts are not truncated or padded
//! and get no special tokens; [`begin`](LanguageTokenizer::begin) and [`end`](LanguageTokenizer::end) return those that a model expects
//! around a document.
mod characters;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer};
use words::excerpt;

use crate::Error;
use crate::foreign::{read_if_there, wrong};
use crate::foreign_tokenizer::{self as foreign, TokenizerSettings};
use crate::placed::PlacedToken;
use crate::sentence_tokenizer::check_rows;
use crate::tokenizer::learn;

/// Special token before and after documents, in GPT-2 and in the models trained here, where it has id 0.
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// Tokenizer of a language model.
#[derive(Debug, Clone)]
pub struct LanguageTokenizer {
    inner: Tokenizer,
    /// Ids of the characters; `None` if tokens are not characters.
    characters: Option<HashMap<char, u32>>,
    begin: Option<u32>,
    /// True if the folder's tokenizer puts `begin` before each text.
    adds_bos: bool,
    end: Option<u32>,
    /// Template of `tokenizer.json`, kept only to be saved for other readers of the file.
    post_processor: Option<PostProcessorWrapper>,
    vocabulary_size: usize,
    /// True if decoding joins punctuation to words.
    joins_punctuation: bool,
    /// Rows of the embedding table, if known.
    rows: Option<i64>,
}

impl LanguageTokenizer {
    /// Reads a Hugging Face folder: `tokenizer.json` or, without one, GPT-2's `vocab.json` and `merges.txt`. The optional
    /// `tokenizer_config.json` or the older `special_tokens_map.json` names the special tokens.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        foreign::guarded(|| Self::read(folder), |reason| wrong(folder, reason))
    }

    fn read(folder: &Path) -> Result<Self, Error> {
        let stated = TokenizerSettings::read(folder)?;
        let inner = match foreign::read_whole(folder)? {
            Some(inner) => inner,
            None => {
                let lists: &[&str] =
                    if is_of_gpt2(folder, &stated)? { &["vocab.json", "merges.txt"] } else { &[] };
                foreign::require(folder, &[foreign::WHOLE, lists])?;
                foreign::read_byte_pairs(folder, false)?
            }
        };
        Self::new(inner, &stated).map_err(|reason| wrong(folder, reason))
    }

    /// Returns the tokenizer of a model with `rows` rows of embeddings; it refuses texts with token ids beyond them.
    pub fn for_rows(self, rows: i64) -> Self {
        Self { rows: Some(rows), ..self }
    }

    /// Trains GPT-2's byte-level BPE on `lines` until the vocabulary has `vocabulary_size` entries or no merges are left. Equal lines give
    /// equal tokenizers. [`END_OF_TEXT`] has id 0.
    ///
    /// # Errors
    /// If the vocabulary has no room for the 256 bytes and the special token.
    pub fn train_bytes<S: AsRef<str> + Send>(
        lines: impl Iterator<Item = S> + Send,
        vocabulary_size: usize,
    ) -> Result<Self, Error> {
        let inner = Tokenizer::from(learn(lines, vocabulary_size, &[END_OF_TEXT])?);
        Ok(Self::new(inner, &TokenizerSettings::default()).expect("the trainer adds the special token"))
    }

    /// Makes a token of each character in `texts`, numbered from 1 by code point; [`END_OF_TEXT`] has id 0. Follows nanoGPT's
    /// `data/shakespeare_char/prepare.py`, which has no special token.
    pub fn characters<S: AsRef<str>>(texts: impl Iterator<Item = S>) -> Self {
        let inner = characters::json(texts).parse().expect("a tokenizer of ours");
        Self::new(inner, &TokenizerSettings::default()).expect("it has the special token")
    }

    /// Writes a `tokenizer.json` to `path`, and a `tokenizer_config.json` with the special tokens to its folder, so that transformers can
    /// load the folder.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let write =
            |path: &Path, json: &Value| fs::write(path, format!("{json:#}\n")).map_err(Error::writing(path));
        write(path, &self.to_json())?;
        write(&path.with_file_name("tokenizer_config.json"), &self.settings())
    }

    /// Returns the token ids of `text`, without special tokens.
    ///
    /// # Errors
    /// If a character tokenizer lacks a character of `text`, the model has no row for a token, or the library's tokenizer fails.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        if let Some(known) = &self.characters {
            let id = |character| {
                let id = known.get(&character).copied();
                id.ok_or_else(|| {
                    let (character, known) = (character.escape_debug(), known.len());
                    Error::Invalid(format!(
                        "`{character}` is not among the {known} characters of the tokenizer"
                    ))
                })
            };
            let ids = text.chars().map(id).collect::<Result<Vec<u32>, Error>>()?;
            check_rows(&ids, self.rows, |id| self.inner.id_to_token(id))?;
            return Ok(ids);
        }
        Ok(foreign::encode(&self.inner, self.rows, |inner| inner.encode_fast(text, false))?
            .get_ids()
            .to_vec())
    }

    /// Returns the tokens of `text` with their positions in it, without special tokens.
    pub fn encode_placed(&self, text: &str) -> Result<Vec<PlacedToken>, Error> {
        if self.characters.is_some() {
            let ids = self.encode(text)?.into_iter();
            let bytes = text.char_indices().map(|(start, letter)| Some(start..start + letter.len_utf8()));
            return Ok(ids.zip(bytes).map(|(id, bytes)| PlacedToken { id, bytes }).collect());
        }
        Ok(PlacedToken::of(&foreign::encode(&self.inner, self.rows, |inner| inner.encode(text, false))?))
    }

    /// Decodes `ids`. Special tokens are left out, and invalid UTF-8 becomes U+FFFD. Joins punctuation to words if the folder sets
    /// `clean_up_tokenization_spaces`.
    pub fn decode(&self, ids: &[u32]) -> Result<String, Error> {
        if let Some(&id) = ids.iter().find(|&&id| self.inner.id_to_token(id).is_none()) {
            let size = self.vocabulary_size;
            return Err(Error::Invalid(format!("no token has the id {id}: ids are below {size}")));
        }
        let decode = || self.inner.decode(ids, true).map_err(foreign::not_encoded);
        let text = foreign::guarded(decode, foreign::not_encoded)?;
        Ok(if self.joins_punctuation { foreign::join_punctuation(&text) } else { text })
    }

    /// Returns the text of a token, which may be a special token.
    pub fn token(&self, id: u32) -> String {
        foreign::token(&self.inner, id)
    }

    /// Returns the id of the special token before a document: the one that the folder's tokenizer adds, otherwise `bos_token`, otherwise
    /// [`end`](Self::end), as for GPT-2 and Qwen.
    pub fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// Returns the BOS token if transformers puts it before each text because of the template of `tokenizer.json`, the tokenizer's class or
    /// `add_bos_token`; `None` for GPT-2, Qwen and others.
    pub fn added_bos(&self) -> Option<u32> {
        self.begin.filter(|_| self.adds_bos)
    }

    /// Returns the id of the special token after a document: `eos_token`, otherwise the one that the folder's tokenizer adds, otherwise
    /// [`END_OF_TEXT`].
    pub fn end(&self) -> Option<u32> {
        self.end
    }

    /// Returns the ids of all tokens that are not special and for which the model has rows.
    pub fn of_text(&self) -> Vec<u32> {
        let added = self.inner.get_added_tokens_decoder();
        let is_of_text = |id: &u32| {
            !added.get(id).is_some_and(|token| token.special)
                && self.rows.is_none_or(|rows| i64::from(*id) < rows)
        };
        let mut ids: Vec<u32> = self.inner.get_vocab(true).into_values().filter(is_of_text).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the highest id plus 1: the minimum number of rows of the embedding table.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    fn to_json(&self) -> Value {
        let mut inner = self.inner.clone();
        inner.with_post_processor(self.post_processor.clone());
        serde_json::to_value(&inner).expect("a tokenizer is plain data")
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
            "clean_up_tokenization_spaces": self.joins_punctuation,
        })
    }

    /// Finds the special tokens and configures `encode` and `decode`. Fails if a named token is missing.
    fn new(mut inner: Tokenizer, stated: &TokenizerSettings) -> Result<Self, String> {
        inner.with_padding(None);
        inner.with_truncation(None).expect("removing truncation cannot fail");
        foreign::set_prefix_space(&mut inner, stated.add_prefix_space);
        match (stated.adds_bos(), stated.name("bos_token")) {
            (Some(true), Some(token)) => {
                let template = begins_with(token, id_of(&inner, token)?)?;
                inner.with_post_processor(Some(template));
            }
            (Some(false), _) => drop(inner.with_post_processor(None::<PostProcessorWrapper>)),
            _ => {}
        }
        let characters = characters::ids(&inner);
        let [first, last] = around(&inner)?;
        let named = |token: Option<&str>| token.map(|token| id_of(&inner, token)).transpose();
        let end = named(stated.name("eos_token"))?.or(last).or_else(|| inner.token_to_id(END_OF_TEXT));
        let begin = first.or(named(stated.name("bos_token"))?).or(end);
        let specials = [begin, end].into_iter().flatten().filter_map(|id| inner.id_to_token(id));
        let specials: Vec<AddedToken> = specials.map(|token| AddedToken::from(token, true)).collect();
        mark_special(&mut inner, specials);
        let post_processor = inner.get_post_processor().cloned();
        inner.with_post_processor(None::<PostProcessorWrapper>);
        inner.set_encode_special_tokens(true); // not part of the JSON
        let vocabulary_size = foreign::size(&inner)?;
        let joins_punctuation = stated.clean_up_tokenization_spaces;
        Ok(Self {
            inner,
            characters,
            begin,
            adds_bos: first.is_some(),
            end,
            post_processor,
            vocabulary_size,
            joins_punctuation,
            rows: None,
        })
    }
}

/// Returns true if the vocabulary files are GPT-2's. Qwen's and others look alike, but their texts are split into words by other rules.
fn is_of_gpt2(folder: &Path, stated: &TokenizerSettings) -> Result<bool, Error> {
    let config: Value = read_if_there(&folder.join("config.json"))?;
    let class = stated.tokenizer_class.as_deref().or(config["model_type"].as_str());
    Ok(class.is_none_or(|class| ["GPT2Tokenizer", "GPT2TokenizerFast", "gpt2"].contains(&class)))
}

fn id_of(inner: &Tokenizer, token: &str) -> Result<u32, String> {
    inner.token_to_id(token).ok_or_else(|| format!("it lacks `{}`", excerpt(token)))
}

/// Returns the template for `add_bos_token` in transformers, which puts this token before texts.
fn begins_with(token: &str, id: u32) -> Result<TemplateProcessing, String> {
    let pieces = |template: &str| -> Vec<String> {
        template.split(' ').map(|piece| piece.replace("begin", token)).collect()
    };
    TemplateProcessing::builder()
        .try_single(pieces("begin:0 $A:0"))
        .and_then(|builder| builder.try_pair(pieces("begin:0 $A:0 begin:1 $B:1")))?
        .special_tokens(vec![(token, id)])
        .build()
        .map_err(|error| excerpt(&error.to_string()))
}

/// Returns the special tokens that the tokenizer adds before and after a text.
fn around(inner: &Tokenizer) -> Result<[Option<u32>; 2], String> {
    let probe = if inner.get_post_processor().is_some() { "a" } else { "" };
    let encoding = inner.encode(probe, true).map_err(|error| excerpt(&error.to_string()))?;
    let tokens = PlacedToken::of(&encoding);
    let special =
        |token: Option<&PlacedToken>| token.filter(|token| token.bytes.is_none()).map(|token| token.id);
    Ok([special(tokens.first()), special(tokens.last())])
}

/// Marks tokens as special, so that decoding leaves them out; tokens that are already special keep their matching rules.
fn mark_special(inner: &mut Tokenizer, tokens: Vec<AddedToken>) {
    let known = inner.get_added_tokens_decoder();
    let is_marked =
        |token: &AddedToken| known.values().any(|known| known.special && known.content == token.content);
    let new: Vec<AddedToken> = tokens.into_iter().filter(|token| !is_marked(token)).collect();
    inner.add_special_tokens(&new);
}

#[cfg(test)]
mod tests;
