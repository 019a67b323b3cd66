//! Tokenizers of classifiers: WordPiece (Wu et al. 2016, <https://arxiv.org/abs/1609.08144>, Section 4.1) as in Devlin et al. (2019),
//! <https://aclanthology.org/N19-1423>; byte-level BPE as in Liu et al. (2019), <https://arxiv.org/abs/1907.11692>; and everything else
//! that a `tokenizer.json` can describe, such as the unigram model of Conneau et al. (2020), <https://aclanthology.org/2020.acl-main.747>.
//!
//! A text becomes `[CLS] a [SEP]`, a pair `[CLS] a [SEP] b [SEP]` or `<s> a </s></s> b </s>`. As in transformers with `truncation=True`,
//! long texts are truncated, and special tokens in the text are recognised.
mod settings;
mod wordpiece;

use std::fs;
use std::path::Path;

use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    EncodeInput, ModelWrapper, PostProcessor, Tokenizer, TruncationDirection, TruncationParams,
};
use words::excerpt;

use self::settings::{BERT, Config, Family, Settings};
use crate::Error;
use crate::foreign::{read_if_there, read_text, wrong};
use crate::foreign_tokenizer::{self as foreign, TokenizerSettings};
use crate::placed::PlacedToken;

/// Token ids of a text or a pair of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Token ids, including special tokens.
    pub ids: Vec<u32>,
    /// Token type ids: 0 for the first text and 1 for the second; all 0 if the family does not use them.
    pub segments: Vec<u32>,
}

/// Tokenizer of a classifier.
#[derive(Debug, Clone)]
pub struct ClassifierTokenizer {
    inner: Tokenizer,
    has_segments: bool,
    pad: u32,
    end: Option<u32>,
    /// The special tokens around texts, and the unknown token.
    symbols: Vec<u32>,
    max_length: usize,
    vocabulary_size: usize,
    /// Rows of the embedding table, if known.
    rows: Option<i64>,
}

impl ClassifierTokenizer {
    /// Reads a Hugging Face folder: `tokenizer.json` or, without one, the vocabulary of the family that `config.json` names (`vocab.txt`,
    /// or `vocab.json` and `merges.txt`). Settings in `tokenizer_config.json` override both. `max_length` counts special tokens; the length
    /// and the padding in `tokenizer.json` are ignored.
    ///
    /// # Errors
    /// If a file is missing or malformed, or `max_length` leaves no room for a word.
    pub fn load(folder: &Path, max_length: usize) -> Result<Self, Error> {
        foreign::guarded(|| Self::read(folder, max_length), |reason| wrong(folder, reason))
    }

    fn read(folder: &Path, max_length: usize) -> Result<Self, Error> {
        let stated = TokenizerSettings::read(folder)?;
        let config = read_if_there::<Config>(&folder.join("config.json"))?;
        let (inner, settings) = match foreign::read_whole(folder)? {
            Some(mut inner) => {
                let settings = Settings::new(stated, Family::of_model(inner.get_model()));
                settings.supplement(&config, &mut inner).map_err(|reason| wrong(folder, reason))?;
                (inner, settings)
            }
            None => {
                let family = Family::of_config(&config);
                foreign::require(folder, &[foreign::WHOLE, family.map_or(&[], |family| family.files)])?;
                let settings = Settings::new(stated, family.unwrap_or(&BERT));
                let inner = match family {
                    Some(family) if !std::ptr::eq(family, &BERT) => {
                        foreign::read_byte_pairs(folder, settings.stated.add_prefix_space)?
                    }
                    _ => of_bert(read_word_pieces(folder, &settings)?, &settings),
                };
                (settings.complete(inner).map_err(|reason| wrong(folder, reason))?, settings)
            }
        };
        settings.warn_of_case(&inner, folder);
        Self::new(inner, &settings, max_length, folder)
    }

    /// Trains WordPiece on `lines`, in lower case and without accents, until the vocabulary has `vocabulary_size` entries or no merges are
    /// left. Equal lines give equal tokenizers. `[PAD]` has id 0.
    ///
    /// # Errors
    /// If the vocabulary has no room for special tokens and letters, or `max_length` has no room for a word.
    pub fn train<S: AsRef<str>>(
        lines: impl Iterator<Item = S>,
        vocabulary_size: usize,
        max_length: usize,
    ) -> Result<Self, Error> {
        let settings = Settings::new(TokenizerSettings::default(), &BERT);
        let words: Vec<String> = lines.flat_map(|line| wordpiece::words(line.as_ref(), &settings)).collect();
        let model = wordpiece::learn(&words, vocabulary_size, &settings)?;
        let inner = settings.complete(of_bert(model, &settings)).expect("the special tokens were put in");
        Self::new(inner, &settings, max_length, Path::new("tokenizer.json"))
    }

    /// Writes a `tokenizer.json` that transformers can read.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        fs::write(path, self.to_json()).map_err(Error::writing(path))
    }

    /// Returns the tokenizer of a model with `rows` rows of embeddings; it refuses texts with token ids beyond them.
    pub fn for_rows(self, rows: i64) -> Self {
        Self { rows: Some(rows), ..self }
    }

    /// Encodes a text or a pair. In a pair that is too long, the longer text is truncated first.
    pub fn encode(&self, text: &str, pair: Option<&str>) -> Result<Encoded, Error> {
        Ok(self.encode_counting(text, pair)?.0)
    }

    /// Like [`encode`](Self::encode), but also returns the number of tokens that truncation removed.
    pub fn encode_counting(&self, text: &str, pair: Option<&str>) -> Result<(Encoded, usize), Error> {
        let input = match pair {
            Some(pair) => EncodeInput::Dual(text.into(), pair.into()),
            None => EncodeInput::Single(text.into()),
        };
        let encoding = foreign::encode(&self.inner, self.rows, |inner| inner.encode_fast(input, true))?;
        let ids = encoding.get_ids().to_vec();
        let segments = if self.has_segments { encoding.get_type_ids().to_vec() } else { vec![0; ids.len()] };
        let marks = encoding.get_overflowing().iter().flat_map(|part| part.get_special_tokens_mask());
        let left_out = marks.filter(|&&mark| mark == 0).count();
        Ok((Encoded { ids, segments }, left_out))
    }

    /// Encodes a sentence given as words. Also returns the index of the first token of each word; `None` if the word was truncated or
    /// normalises to nothing. With BPE the first word is preceded by a space too, as in transformers with `add_prefix_space`, which RoBERTa
    /// needs for words.
    pub fn encode_words(&self, words: &[String]) -> Result<(Encoded, Vec<Option<usize>>), Error> {
        let (mut text, mut starts) = (String::new(), Vec::with_capacity(words.len()));
        for word in words {
            starts.push(text.len()); // before the space, which may be a token
            if !text.is_empty() || matches!(self.inner.get_model(), ModelWrapper::BPE(_)) {
                text.push(' ');
            }
            text.push_str(word);
        }
        let tokens = self.encode_placed(&text)?;
        let mut first = vec![None; words.len()];
        for (place, token) in tokens.iter().enumerate().rev() {
            let Some(bytes) = &token.bytes else { continue };
            let up_to = starts.partition_point(|&start| start <= bytes.start);
            if let Some(first) = up_to.checked_sub(1).and_then(|word| first.get_mut(word)) {
                *first = Some(place);
            }
        }
        let ids: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        let segments = vec![0; ids.len()];
        Ok((Encoded { ids, segments }, first))
    }

    /// Returns the text of a token, which may be a special token.
    pub fn token(&self, id: u32) -> String {
        foreign::token(&self.inner, id)
    }

    /// Encodes a text; returns the tokens with their positions in it.
    pub fn encode_placed(&self, text: &str) -> Result<Vec<PlacedToken>, Error> {
        Ok(PlacedToken::of(&foreign::encode(&self.inner, self.rows, |inner| inner.encode(text, true))?))
    }

    /// Returns true if a text has a token other than special and unknown tokens.
    pub fn knows_word_of(&self, text: &Encoded) -> bool {
        text.ids.iter().any(|id| !self.symbols.contains(id))
    }

    /// Returns the special token after a single text, such as `[SEP]`; `None` if the template adds none.
    pub fn end(&self) -> Option<u32> {
        self.end
    }

    /// Returns the highest id plus 1: the minimum number of rows of the embedding table.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// Returns the id of the padding token.
    pub fn pad(&self) -> u32 {
        self.pad
    }

    /// Returns the maximum number of tokens of an encoded text or pair.
    pub fn max_length(&self) -> usize {
        self.max_length
    }

    /// Keeps the truncation length only for truncation on the left, since a `tokenizer.json` cannot set the side without a length.
    fn to_json(&self) -> String {
        let mut inner = self.inner.clone();
        let direction = inner.get_truncation().map(|truncation| truncation.direction);
        if !matches!(direction, Some(TruncationDirection::Left)) {
            inner.with_truncation(None).expect("removing truncation cannot fail");
        }
        inner.to_string(true).expect("a tokenizer is plain data")
    }

    /// Configures truncation and padding, and finds the special tokens. `path` is for messages.
    fn new(mut inner: Tokenizer, settings: &Settings, max_length: usize, path: &Path) -> Result<Self, Error> {
        let [pad, unknown, ..] = settings.specials().map(|token| token.content);
        let lacking = || wrong(path, format!("it lacks `{}`", excerpt(&pad)));
        let pad = inner.token_to_id(&pad).ok_or_else(lacking)?;
        let added = inner.get_post_processor().map_or(0, |processor| processor.added_tokens(true));
        if max_length <= added {
            return Err(Error::Invalid(format!(
                "a maximum length of {max_length} is too small: special tokens and one word take {} tokens",
                added + 1
            )));
        }
        let direction = match settings.stated.truncation_side.as_deref() {
            Some("left") => TruncationDirection::Left,
            Some(_) => TruncationDirection::Right,
            None => inner.get_truncation().map(|truncation| truncation.direction).unwrap_or_default(),
        };
        let truncation = TruncationParams { max_length, direction, ..TruncationParams::default() };
        inner.with_padding(None);
        inner.with_truncation(Some(truncation)).expect("the length was checked");
        let has_segments = matches!(inner.get_model(), ModelWrapper::WordPiece(_));
        let vocabulary_size = foreign::size(&inner).map_err(|reason| wrong(path, reason))?;
        let symbols = inner.token_to_id(&unknown).into_iter().collect();
        let mut new =
            Self { inner, has_segments, pad, end: None, symbols, max_length, vocabulary_size, rows: None };
        new.encode("a", Some("a"))?; // a faulty template fails here, not in the middle of the data
        new.end = new.encode_placed("a")?.pop().and_then(|last| last.bytes.is_none().then_some(last.id));
        new.symbols.extend(new.encode("", Some(""))?.ids);
        Ok(new)
    }
}

/// Reads `vocab.txt`, which has one token per line.
fn read_word_pieces(folder: &Path, settings: &Settings) -> Result<WordPiece, Error> {
    let path = folder.join("vocab.txt");
    read_text(&path)?; // the library would open a pipe, and name no file
    let [_, unknown, ..] = settings.specials();
    let model = WordPiece::from_file(&path.to_string_lossy()).unk_token(unknown.content).build();
    model.map_err(|error| wrong(&path, excerpt(&error.to_string())))
}

/// Adds BERT's normaliser, pre-tokenizer and decoder to a WordPiece model.
fn of_bert(model: WordPiece, settings: &Settings) -> Tokenizer {
    let mut inner = Tokenizer::new(model);
    inner.with_normalizer(Some(settings.normalizer()));
    inner.with_pre_tokenizer(Some(BertPreTokenizer));
    inner.with_decoder(Some(WordPieceDecoder::default()));
    inner
}

#[cfg(test)]
mod tests;
