//! Character tokenizers, as a `tokenizer.json` that other readers interpret in the same way.
use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};
use tokenizers::{Model, ModelWrapper, Tokenizer};

use super::END_OF_TEXT;

/// Splits a text into characters; `.` would leave out line breaks.
fn pre_tokenizer() -> Value {
    json!({"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": false})
}

/// Returns a `tokenizer.json` for the characters of `texts`.
pub(super) fn json<S: AsRef<str>>(texts: impl Iterator<Item = S>) -> String {
    let mut characters = BTreeSet::new();
    texts.for_each(|text| characters.extend(text.as_ref().chars()));
    let tokens = [END_OF_TEXT.to_owned()].into_iter().chain(characters.into_iter().map(String::from));
    let vocabulary: Map<String, Value> =
        tokens.zip(0..).map(|(token, id): (_, u32)| (token, id.into())).collect();
    // No token is called `<unk>`, so unknown characters are an error for other readers too.
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [{"id": 0, "content": END_OF_TEXT, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true}],
        "normalizer": null,
        "pre_tokenizer": pre_tokenizer(),
        "post_processor": null,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    })
    .to_string()
}

/// Returns the ids of the characters; `None` if tokens are not characters. Encoding with them is faster than with the library and can name
/// an unknown character.
pub(super) fn ids(inner: &Tokenizer) -> Option<HashMap<char, u32>> {
    let is_plain =
        matches!(inner.get_model(), ModelWrapper::WordLevel(_)) && inner.get_normalizer().is_none();
    if !is_plain || serde_json::to_value(inner.get_pre_tokenizer()).ok()? != pre_tokenizer() {
        return None;
    }
    let mut ids = HashMap::new();
    for (token, id) in inner.get_model().get_vocab() {
        let mut letters = token.chars();
        if let (Some(letter), None) = (letters.next(), letters.next()) {
            ids.insert(letter, id);
        }
    }
    Some(ids)
}
