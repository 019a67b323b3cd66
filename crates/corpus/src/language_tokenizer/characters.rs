//! Tokens that are single characters, in a `tokenizer.json` that other readers encode equally.
use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};
use tokenizers::{Model, Tokenizer};
use words::excerpt;

use super::END_OF_TEXT;

/// Cuts a text into its characters; not `.`, which leaves out line breaks.
fn pre_tokenizer() -> Value {
    json!({"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": false})
}

/// A `tokenizer.json` with the characters of `texts`.
pub(super) fn json<S: AsRef<str>>(texts: impl Iterator<Item = S>) -> String {
    let mut characters = BTreeSet::new();
    texts.for_each(|text| characters.extend(text.as_ref().chars()));
    let tokens = [END_OF_TEXT.to_owned()].into_iter().chain(characters.into_iter().map(String::from));
    let vocabulary: Map<String, Value> =
        tokens.zip(0..).map(|(token, id): (_, u32)| (token, id.into())).collect();
    // No character is called `<unk>`, so what is unknown is an error for other readers too.
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

/// The ids of the characters. The error says what keeps other readers from cutting a text as we do.
pub(super) fn ids(inner: &Tokenizer) -> Result<HashMap<char, u32>, String> {
    let ours = serde_json::to_value(inner.get_pre_tokenizer()).is_ok_and(|part| part == pre_tokenizer());
    if !ours || inner.get_normalizer().is_some() {
        return Err("its model has whole words, but does not cut texts into single characters".to_owned());
    }
    let added = inner.get_added_tokens_decoder();
    let is_special = |token: &str| added.values().any(|added| added.special && added.content == token);
    let mut ids = HashMap::new();
    for (token, id) in inner.get_model().get_vocab() {
        let mut letters = token.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => drop(ids.insert(letter, id)),
            _ if is_special(&token) => {}
            _ => return Err(format!("its token `{}` is no single character", excerpt(&token))),
        }
    }
    Ok(ids)
}
