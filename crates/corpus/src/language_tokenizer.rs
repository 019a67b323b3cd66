//! Tokens of decoder-only language models: byte-level BPE as in GPT-2 (Radford et al. 2019,
//! <https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf>, Section 2.2)
//! and its successors, BPE with bytes for rare letters as in Llama 2, and single characters as in nanoGPT.
//!
//! Special tokens are not recognised in texts: `<|endoftext|>` in a document is encoded as its letters. Nothing is cut,
//! filled up or put around a text; [`begin`](LanguageTokenizer::begin) and [`end`](LanguageTokenizer::end) say what a
//! model expects there.
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
use crate::foreign_tokenizer::{self as foreign, Stated};
use crate::placed::PlacedToken;
use crate::sentence_tokenizer::check_rows;
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
    /// True if the folder's tokenizer puts `begin` before each text.
    adds_bos: bool,
    end: Option<u32>,
    /// Symbols that `tokenizer.json` puts around texts; for other readers of the file.
    post_processor: Option<PostProcessorWrapper>,
    vocabulary_size: usize,
    /// True if decoding joins punctuation to words.
    joins_punctuation: bool,
    /// Rows of the embedding table, if known.
    rows: Option<i64>,
}

impl LanguageTokenizer {
    /// Reads a Hugging Face folder: `tokenizer.json` or, without one, GPT-2's `vocab.json` and `merges.txt`; and the names
    /// of the special tokens from `tokenizer_config.json` or the older `special_tokens_map.json`, if they are there.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        foreign::guarded(|| Self::read(folder), |reason| wrong(folder, reason))
    }

    fn read(folder: &Path) -> Result<Self, Error> {
        let stated = Stated::read(folder)?;
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

    /// The same for a model with so many rows of embeddings: texts with tokens beyond them are refused.
    pub fn for_rows(self, rows: i64) -> Self {
        Self { rows: Some(rows), ..self }
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
        Ok(Self::new(inner, &Stated::default()).expect("the trainer adds the special token"))
    }

    /// A token for each character that occurs in `texts`, by code point from id 1 on; [`END_OF_TEXT`] has id 0. As in
    /// nanoGPT's `data/shakespeare_char/prepare.py`, which has no token between documents.
    pub fn characters<S: AsRef<str>>(texts: impl Iterator<Item = S>) -> Self {
        let inner = characters::json(texts).parse().expect("a tokeniser of ours");
        Self::new(inner, &Stated::default()).expect("it has the special token")
    }

    /// Writes a `tokenizer.json` to `path`, and a `tokenizer_config.json` beside it with the names of the special tokens,
    /// so that transformers opens the folder too.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let write =
            |path: &Path, json: &Value| fs::write(path, format!("{json:#}\n")).map_err(Error::writing(path));
        write(path, &self.to_json())?;
        write(&path.with_file_name("tokenizer_config.json"), &self.settings())
    }

    /// Ids of the tokens of `text`, without special ones.
    ///
    /// # Errors
    /// If tokens are characters, and one of `text` is not among them, if the model has no row for a token, or if the
    /// tokeniser fails.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        if let Some(known) = &self.characters {
            let id = |character| {
                let id = known.get(&character).copied();
                id.ok_or_else(|| {
                    let (character, known) = (character.escape_debug(), known.len());
                    Error::Invalid(format!(
                        "`{character}` is none of the {known} characters of the tokeniser"
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

    /// The tokens of `text` with their places in it, without special ones.
    pub fn encode_placed(&self, text: &str) -> Result<Vec<PlacedToken>, Error> {
        if self.characters.is_some() {
            let ids = self.encode(text)?.into_iter();
            let bytes = text.char_indices().map(|(start, letter)| Some(start..start + letter.len_utf8()));
            return Ok(ids.zip(bytes).map(|(id, bytes)| PlacedToken { id, bytes }).collect());
        }
        Ok(PlacedToken::of(&foreign::encode(&self.inner, self.rows, |inner| inner.encode(text, false))?))
    }

    /// The text of `ids`. Special tokens are left out, and bytes that are not UTF-8 become U+FFFD. Punctuation is joined to words if
    /// the folder sets `clean_up_tokenization_spaces`.
    pub fn decode(&self, ids: &[u32]) -> Result<String, Error> {
        if let Some(&id) = ids.iter().find(|&&id| self.inner.id_to_token(id).is_none()) {
            let size = self.vocabulary_size;
            return Err(Error::Invalid(format!("no token has the id {id}: ids are below {size}")));
        }
        let decode = || self.inner.decode(ids, true).map_err(foreign::not_encoded);
        let text = foreign::guarded(decode, foreign::not_encoded)?;
        Ok(if self.joins_punctuation { foreign::join_punctuation(&text) } else { text })
    }

    /// The text of one token, of special ones too.
    pub fn token(&self, id: u32) -> String {
        foreign::token(&self.inner, id)
    }

    /// Id of the token before a document: the one that the folder says is put there, or else the token named `bos_token`,
    /// or else [`end`](Self::end), as for GPT-2 and Qwen.
    pub fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// Returns the BOS token if transformers puts it before each text, by the template of `tokenizer.json`, the class of the
    /// tokenizer or `add_bos_token`; `None` for GPT-2, the Qwens and others.
    pub fn added_bos(&self) -> Option<u32> {
        self.begin.filter(|_| self.adds_bos)
    }

    /// Id of the token after a document: the one named `eos_token`, or else the one that the folder says is put there, or
    /// else [`END_OF_TEXT`].
    pub fn end(&self) -> Option<u32> {
        self.end
    }

    /// Ids of the tokens that stand for text, which are not special; of those that the model has rows for.
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

    /// One more than the highest id, so the least number of rows that an embedding table needs.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    fn to_json(&self) -> Value {
        let mut inner = self.inner.clone();
        inner.with_post_processor(self.post_processor.clone());
        serde_json::to_value(&inner).expect("a tokeniser is plain data")
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

    /// Finds the special tokens, and sets what `encode` and `decode` rely on. The error names a token that is missing.
    fn new(mut inner: Tokenizer, stated: &Stated) -> Result<Self, String> {
        inner.with_padding(None);
        inner.with_truncation(None).expect("nothing is checked where nothing is cut");
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

/// Returns true if lists are GPT-2's. Those of Qwen and others look the same, but their texts are cut into words by other rules.
fn is_of_gpt2(folder: &Path, stated: &Stated) -> Result<bool, Error> {
    let config: Value = read_if_there(&folder.join("config.json"))?;
    let class = stated.tokenizer_class.as_deref().or(config["model_type"].as_str());
    Ok(class.is_none_or(|class| ["GPT2Tokenizer", "GPT2TokenizerFast", "gpt2"].contains(&class)))
}

fn id_of(inner: &Tokenizer, token: &str) -> Result<u32, String> {
    inner.token_to_id(token).ok_or_else(|| format!("it lacks `{}`", excerpt(token)))
}

/// A post-processor that puts this token before texts, as transformers makes one for `add_bos_token`.
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

/// The special tokens that are put before and behind a text.
fn around(inner: &Tokenizer) -> Result<[Option<u32>; 2], String> {
    let probe = if inner.get_post_processor().is_some() { "a" } else { "" };
    let encoding = inner.encode(probe, true).map_err(|error| excerpt(&error.to_string()))?;
    let tokens = PlacedToken::of(&encoding);
    let special =
        |token: Option<&PlacedToken>| token.filter(|token| token.bytes.is_none()).map(|token| token.id);
    Ok([special(tokens.first()), special(tokens.last())])
}

/// Lets the library leave these out when it decodes; those that a file calls special already keep their details.
fn mark_special(inner: &mut Tokenizer, tokens: Vec<AddedToken>) {
    let known = inner.get_added_tokens_decoder();
    let is_marked =
        |token: &AddedToken| known.values().any(|known| known.special && known.content == token.content);
    let new: Vec<AddedToken> = tokens.into_iter().filter(|token| !is_marked(token)).collect();
    inner.add_special_tokens(&new);
}

#[cfg(test)]
mod tests;
