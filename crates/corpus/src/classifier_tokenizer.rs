//! Tokens of classifiers: WordPiece (Wu et al. 2016, <https://arxiv.org/abs/1609.08144>, Section 4.1) as Devlin et al.
//! (2019), <https://aclanthology.org/N19-1423>, use it, byte-level BPE as Liu et al. (2019),
//! <https://arxiv.org/abs/1907.11692>, and unigrams as Conneau et al. (2020), <https://aclanthology.org/2020.acl-main.747>.
//!
//! One text is `[CLS] a [SEP]`, a pair is `[CLS] a [SEP] b [SEP]`, or `<s> a </s></s> b </s>`; what is too long is cut as
//! transformers does with `truncation=True`. Special tokens in the text are recognised, as there.
mod byte_level;
mod checks;
mod family;
mod json;
mod settings;
mod unigram;
mod wordpiece;

use std::fs;
use std::path::Path;

use tokenizers::{EncodeInput, PostProcessor, PreTokenizerWrapper, Tokenizer, TruncationParams};

use self::family::{BERT, Family};
pub(crate) use self::settings::Name;
use self::settings::{Settings, Stated};
use crate::Error;
use crate::foreign::shown;

/// Tokens of one text or a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Ids of the tokens, special ones included.
    pub ids: Vec<u32>,
    /// 0 at tokens of the first text, 1 at those of the second, as transformers' `token_type_ids`; 0 everywhere where
    /// the family does not tell them apart.
    pub segments: Vec<u32>,
}

/// Tokens of a classifier.
#[derive(Debug, Clone)]
pub struct ClassifierTokenizer {
    inner: Tokenizer,
    has_segments: bool,
    pad: u32,
    max_length: usize,
    vocabulary_size: usize,
}

impl ClassifierTokenizer {
    /// Reads a Hugging Face folder: `tokenizer.json`, else the files of the family that `config.json` names, which are
    /// `vocab.txt`, `vocab.json` with `merges.txt`, or `sentencepiece.bpe.model`; `tokenizer_config.json` for either.
    ///
    /// `max_length` counts special tokens; what `tokenizer.json` says about truncation and padding is ignored.
    pub fn load(folder: &Path, max_length: usize) -> Result<Self, Error> {
        let stated = Stated::read(folder)?;
        let json = folder.join("tokenizer.json");
        if json.exists() {
            let (mut inner, family) = json::parse(&read(&json)?).map_err(|reason| wrong(&json, reason))?;
            let settings = stated.for_family(family).map_err(|reason| wrong(folder, reason))?;
            put_space_before(&mut inner, settings.add_prefix_space);
            return Self::new(inner, family, &settings, max_length, &json);
        }
        let family = Family::of_config(&folder.join("config.json"))?;
        if let Some(missing) = family.files.iter().find(|file| !folder.join(file).exists()) {
            return Err(wrong(folder, format!("it holds neither `tokenizer.json` nor `{missing}`")));
        }
        let settings = stated.for_family(family).map_err(|reason| wrong(folder, reason))?;
        let inner = (family.read)(folder, &settings)?;
        let list = folder.join(family.files[0]);
        let inner = settings.complete(inner).map_err(|reason| wrong(&list, reason))?;
        Self::new(inner, family, &settings, max_length, &list)
    }

    /// Learns word pieces from `lines`, in lower case and without accents, until the vocabulary has `vocabulary_size`
    /// entries or nothing is left to merge. Equal lines give equal tokenisers. `[PAD]` has id 0.
    pub fn train<S: AsRef<str>>(
        lines: impl Iterator<Item = S>,
        vocabulary_size: usize,
        max_length: usize,
    ) -> Result<Self, Error> {
        let settings = Stated::default().for_family(&BERT).expect("nothing is stated");
        let words: Vec<String> = lines.flat_map(|line| wordpiece::words(line.as_ref(), &settings)).collect();
        let vocabulary = wordpiece::learn_pieces(&words, vocabulary_size, &settings)?;
        let inner = wordpiece::tokenizer(&vocabulary, &settings).and_then(|inner| settings.complete(inner));
        let inner = inner.expect("the special tokens were put in");
        Self::new(inner, &BERT, &settings, max_length, Path::new("tokenizer.json"))
    }

    /// Writes a `tokenizer.json` that transformers reads too.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        fs::write(path, self.to_json()).map_err(|source| Error::Write { path: path.to_owned(), source })
    }

    /// Tokens of a text, or of a pair, of which the longer one is cut first.
    pub fn encode(&self, text: &str, pair: Option<&str>) -> Encoded {
        let input = match pair {
            Some(pair) => EncodeInput::Dual(text.into(), pair.into()),
            None => EncodeInput::Single(text.into()),
        };
        let encoding = self.inner.encode_fast(input, true).expect("an unknown word is a token too");
        let ids = encoding.get_ids().to_vec();
        let segments = if self.has_segments { encoding.get_type_ids().to_vec() } else { vec![0; ids.len()] };
        Encoded { ids, segments }
    }

    /// One more than the highest id: what an embedding table must have room for.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// Id of the token that fills up a batch.
    pub fn pad(&self) -> u32 {
        self.pad
    }

    /// The most tokens that [`encode`](Self::encode) returns.
    pub fn max_length(&self) -> usize {
        self.max_length
    }

    fn to_json(&self) -> String {
        let mut inner = self.inner.clone();
        inner.with_truncation(None).expect("nothing is checked where nothing is cut");
        inner.to_string(true).expect("a tokeniser is plain data")
    }

    /// Checks what `encode` relies on. `path` is for the message.
    fn new(
        mut inner: Tokenizer,
        family: &Family,
        settings: &Settings,
        max_length: usize,
        path: &Path,
    ) -> Result<Self, Error> {
        let special_ids = checks::check(&inner).map_err(|reason| wrong(path, reason))?;
        let pad = &settings.specials.pad.content;
        let pad = inner.token_to_id(pad).ok_or_else(|| wrong(path, format!("it lacks `{}`", shown(pad))))?;
        let added = inner.get_post_processor().map_or(0, |processor| processor.added_tokens(true));
        if max_length <= added {
            return Err(Error::MaximumLength { asked: max_length, least: added + 1 });
        }
        let truncation = TruncationParams { max_length, ..TruncationParams::default() };
        inner.with_padding(None);
        inner.with_truncation(Some(truncation)).expect("the length was checked");
        inner.with_decoder(Some((family.decoder)()));
        let highest = inner.get_vocab(true).into_values().chain(special_ids).max().unwrap_or(pad);
        let vocabulary_size = highest as usize + 1;
        Ok(Self { inner, has_segments: family.has_segments, pad, max_length, vocabulary_size })
    }
}

/// transformers, too, lets `tokenizer_config.json` decide on a byte-level tokeniser's space before the text.
fn put_space_before(inner: &mut Tokenizer, add_prefix_space: bool) {
    if let Some(PreTokenizerWrapper::ByteLevel(byte_level)) = inner.get_pre_tokenizer() {
        let byte_level = byte_level.add_prefix_space(add_prefix_space);
        inner.with_pre_tokenizer(Some(byte_level));
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn wrong(path: &Path, reason: String) -> Error {
    Error::ClassifierTokenizer { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests;
