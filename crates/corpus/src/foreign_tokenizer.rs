//! Reads tokenizers of Hugging Face folders with the crate `tokenizers`, whose panics become one-line errors.
use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use serde_json::{Map, Value};
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Encoding, ModelWrapper, PreTokenizerWrapper, Tokenizer};
use words::excerpt;

use crate::Error;
use crate::foreign::{parse_json, read_if_there, read_text, wrong};
use crate::sentence_tokenizer::check_rows;

/// Vocabulary files that transformers converts to a `tokenizer.json`.
const CONVERTIBLE: [&str; 6] =
    ["sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model", "vocab.json", "vocab.txt"];

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; a panic becomes an error and prints nothing.
pub fn guarded<T, E>(work: impl FnOnce() -> Result<T, E>, fault: impl FnOnce(String) -> E) -> Result<T, E> {
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

pub(crate) fn not_encoded(error: impl ToString) -> Error {
    Error::Invalid(format!("a text cannot be tokenized: {}", excerpt(&error.to_string())))
}

/// Encodes a text and checks that the model's embedding table has a row for each token, if the number of rows is known.
pub(crate) fn encode(
    inner: &Tokenizer,
    rows: Option<i64>,
    encode: impl FnOnce(&Tokenizer) -> tokenizers::Result<Encoding>,
) -> Result<Encoding, Error> {
    let encoding = guarded(|| encode(inner).map_err(not_encoded), not_encoded)?;
    check_rows(encoding.get_ids(), rows, |id| inner.id_to_token(id))?;
    Ok(encoding)
}

/// Returns the text of a token, which may be a special token; invalid UTF-8 becomes U+FFFD.
pub(crate) fn token(inner: &Tokenizer, id: u32) -> String {
    let decode = || inner.decode(&[id], false).map_err(not_encoded);
    let text = guarded(decode, not_encoded).unwrap_or_default();
    if text.is_empty() { inner.id_to_token(id).unwrap_or_default() } else { text }
}

/// Joins punctuation to words after decoding, as `clean_up_tokenization_spaces` does. Replacements and their order follow
/// `clean_up_tokenization`: <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/tokenization_utils_base.py#L3972>.
pub(crate) fn join_punctuation(text: &str) -> String {
    let rules = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    rules.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Reads `tokenizer.json`; `None` if the folder has none.
pub(crate) fn read_whole(folder: &Path) -> Result<Option<Tokenizer>, Error> {
    let path = folder.join("tokenizer.json");
    if !path.exists() {
        return Ok(None);
    }
    let text = read_text(&path)?;
    let fault = |reason| wrong(&path, reason);
    let inner: Tokenizer = guarded(|| parse_json(&text).map_err(fault), fault)?;
    match inner.get_model() {
        ModelWrapper::BPE(model) => check_is_certain(model).map_err(fault).map(|()| Some(inner)),
        _ => Ok(Some(inner)),
    }
}

/// Refuses BPE dropout, which makes tokenization random.
pub(crate) fn check_is_certain(model: &BPE) -> Result<(), String> {
    match model.dropout.filter(|share| *share > 0.0) {
        Some(share) => Err(format!("its model skips merges at random: `dropout` is {share}")),
        None => Ok(()),
    }
}

/// Returns the highest id plus 1: the minimum number of rows of the embedding table. Refuses ids far above the number of tokens, since the
/// library lists all missing ids when it saves the tokenizer.
pub(crate) fn size(inner: &Tokenizer) -> Result<usize, String> {
    const MAX_MISSING: usize = 1 << 16;
    let ids = inner.get_vocab(true);
    let (count, highest) = (ids.len(), ids.into_values().max().unwrap_or_default() as usize);
    if highest > count + MAX_MISSING {
        return Err(format!("it has {count} tokens, but its highest id is {highest}"));
    }
    Ok(highest + 1)
}

/// The file that contains a complete tokenizer.
pub(crate) const WHOLE: &[&str] = &["tokenizer.json"];

/// Checks that a folder has all files of at least one of the lists `ways`. Empty lists are ignored.
pub(crate) fn require(folder: &Path, ways: &[&[&str]]) -> Result<(), Error> {
    let has = |file: &&str| folder.join(file).exists();
    let ways: Vec<&[&str]> = ways.iter().copied().filter(|files| !files.is_empty()).collect();
    if ways.iter().any(|files| files.iter().all(has)) {
        return Ok(());
    }
    let shown = folder.display();
    let is_other = |file: &&&str| has(file) && ways.contains(&WHOLE) && !ways.concat().contains(file);
    let reason = match CONVERTIBLE.iter().find(is_other) {
        Some(found) => format!(
            "it contains `{found}`, but no `tokenizer.json`: make one with python -c \"from transformers import \
             AutoTokenizer; AutoTokenizer.from_pretrained('{shown}').save_pretrained('{shown}')\""
        ),
        None => format!(
            "it must contain `{}`: copy the tokenizer files of the base model into it",
            ways.iter().map(|files| together(files)).collect::<Vec<_>>().join("`, or else `")
        ),
    };
    Err(wrong(folder, reason))
}

/// Joins file names inside backquotes: with commas, and "and" before the last.
fn together(files: &[&str]) -> String {
    let (last, others) = files.split_last().expect("lists without files were left out");
    if others.is_empty() { (*last).to_owned() } else { format!("{}` and `{last}", others.join("`, `")) }
}

/// Reads GPT-2's byte-level BPE from `vocab.json` and `merges.txt`.
pub(crate) fn read_byte_pairs(folder: &Path, add_prefix_space: bool) -> Result<Tokenizer, Error> {
    let [vocabulary, merges] = ["vocab.json", "merges.txt"].map(|file| folder.join(file));
    for path in [&vocabulary, &merges] {
        read_text(path)?; // the library would open a pipe, and name no file
    }
    let model = BPE::from_file(&vocabulary.to_string_lossy(), &merges.to_string_lossy()).build();
    let model = model.map_err(|error| wrong(&merges, excerpt(&error.to_string())))?;
    let mut inner = Tokenizer::new(model);
    inner.with_pre_tokenizer(Some(ByteLevel::default().add_prefix_space(add_prefix_space)));
    inner.with_decoder(Some(ByteLevel::default()));
    Ok(inner)
}

/// Overrides `add_prefix_space` of a `tokenizer.json` with the folder's setting, as transformers does.
pub(crate) fn set_prefix_space(inner: &mut Tokenizer, stated: bool) {
    if let Some(PreTokenizerWrapper::ByteLevel(byte_level)) = inner.get_pre_tokenizer() {
        let byte_level = byte_level.add_prefix_space(stated);
        inner.with_pre_tokenizer(Some(byte_level));
    }
}

/// Settings that name special tokens, in the order in which transformers adds the tokens.
pub(crate) const NAMES: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// Tokenizer classes that replace the template of `tokenizer.json`, and whether they add BOS by default: `update_post_processor` in
/// <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/llama/tokenization_llama_fast.py>.
const OWN_TEMPLATE: [(&str, bool); 5] = [
    ("CodeLlamaTokenizer", true),
    ("CohereTokenizer", true),
    ("GPTNeoXTokenizer", false),
    ("GemmaTokenizer", true),
    ("LlamaTokenizer", true),
];

/// Settings in `tokenizer_config.json` and the older `special_tokens_map.json` and `added_tokens.json`.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct TokenizerSettings {
    pub(crate) tokenizer_class: Option<String>,
    pub(crate) do_lower_case: Option<bool>,
    pub(crate) strip_accents: Option<bool>,
    pub(crate) tokenize_chinese_chars: Option<bool>,
    /// True if a text is encoded as if a space preceded it.
    pub(crate) add_prefix_space: bool,
    /// Whether to put `bos_token` before texts; see [`TokenizerSettings::adds_bos`].
    pub(crate) add_bos_token: Option<bool>,
    /// True if decoding joins punctuation to words; false by default in all fast tokenizers of transformers 4.57.
    pub(crate) clean_up_tokenization_spaces: bool,
    pub(crate) truncation_side: Option<String>,
    pub(crate) added_tokens_decoder: BTreeMap<u32, Found>,
    pub(crate) additional_special_tokens: Vec<Name>,
    /// Special tokens by setting, one of [`NAMES`].
    #[serde(skip)]
    pub(crate) names: BTreeMap<String, Name>,
    /// Tokens from `added_tokens.json`.
    #[serde(skip)]
    pub(crate) older_list: BTreeMap<u32, String>,
}

impl TokenizerSettings {
    /// Reads a folder's settings. As in transformers, the older files are ignored if `tokenizer_config.json` has `added_tokens_decoder`;
    /// otherwise their special tokens override those in `tokenizer_config.json`.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        const ADDITIONAL: &str = "additional_special_tokens";
        let path = folder.join("tokenizer_config.json");
        let mut stated: Map<String, Value> = read_if_there(&path)?;
        stated.retain(|_, value| !value.is_null());
        let mut older_list: BTreeMap<String, u32> = BTreeMap::new();
        if !stated.contains_key("added_tokens_decoder") {
            let names: Map<String, Value> = read_if_there(&folder.join("special_tokens_map.json"))?;
            for (key, mut value) in names.into_iter().filter(|(_, value)| !value.is_null()) {
                match (value.as_array_mut(), stated.get_mut(ADDITIONAL)) {
                    (Some(new), Some(Value::Array(all))) if key == ADDITIONAL => all.append(new),
                    _ => drop(stated.insert(key, value)),
                }
            }
            older_list = read_if_there(&folder.join("added_tokens.json"))?;
        }
        let fault = |error: serde_json::Error| wrong(&path, excerpt(&error.to_string()));
        let names = NAMES.iter().filter_map(|key| Some(((*key).to_owned(), stated.remove(*key)?)));
        let names = serde_json::from_value(Value::Object(names.collect())).map_err(fault)?;
        let older_list = older_list.into_iter().map(|(token, id)| (id, token)).collect();
        Ok(Self { names, older_list, ..serde_json::from_value(stated.into()).map_err(fault)? })
    }

    /// Returns true if BOS precedes texts, false if it does not, and `None` if the template of `tokenizer.json` decides.
    pub(crate) fn adds_bos(&self) -> Option<bool> {
        let class = self.tokenizer_class.as_deref().unwrap_or_default();
        let of_class = OWN_TEMPLATE.iter().find(|(name, _)| class.trim_end_matches("Fast") == *name);
        match (of_class, self.add_bos_token) {
            (Some((_, by_default)), stated) => Some(stated.unwrap_or(*by_default)),
            (None, stated) => stated.filter(|stated| *stated),
        }
    }

    pub(crate) fn name(&self, key: &str) -> Option<&str> {
        self.names.get(key).map(Name::as_str)
    }
}

/// A special token, with or without its matching rules.
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

/// A token and its rules for matching in a text.
#[derive(Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Found {
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    /// Defaults to false for special tokens and true for others.
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
        let error =
            guarded(|| -> Result<(), Error> { panic!("line 1\nline {}", 2) }, not_encoded).unwrap_err();
        assert_eq!(error.to_string(), r"a text cannot be tokenized: its parser fails: line 1\nline 2");
        assert!(guarded(|| Ok(7), not_encoded).is_ok() && !IS_GUARDED.get());
    }

    /// Expected texts from `PreTrainedTokenizerBase.clean_up_tokenization(text)` of transformers 4.57.1.
    #[test]
    fn punctuation_is_joined_as_transformers_joins_it() {
        for (text, joined) in [
            ("he does n't see it , is she here ? no !", "he doesn't see it, is she here? no!"),
            (
                "it 's old . we 're here , they 've left . i 'm red",
                "it's old. we're here, they've left. i'm red",
            ),
            ("the dog ' s tree ' is", "the dog's tree'is"),
            ("\" a \" ; b : c ( d ) - e", "\" a \" ; b : c ( d ) - e"),
            (" . .. ... , , 'd 'll", "......,, 'd 'll"),
            ("a  .  b \n . c 'more 'stop", "a .  b \n. c'more'stop"),
        ] {
            assert_eq!(join_punctuation(text), joined);
        }
    }

    #[test]
    fn pieces_alone_are_refused_with_the_line_that_converts_them() {
        for file in CONVERTIBLE {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(file), "").unwrap();
            let error = require(folder.path(), &[WHOLE, &["merges.txt"]]).unwrap_err().to_string();
            let shown = folder.path().display();
            assert!(
                error.contains(&format!(
                    "it contains `{file}`, but no `tokenizer.json`: make one with python"
                ))
            );
            let end = format!("AutoTokenizer.from_pretrained('{shown}').save_pretrained('{shown}')\"");
            assert!(error.ends_with(&end), "{error}");
        }
    }
}
