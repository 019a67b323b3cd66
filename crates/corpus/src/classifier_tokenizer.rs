//! Tokens of classifiers: WordPiece (Wu et al. 2016, <https://arxiv.org/abs/1609.08144>, Section 4.1) as in Devlin et
//! al. (2019), <https://aclanthology.org/N19-1423>; byte-level BPE as in Liu et al. (2019),
//! <https://arxiv.org/abs/1907.11692>; whatever else a `tokenizer.json` describes, such as the unigrams of Conneau et al.
//! (2020), <https://aclanthology.org/2020.acl-main.747>.
//!
//! A text becomes `[CLS] a [SEP]`, a pair `[CLS] a [SEP] b [SEP]` or `<s> a </s></s> b </s>`. As in transformers with
//! `truncation=True`, what is too long is cut, and special tokens in the text are recognised.
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
use crate::foreign_tokenizer::{self as foreign, Stated};
use crate::placed::PlacedToken;

/// Tokens of one text or a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Ids of the tokens, special ones included.
    pub ids: Vec<u32>,
    /// 0 for tokens of the first text and 1 for those of the second, like transformers' `token_type_ids`; all 0 if the
    /// family does not tell the two apart.
    pub segments: Vec<u32>,
}

/// Cuts the texts of a classifier into tokens.
#[derive(Debug, Clone)]
pub struct ClassifierTokenizer {
    inner: Tokenizer,
    has_segments: bool,
    pad: u32,
    end: Option<u32>,
    /// Symbols around texts, and that of unknown words.
    symbols: Vec<u32>,
    max_length: usize,
    vocabulary_size: usize,
    /// Rows of the embedding table, if known.
    rows: Option<i64>,
}

impl ClassifierTokenizer {
    /// Reads a Hugging Face folder: `tokenizer.json` or, without one, the files of the family that `config.json` names,
    /// which are `vocab.txt`, or `vocab.json` with `merges.txt`. In either case `tokenizer_config.json` has the last word.
    ///
    /// `max_length` counts special tokens. The length and the padding that `tokenizer.json` states are ignored.
    ///
    /// # Errors
    /// If a file is missing or malformed, or `max_length` leaves no room for a word.
    pub fn load(folder: &Path, max_length: usize) -> Result<Self, Error> {
        foreign::guarded(|| Self::read(folder, max_length), |reason| wrong(folder, reason))
    }

    fn read(folder: &Path, max_length: usize) -> Result<Self, Error> {
        let (stated, config) = (Stated::read(folder)?, read_if_there::<Config>(&folder.join("config.json"))?);
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

    /// Learns word pieces from `lines`, in lower case and without accents, until the vocabulary has `vocabulary_size`
    /// entries or there is nothing left to merge. Equal lines give equal tokenisers. `[PAD]` has id 0.
    ///
    /// # Errors
    /// If the vocabulary has no room for the letters, or `max_length` none for a word.
    pub fn train<S: AsRef<str>>(
        lines: impl Iterator<Item = S>,
        vocabulary_size: usize,
        max_length: usize,
    ) -> Result<Self, Error> {
        let settings = Settings::new(Stated::default(), &BERT);
        let words: Vec<String> = lines.flat_map(|line| wordpiece::words(line.as_ref(), &settings)).collect();
        let model = wordpiece::learn(&words, vocabulary_size, &settings)?;
        let inner = settings.complete(of_bert(model, &settings)).expect("the special tokens were put in");
        Self::new(inner, &settings, max_length, Path::new("tokenizer.json"))
    }

    /// Writes a `tokenizer.json` that transformers reads too.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        fs::write(path, self.to_json()).map_err(Error::writing(path))
    }

    /// The same for a model with so many rows of embeddings: texts with tokens beyond them are refused.
    pub fn for_rows(self, rows: i64) -> Self {
        Self { rows: Some(rows), ..self }
    }

    /// Tokens of a text or of a pair. In a pair that is too long, the longer text is cut first.
    pub fn encode(&self, text: &str, pair: Option<&str>) -> Result<Encoded, Error> {
        Ok(self.encode_counting(text, pair)?.0)
    }

    /// The same, with the number of tokens that do not fit.
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

    /// Tokens of a sentence in words with spaces between them, and the place among these of the first piece of each word; `None` of a word
    /// that does not fit, or of which nothing is left. Byte-level tokenisers see a space before the first word too, as in transformers
    /// with `add_prefix_space`, which RoBERTa's needs for words.
    pub fn encode_words(&self, words: &[String]) -> Result<(Encoded, Vec<Option<usize>>), Error> {
        let (mut text, mut starts) = (String::new(), Vec::with_capacity(words.len()));
        for word in words {
            starts.push(text.len()); // with the space, which may be a piece
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

    /// The text of one token, of special ones too.
    pub fn token(&self, id: u32) -> String {
        foreign::token(&self.inner, id)
    }

    /// The tokens of a text with their places in it.
    pub fn encode_placed(&self, text: &str) -> Result<Vec<PlacedToken>, Error> {
        Ok(PlacedToken::of(&foreign::encode(&self.inner, self.rows, |inner| inner.encode(text, true))?))
    }

    /// Returns true if a token of a text stands for more than an unknown word.
    pub fn knows_word_of(&self, text: &Encoded) -> bool {
        text.ids.iter().any(|id| !self.symbols.contains(id))
    }

    /// The symbol behind a text that stands alone, such as `[SEP]`, if there is one.
    pub fn end(&self) -> Option<u32> {
        self.end
    }

    /// One more than the highest id, so the least number of rows that an embedding table needs.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// Id of the padding token.
    pub fn pad(&self) -> u32 {
        self.pad
    }

    /// The largest number of tokens that [`encode`](Self::encode) returns.
    pub fn max_length(&self) -> usize {
        self.max_length
    }

    /// States the length only if texts are cut at their start, since a `tokenizer.json` cannot say that without it.
    fn to_json(&self) -> String {
        let mut inner = self.inner.clone();
        let direction = inner.get_truncation().map(|truncation| truncation.direction);
        if !matches!(direction, Some(TruncationDirection::Left)) {
            inner.with_truncation(None).expect("nothing is checked where nothing is cut");
        }
        inner.to_string(true).expect("a tokeniser is plain data")
    }

    /// Sets what `encode` relies on. `path` is for the message.
    fn new(mut inner: Tokenizer, settings: &Settings, max_length: usize, path: &Path) -> Result<Self, Error> {
        let [pad, unknown, ..] = settings.specials().map(|token| token.content);
        let lacking = || wrong(path, format!("it lacks `{}`", excerpt(&pad)));
        let pad = inner.token_to_id(&pad).ok_or_else(lacking)?;
        let added = inner.get_post_processor().map_or(0, |processor| processor.added_tokens(true));
        if max_length <= added {
            return Err(Error::Invalid(format!(
                "a maximum length of {max_length} is too small: special tokens and one word take {}",
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

/// The steps around BERT's word pieces.
fn of_bert(model: WordPiece, settings: &Settings) -> Tokenizer {
    let mut inner = Tokenizer::new(model);
    inner.with_normalizer(Some(settings.normalizer()));
    inner.with_pre_tokenizer(Some(BertPreTokenizer));
    inner.with_decoder(Some(WordPieceDecoder::default()));
    inner
}

#[cfg(test)]
mod tests;
