//! Tokenisers of Hugging Face folders, read by the crate `tokenizers`, whose panics become errors of one line.
use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokenizers::models::bpe::BPE;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Encoding, ModelWrapper, PreTokenizerWrapper, Tokenizer};
use words::excerpt;

use crate::Error;
use crate::foreign::{MOST_BYTES, parse_json, read_json, read_text, wrong};

/// Vocabularies of SentencePiece, by the names that they have in folders.
const SENTENCE_PIECE: [&str; 3] = ["sentencepiece.bpe.model", "spiece.model", "tokenizer.model"];

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does some work of which a panic becomes an error, and prints nothing.
pub(crate) fn guarded<T>(
    work: impl FnOnce() -> Result<T, Error>,
    fault: impl FnOnce(String) -> Error,
) -> Result<T, Error> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                before(panic);
            }
        }));
    });
    let outer = IS_GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(outer);
    result.unwrap_or_else(|payload| Err(fault(format!("its parser fails: {}", said(payload.as_ref())))))
}

fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    excerpt(text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("for no stated reason"))
}

/// An error of the crate `tokenizers` on a text.
pub(crate) fn not_encoded(error: impl ToString) -> Error {
    Error::Encoding { reason: excerpt(&error.to_string()) }
}

/// Encodes a text for a model with so many rows of embeddings, if that is known.
pub(crate) fn encode(
    inner: &Tokenizer,
    rows: Option<i64>,
    encode: impl FnOnce(&Tokenizer) -> tokenizers::Result<Encoding>,
) -> Result<Encoding, Error> {
    let encoding = guarded(|| encode(inner).map_err(not_encoded), not_encoded)?;
    check_rows(inner, rows, encoding.get_ids())?;
    Ok(encoding)
}

/// Refuses tokens beyond the rows of a model's embeddings.
pub(crate) fn check_rows(inner: &Tokenizer, rows: Option<i64>, ids: &[u32]) -> Result<(), Error> {
    let Some(rows) = rows else { return Ok(()) };
    let beyond = ids.iter().find(|&&id| i64::from(id) >= rows);
    beyond.map_or(Ok(()), |&id| {
        let token = excerpt(&inner.id_to_token(id).unwrap_or_default());
        Err(Error::NoRow { token, id, rows })
    })
}

/// Reads `tokenizer.json`, if there is one.
pub(crate) fn read_whole(folder: &Path) -> Result<Option<Tokenizer>, Error> {
    let path = folder.join("tokenizer.json");
    if !path.exists() {
        return Ok(None);
    }
    let text = read_text(&path, MOST_BYTES)?;
    let fault = |reason| wrong(&path, reason);
    let inner: Tokenizer = guarded(|| parse_json(&text).map_err(fault), fault)?;
    match inner.get_model() {
        ModelWrapper::BPE(BPE { dropout: Some(share), .. }) if *share > 0.0 => {
            Err(fault(format!("its model leaves out merges at random: `dropout` is {share}")))
        }
        _ => Ok(Some(inner)),
    }
}

/// Refuses a folder that lacks one of `files`, which serve instead of `tokenizer.json`.
pub(crate) fn require(folder: &Path, files: &[&str]) -> Result<(), Error> {
    let missing = files.iter().find(|file| !folder.join(file).exists());
    missing.map_or(Ok(()), |file| Err(lacking(folder, Some(file))))
}

/// A folder without `tokenizer.json`, and without the file that could stand in its place.
pub(crate) fn lacking(folder: &Path, file: Option<&str>) -> Error {
    let (shown, pieces) =
        (folder.display(), SENTENCE_PIECE.into_iter().find(|file| folder.join(file).exists()));
    let reason = match (pieces, file) {
        (Some(pieces), _) => format!(
            "it holds `{pieces}`, but no `tokenizer.json`: make one with python -c \"from transformers import \
             AutoTokenizer; AutoTokenizer.from_pretrained('{shown}').save_pretrained('{shown}')\""
        ),
        (None, Some(file)) => format!(
            "it holds neither `tokenizer.json` nor `{file}`: copy the tokeniser's files of the model that this one was \
             trained from"
        ),
        (None, None) => {
            "it holds no `tokenizer.json`, without which no tokeniser of its `model_type` is read".to_owned()
        }
    };
    wrong(folder, reason)
}

/// Reads `vocab.txt`, which has one token per line.
pub(crate) fn read_word_pieces(folder: &Path, unknown: &str) -> Result<WordPiece, Error> {
    let path = folder.join("vocab.txt");
    let text = read_text(&path, MOST_BYTES)?;
    let vocabulary: Map<String, Value> =
        text.lines().zip(0_u32..).map(|(token, id)| (token.to_owned(), id.into())).collect();
    word_pieces(vocabulary, unknown).map_err(|reason| wrong(&path, reason))
}

/// Word pieces as in BERT.
pub(crate) fn word_pieces(vocabulary: Map<String, Value>, unknown: &str) -> Result<WordPiece, String> {
    // Not the builder: it takes a hash table from a crate that we do not depend on. 100 is the limit in transformers.
    let model = json!({
        "type": "WordPiece",
        "unk_token": unknown,
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": vocabulary,
    });
    WordPiece::from_bytes(model.to_string()).map_err(|error| excerpt(&error.to_string()))
}

/// Reads `vocab.json` and `merges.txt`: byte-level BPE as GPT-2 published it.
pub(crate) fn read_byte_pairs(folder: &Path, add_prefix_space: bool) -> Result<Tokenizer, Error> {
    let vocabulary: Map<String, Value> = read_json(&folder.join("vocab.json"))?;
    let path = folder.join("merges.txt");
    let text = read_text(&path, MOST_BYTES)?;
    if !text.ends_with('\n') {
        return Err(wrong(&path, "its last line has no end".to_owned()));
    }
    let merges: Vec<&str> = text.lines().skip(1).collect(); // the first line is skipped in transformers, whatever it says
    let model = json!({"type": "BPE", "vocab": vocabulary, "merges": merges});
    let model: BPE = parse_json(&model.to_string()).map_err(|reason| wrong(&path, reason))?;
    let mut inner = Tokenizer::new(model);
    inner.with_pre_tokenizer(Some(ByteLevel::default().add_prefix_space(add_prefix_space)));
    inner.with_decoder(Some(ByteLevel::default()));
    Ok(inner)
}

/// Gives the setting `add_prefix_space` the last word, as transformers does.
pub(crate) fn set_prefix_space(inner: &mut Tokenizer, stated: bool) {
    if let Some(PreTokenizerWrapper::ByteLevel(byte_level)) = inner.get_pre_tokenizer() {
        let byte_level = byte_level.add_prefix_space(stated);
        inner.with_pre_tokenizer(Some(byte_level));
    }
}

/// Reads a JSON file; the defaults if there is none.
pub(crate) fn read_if_there<T: Default + DeserializeOwned>(path: &Path) -> Result<T, Error> {
    if path.exists() { read_json(path) } else { Ok(T::default()) }
}

/// Reads `tokenizer_config.json` and the older `special_tokens_map.json`. As in transformers, the names in the latter
/// override those in the former, unless that lists the added tokens.
pub(crate) fn read_settings<T: DeserializeOwned>(folder: &Path) -> Result<T, Error> {
    const ADDITIONAL: &str = "additional_special_tokens";
    let path = folder.join("tokenizer_config.json");
    let mut stated: Map<String, Value> = read_if_there(&path)?;
    stated.retain(|_, value| !value.is_null());
    if !stated.contains_key("added_tokens_decoder") {
        let names: Map<String, Value> = read_if_there(&folder.join("special_tokens_map.json"))?;
        for (key, mut value) in names.into_iter().filter(|(_, value)| !value.is_null()) {
            if let (ADDITIONAL, Some(new), Some(Value::Array(all))) =
                (key.as_str(), value.as_array_mut(), stated.get_mut(ADDITIONAL))
            {
                all.append(new);
            } else {
                stated.insert(key, value);
            }
        }
    }
    serde_json::from_value(stated.into()).map_err(|error| wrong(&path, excerpt(&error.to_string())))
}

/// A special token, with or without details of how it is found.
#[derive(serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum Name {
    Plain(String),
    Detailed(Found),
}

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Plain(name) | Self::Detailed(Found { content: name, .. }) => name,
        }
    }
}

/// A token, and how it is found in a text.
#[derive(Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Found {
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    /// If not stated, true for all but special tokens.
    normalized: Option<bool>,
    special: bool,
}

impl Found {
    pub(crate) fn to_token(&self, special: bool) -> AddedToken {
        let special = special || self.special;
        AddedToken::from(self.content.as_str(), special)
            .single_word(self.single_word)
            .lstrip(self.lstrip)
            .rstrip(self.rstrip)
            .normalized(self.normalized.unwrap_or(!special))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_one_line() {
        let fault = |reason| Error::Encoding { reason };
        let error = guarded(|| -> Result<(), Error> { panic!("line 1\nline {}", 2) }, fault).unwrap_err();
        assert_eq!(error.to_string(), r"a text cannot be cut into tokens: its parser fails: line 1\nline 2");
        assert!(guarded(|| Ok(7), fault).is_ok() && !IS_GUARDED.get());
    }

    #[test]
    fn pieces_alone_are_refused_with_the_line_that_converts_them() {
        for file in SENTENCE_PIECE {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(file), "").unwrap();
            let error = require(folder.path(), &["vocab.txt"]).unwrap_err().to_string();
            let shown = folder.path().display();
            assert!(
                error.contains(&format!("it holds `{file}`, but no `tokenizer.json`: make one with python"))
            );
            let end = format!("AutoTokenizer.from_pretrained('{shown}').save_pretrained('{shown}')\"");
            assert!(error.ends_with(&end), "{error}");
        }
    }
}
