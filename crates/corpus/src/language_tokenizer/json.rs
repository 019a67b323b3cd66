//! `tokenizer.json`, checked before the library reads it.
use serde_json::{Value, json};
use tokenizers::Tokenizer;
use words::excerpt;

use crate::foreign_tokenizer::parts::{self, Role};

const ROLES: [Role; 3] = [
    Role {
        name: "normaliser",
        part: "normalizer",
        allowed: &[
            "Lowercase",
            "NFC",
            "NFD",
            "NFKC",
            "NFKD",
            "Nmt",
            "Precompiled",
            "Prepend",
            "Replace",
            "Sequence",
            "Strip",
            "StripAccents",
        ],
    },
    Role {
        name: "pre-tokeniser",
        part: "pre_tokenizer",
        allowed: &["ByteLevel", "Digits", "Metaspace", "Punctuation", "Sequence", "Split"],
    },
    Role {
        name: "decoder",
        part: "decoder",
        allowed: &["ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Sequence", "Strip"],
    },
];

/// A `tokenizer.json`.
pub(super) struct Parsed {
    pub(super) inner: Tokenizer,
    /// What is put around texts, as the file has it.
    pub(super) post_processor: Value,
}

/// Reads a `tokenizer.json`; what it says about padding and truncation is left out.
pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    let mut parsed = parts::check(text, &ROLES)?;
    let mut take = |part| parsed.get_mut(part).map(Value::take).unwrap_or_default();
    let post_processor = take("post_processor"); // the library panics on some
    take("truncation");
    take("padding");
    let inner = parsed.to_string().parse().map_err(|error| excerpt(&format!("{error}")))?;
    Ok(Parsed { inner, post_processor })
}

/// A post-processor that puts this token before texts, as transformers makes one for `add_bos_token`.
pub(super) fn begins_with(token: &str, id: u32) -> Value {
    let special = |segment: u32| json!({"SpecialToken": {"id": token, "type_id": segment}});
    let text = |name: &str, segment: u32| json!({"Sequence": {"id": name, "type_id": segment}});
    json!({
        "type": "TemplateProcessing",
        "single": [special(0), text("A", 0)],
        "pair": [special(0), text("A", 0), special(1), text("B", 1)],
        "special_tokens": {token: {"id": token, "ids": [id], "tokens": [token]}},
    })
}

/// The ids of the first and the last special token that are put around one text.
pub(super) struct Around {
    pub(super) first: Option<u32>,
    pub(super) last: Option<u32>,
}

/// Finds what a post-processor puts around one text. The error names a token without an id.
pub(super) fn around(post_processor: &Value, inner: &Tokenizer) -> Result<Around, String> {
    match post_processor["type"].as_str() {
        None | Some("ByteLevel") => Ok(Around { first: None, last: None }),
        Some("TemplateProcessing") => {
            let special = |piece: Option<&Value>| match piece.map(|piece| &piece["SpecialToken"]["id"]) {
                Some(Value::String(name)) => {
                    id(name, &post_processor["special_tokens"][name]["ids"][0], inner).map(Some)
                }
                _ => Ok(None),
            };
            let single = post_processor["single"].as_array();
            Ok(Around {
                first: special(single.and_then(|pieces| pieces.first()))?,
                last: special(single.and_then(|pieces| pieces.last()))?,
            })
        }
        Some("Sequence") => {
            let mut around = Around { first: None, last: None };
            for member in post_processor["processors"].as_array().into_iter().flatten() {
                let inside = self::around(member, inner)?;
                around = Around { first: inside.first.or(around.first), last: inside.last.or(around.last) };
            }
            Ok(around)
        }
        Some(other) => Err(format!("its post-processor `{}` is not supported", excerpt(other))),
    }
}

fn id(name: &str, id: &Value, inner: &Tokenizer) -> Result<u32, String> {
    let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
    let id = id.filter(|&id| inner.id_to_token(id).is_some());
    id.ok_or_else(|| format!("its template names `{}`, but does not number it rightly", excerpt(name)))
}
