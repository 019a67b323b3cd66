//! Tokens of BERT-like classifiers: WordPiece (Wu et al. 2016, <https://arxiv.org/abs/1609.08144>, Section 4.1), as
//! Devlin et al. (2019), <https://aclanthology.org/N19-1423>, use it.
//!
//! One text is `[CLS] a [SEP]`, a pair is `[CLS] a [SEP] b [SEP]`; what is too long is cut as transformers does with
//! `truncation=True`. Special tokens in the text are recognised, as there.
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use serde_json::Value;
use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::wordpiece::{WordPiece, WordPieceTrainer};
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{
    AddedToken, EncodeInput, ModelWrapper, NormalizedString, Normalizer, OffsetReferential, OffsetType,
    PostProcessor, PreTokenizedString, PreTokenizer, Tokenizer, Trainer, TruncationParams,
};

use crate::Error;
use crate::foreign::shown;

/// Tokens of one text or a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Ids of the tokens, special ones included.
    pub ids: Vec<u32>,
    /// 0 at tokens of the first text, 1 at those of the second; transformers' `token_type_ids`.
    pub segments: Vec<u32>,
}

/// Tokens of a BERT-like classifier.
#[derive(Debug, Clone)]
pub struct ClassifierTokenizer {
    inner: Tokenizer,
    pad: u32,
    max_length: usize,
    vocabulary_size: usize,
}

/// Names of the special tokens, and what is done to the text: `tokenizer_config.json`.
#[derive(serde::Deserialize)]
#[serde(default)]
struct Settings {
    do_lower_case: bool,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: bool,
    unk_token: Name,
    sep_token: Name,
    pad_token: Name,
    cls_token: Name,
    mask_token: Name,
}

impl Default for Settings {
    /// Those of transformers' `BertTokenizer`.
    fn default() -> Self {
        let name = |name: &str| Name::Plain(name.to_owned());
        Self {
            do_lower_case: true,
            strip_accents: None,
            tokenize_chinese_chars: true,
            unk_token: name("[UNK]"),
            sep_token: name("[SEP]"),
            pad_token: name("[PAD]"),
            cls_token: name("[CLS]"),
            mask_token: name("[MASK]"),
        }
    }
}

/// A special token, with or without details of how it is found.
#[derive(serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum Name {
    Plain(String),
    Detailed { content: String },
}

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Plain(name) | Self::Detailed { content: name } => name,
        }
    }
}

impl ClassifierTokenizer {
    /// Reads a Hugging Face folder: `tokenizer.json`, else `vocab.txt` with `tokenizer_config.json`.
    ///
    /// `max_length` counts special tokens; what `tokenizer.json` says about truncation and padding is ignored.
    pub fn load(folder: &Path, max_length: usize) -> Result<Self, Error> {
        let settings = Settings::read(&folder.join("tokenizer_config.json"))?;
        let json = folder.join("tokenizer.json");
        if json.exists() {
            let inner = parse(&read(&json)?).map_err(|reason| wrong(&json, reason))?;
            return Self::new(inner, &settings, max_length, &json);
        }
        let list = folder.join("vocab.txt");
        if list.exists() {
            let text = read(&list)?;
            let numbered = text.lines().zip(0..).map(|(token, id)| (token.to_owned(), id));
            let inner = bert(numbered.collect(), &settings).map_err(|reason| wrong(&list, reason))?;
            return Self::new(inner, &settings, max_length, &list);
        }
        Err(wrong(folder, "it holds neither `tokenizer.json` nor `vocab.txt`".to_owned()))
    }

    /// Learns word pieces from `lines`, in lower case and without accents, until the vocabulary has `vocabulary_size`
    /// entries or nothing is left to merge. Equal lines give equal tokenisers. `[PAD]` has id 0.
    pub fn train<S: AsRef<str>>(
        lines: impl Iterator<Item = S>,
        vocabulary_size: usize,
        max_length: usize,
    ) -> Result<Self, Error> {
        let settings = Settings::default();
        let words: Vec<String> = lines.flat_map(|line| words(line.as_ref(), &settings)).collect();
        let vocabulary = learn_pieces(&words, vocabulary_size, &settings)?;
        let inner = bert(vocabulary, &settings).expect("the special tokens were put in");
        Self::new(inner, &settings, max_length, Path::new("tokenizer.json"))
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
        Encoded { ids: encoding.get_ids().to_vec(), segments: encoding.get_type_ids().to_vec() }
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
    fn new(mut inner: Tokenizer, settings: &Settings, max_length: usize, path: &Path) -> Result<Self, Error> {
        check_model(inner.get_model()).map_err(|reason| wrong(path, reason))?;
        let special_ids = check_template(&inner).map_err(|reason| wrong(path, reason))?;
        let pad = settings.pad_token.as_str();
        let pad = inner.token_to_id(pad).ok_or_else(|| wrong(path, format!("it lacks `{}`", shown(pad))))?;
        let added = inner.get_post_processor().map_or(0, |processor| processor.added_tokens(true));
        if max_length <= added {
            return Err(Error::MaximumLength { asked: max_length, least: added + 1 });
        }
        let truncation = TruncationParams { max_length, ..TruncationParams::default() };
        inner.with_padding(None);
        inner.with_truncation(Some(truncation)).expect("the length was checked");
        let highest = inner.get_vocab(true).into_values().chain(special_ids).max().unwrap_or(pad);
        Ok(Self { inner, pad, max_length, vocabulary_size: highest as usize + 1 })
    }
}

impl Settings {
    /// The defaults where there is no file.
    fn read(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            return Ok(Self::default());
        }
        serde_json::from_str(&read(path)?).map_err(|error| wrong(path, shown(&error.to_string())))
    }

    /// In the order in which [`ClassifierTokenizer::train`] numbers them.
    fn specials(&self) -> [&str; 5] {
        [&self.pad_token, &self.unk_token, &self.cls_token, &self.sep_token, &self.mask_token]
            .map(Name::as_str)
    }

    fn normalizer(&self) -> BertNormalizer {
        BertNormalizer::new(true, self.tokenize_chinese_chars, self.strip_accents, self.do_lower_case)
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn wrong(path: &Path, reason: String) -> Error {
    Error::WordPiece { path: path.to_owned(), reason }
}

/// Reads a `tokenizer.json` but for its decoder, on which the library panics where it is malformed, and for what it says
/// about cutting and filling up texts.
fn parse(text: &str) -> Result<Tokenizer, String> {
    let mut json: Value = serde_json::from_str(text).map_err(|error| shown(&error.to_string()))?;
    if json["model"]["type"].as_str().is_some_and(|kind| kind != "WordPiece") {
        return Err("its model is of another type".into());
    }
    check_part("normaliser", &json["normalizer"], &NORMALIZERS)?;
    check_part("pre-tokeniser", &json["pre_tokenizer"], &PRE_TOKENIZERS)?;
    for part in ["decoder", "truncation", "padding"] {
        if let Some(part) = json.get_mut(part) {
            part.take();
        }
    }
    let mut inner: Tokenizer = json.to_string().parse().map_err(|error| shown(&format!("{error}")))?;
    inner.with_decoder(Some(WordPieceDecoder::default()));
    Ok(inner)
}

/// What BERT-like models do to a text before it is cut: none of it can fail, whatever the text. Others can: regular
/// expressions in the middle of a text, a table of SentencePiece's where it is malformed.
const NORMALIZERS: [&str; 8] =
    ["BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Sequence", "StripAccents"];
const PRE_TOKENIZERS: [&str; 6] =
    ["BertPreTokenizer", "Digits", "Punctuation", "Sequence", "Whitespace", "WhitespaceSplit"];

/// Refuses a part, or a part of a sequence, whose type is not `allowed`.
fn check_part(role: &str, part: &Value, allowed: &[&str]) -> Result<(), String> {
    if part.is_null() {
        return Ok(());
    }
    let kind = part["type"].as_str().unwrap_or("without a type");
    if !allowed.contains(&kind) {
        return Err(format!(
            "its {role} `{}` is not supported: allowed are {}",
            shown(kind),
            allowed.join(", ")
        ));
    }
    let members = ["normalizers", "pretokenizers"].iter().filter_map(|list| part[list].as_array()).flatten();
    members.into_iter().try_for_each(|member| check_part(role, member, allowed))
}

/// The parts of a BERT tokeniser around a vocabulary; the error says what that lacks.
fn bert(vocabulary: HashMap<String, u32>, settings: &Settings) -> Result<Tokenizer, String> {
    let id =
        |token: &str| vocabulary.get(token).copied().ok_or_else(|| format!("it lacks `{}`", shown(token)));
    for token in settings.specials() {
        id(token)?;
    }
    let (begin, separator) = (settings.cls_token.as_str(), settings.sep_token.as_str());
    let template = TemplateProcessing::builder()
        .try_single(vec![begin.to_owned(), "$A".to_owned(), separator.to_owned()])
        .and_then(|builder| {
            let second = [format!("{begin}:0"), "$A:0".to_owned(), format!("{separator}:0")];
            builder.try_pair([&second[..], &["$B:1".to_owned(), format!("{separator}:1")]].concat())
        })
        .map_err(|error| error.to_string())?
        .special_tokens(vec![(begin, id(begin)?), (separator, id(separator)?)])
        .build()
        .map_err(|error| error.to_string())?;
    // The builder takes a hash table of a crate that we do not depend on; 100 is the limit of transformers.
    let model = serde_json::json!({
        "type": "WordPiece",
        "unk_token": settings.unk_token.as_str(),
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": vocabulary,
    });
    let model = WordPiece::from_bytes(model.to_string()).map_err(|error| error.to_string())?;
    let mut inner = Tokenizer::new(model);
    inner.with_normalizer(Some(settings.normalizer()));
    inner.with_pre_tokenizer(Some(BertPreTokenizer));
    inner.with_post_processor(Some(template));
    inner.with_decoder(Some(WordPieceDecoder::default()));
    inner.add_special_tokens(&settings.specials().map(|token| AddedToken::from(token, true)));
    Ok(inner)
}

/// The words of a line, as they are before they are cut into pieces.
fn words(line: &str, settings: &Settings) -> Vec<String> {
    let mut normalized = NormalizedString::from(line);
    settings.normalizer().normalize(&mut normalized).expect("any text can be normalised");
    let mut split = PreTokenizedString::from(normalized);
    BertPreTokenizer.pre_tokenize(&mut split).expect("any text can be split");
    let splits = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(word, ..)| word.to_owned()).collect()
}

/// Special tokens, the letters that begin a word or go on, then the most frequent merges.
///
/// Left alone, the library numbers the letters that go on in the order of a hash table, which differs from run to run,
/// and ties between merges go by number. So all letters are handed to it as if they were special.
fn learn_pieces(
    words: &[String],
    vocabulary_size: usize,
    settings: &Settings,
) -> Result<HashMap<String, u32>, Error> {
    let letters: BTreeSet<String> = words.iter().flat_map(|word| word.chars()).map(String::from).collect();
    let inner: BTreeSet<String> =
        words.iter().flat_map(|word| word.chars().skip(1)).map(|letter| format!("##{letter}")).collect();
    let fixed: Vec<String> =
        settings.specials().map(str::to_owned).into_iter().chain(letters).chain(inner).collect();
    if vocabulary_size < fixed.len() {
        return Err(Error::VocabularySize { asked: vocabulary_size, least: fixed.len() });
    }
    let mut trainer = WordPieceTrainer::builder()
        .vocab_size(vocabulary_size)
        .show_progress(false)
        .special_tokens(fixed.iter().map(|token| AddedToken::from(token.as_str(), true)).collect())
        .build();
    let mut model = WordPiece::default();
    trainer
        .feed(words.iter(), |word| Ok(vec![word.to_owned()]))
        .and_then(|()| trainer.train(&mut model))
        .expect("counting strings in memory cannot fail");
    Ok(tokenizers::Model::get_vocab(&model))
}

/// Any word must have a token.
fn check_model(model: &ModelWrapper) -> Result<(), String> {
    let ModelWrapper::WordPiece(model) = model else { return Err("its model is of another type".into()) };
    match tokenizers::Model::token_to_id(model, &model.unk_token) {
        Some(_) => Ok(()),
        None => Err(format!("its vocabulary lacks `{}`", shown(&model.unk_token))),
    }
}

/// Where special tokens go. Returns their ids; the library would panic on a template that names others.
fn check_template(inner: &Tokenizer) -> Result<Vec<u32>, String> {
    use tokenizers::PostProcessorWrapper as Processor;
    #[derive(serde::Deserialize)]
    enum Piece {
        Sequence { id: String },
        SpecialToken { id: String },
    }
    #[derive(serde::Deserialize)]
    struct Special {
        ids: Vec<u32>,
    }
    #[derive(serde::Deserialize)]
    struct Template {
        single: Vec<Piece>,
        pair: Vec<Piece>,
        special_tokens: HashMap<String, Special>,
    }
    let template = match inner.get_post_processor() {
        Some(Processor::Bert(processor)) => {
            return Ok(vec![processor.get_cls_copy().1, processor.get_sep_copy().1]);
        }
        Some(Processor::Template(template)) => template,
        _ => return Err("its post-processor does not put special tokens around texts and pairs".into()),
    };
    let template = serde_json::to_value(template).and_then(serde_json::from_value::<Template>);
    let template = template.map_err(|error| error.to_string())?;
    let begins_specially = |pieces: &[Piece]| matches!(pieces.first(), Some(Piece::SpecialToken { .. }));
    let takes_second = |piece: &Piece| matches!(piece, Piece::Sequence { id } if id == "B");
    if !begins_specially(&template.single) || template.single.iter().any(takes_second) {
        return Err("its template for one text must be a special token, then `$A`".into());
    }
    if !begins_specially(&template.pair) || !template.pair.iter().any(takes_second) {
        return Err("its template for pairs must be a special token, then `$A` and `$B`".into());
    }
    let unknown = template.single.iter().chain(&template.pair).find_map(|piece| match piece {
        Piece::SpecialToken { id } if !template.special_tokens.contains_key(id) => Some(id),
        _ => None,
    });
    match unknown {
        Some(token) => Err(format!("its template names `{}`, but does not number it", shown(token))),
        None => Ok(template.special_tokens.into_values().flat_map(|special| special.ids).collect()),
    }
}

#[cfg(test)]
mod tests;
