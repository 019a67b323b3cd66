//! Tokens of classifiers: WordPiece (Wu et al. 2016, <https://arxiv.org/abs/1609.08144>, Section 4.1) as in Devlin et
//! al. (2019), <https://aclanthology.org/N19-1423>; byte-level BPE as in Liu et al. (2019),
//! <https://arxiv.org/abs/1907.11692>; unigrams as in Conneau et al. (2020),
//! <https://aclanthology.org/2020.acl-main.747>.
//!
//! A text becomes `[CLS] a [SEP]`, a pair `[CLS] a [SEP] b [SEP]` or `<s> a </s></s> b </s>`. As in transformers with
//! `truncation=True`, what is too long is cut, and special tokens in the text are recognised.
mod byte_level;
mod checks;
mod family;
mod json;
mod overrides;
mod settings;
mod unigram;
mod wordpiece;

use std::fs;
use std::path::Path;

use tokenizers::{EncodeInput, PostProcessor, Tokenizer, TruncationDirection, TruncationParams};

use self::family::{BERT, Config, Family};
pub(crate) use self::settings::Name;
use self::settings::{Settings, Stated};
use crate::Error;
use crate::foreign::{MOST_BYTES, read_text};
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
    max_length: usize,
    vocabulary_size: usize,
}

impl ClassifierTokenizer {
    /// Reads a Hugging Face folder: `tokenizer.json` or, without one, the files of the family that `config.json` names,
    /// which are `vocab.txt`, `vocab.json` with `merges.txt`, or `sentencepiece.bpe.model`. In either case
    /// `tokenizer_config.json` has the last word.
    ///
    /// `max_length` counts special tokens. The length and the padding that `tokenizer.json` states are ignored.
    pub fn load(folder: &Path, max_length: usize) -> Result<Self, Error> {
        let (stated, config) = (Stated::read(folder)?, Config::read(&folder.join("config.json"))?);
        let older_list = stated.older_list(folder);
        let loaded = if folder.join("tokenizer.json").exists() {
            Self::from_json(folder, stated, config, max_length)?
        } else {
            Self::from_lists(folder, stated, &config, max_length)?
        };
        older_list.map_or(Ok(()), |path| settings::check_older_list(&path, &loaded.inner))?;
        Ok(loaded)
    }

    fn from_json(folder: &Path, stated: Stated, config: Config, max_length: usize) -> Result<Self, Error> {
        let path = folder.join("tokenizer.json");
        let parsed = json::parse(&read_text(&path, MOST_BYTES)?).map_err(|reason| wrong(&path, reason))?;
        let (mut inner, family) = (parsed.inner, parsed.family);
        let class = stated.tokenizer_class.clone().or_else(|| config.tokenizer_class());
        let mut settings = stated.for_family(family).map_err(|reason| wrong(folder, reason))?;
        settings.truncation_side = settings.truncation_side.or(parsed.truncation_side);
        settings.supplement(&mut inner).map_err(|reason| wrong(&path, reason))?;
        overrides::apply(&mut inner, &settings, class.as_deref());
        Self::new(inner, family, &settings, max_length, &path)
    }

    fn from_lists(folder: &Path, stated: Stated, config: &Config, max_length: usize) -> Result<Self, Error> {
        let path = folder.join("config.json");
        let family = Family::of_config(config).map_err(|reason| wrong(&path, reason))?;
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
    /// entries or there is nothing left to merge. Equal lines give equal tokenisers. `[PAD]` has id 0.
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

    /// Tokens of a text or of a pair. In a pair that is too long, the longer text is cut first.
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

    /// The tokens of a text with their places in it.
    pub fn encode_placed(&self, text: &str) -> Vec<PlacedToken> {
        let encoding = self.inner.encode(text, true).expect("an unknown word is a token too");
        PlacedToken::of(&encoding)
    }

    /// The symbol behind a text that stands alone, such as `[SEP]`, if there is one.
    pub fn end(&self) -> Option<u32> {
        let last = self.encode_placed("a").pop()?;
        last.bytes.is_none().then_some(last.id)
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

    /// Checks what `encode` relies on. `path` is for the message.
    fn new(
        mut inner: Tokenizer,
        family: &Family,
        settings: &Settings,
        max_length: usize,
        path: &Path,
    ) -> Result<Self, Error> {
        let special_ids = checks::check(&inner).map_err(|reason| wrong(path, reason))?;
        let pad = inner.token_to_id(&settings.specials.pad.content).expect("the settings have looked for it");
        let added = inner.get_post_processor().map_or(0, |processor| processor.added_tokens(true));
        if max_length <= added {
            return Err(Error::MaximumLength { asked: max_length, least: added + 1 });
        }
        let direction = settings.truncation_side.unwrap_or_default();
        let truncation = TruncationParams { max_length, direction, ..TruncationParams::default() };
        inner.with_padding(None);
        inner.with_truncation(Some(truncation)).expect("the length was checked");
        inner.with_decoder(Some((family.decoder)()));
        let highest = inner.get_vocab(true).into_values().chain(special_ids).max().unwrap_or(pad);
        let vocabulary_size = highest as usize + 1;
        Ok(Self { inner, has_segments: family.has_segments, pad, max_length, vocabulary_size })
    }
}

fn wrong(path: &Path, reason: String) -> Error {
    Error::ClassifierTokenizer { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests;
