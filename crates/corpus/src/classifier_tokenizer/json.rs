//! `tokenizer.json`: what is looked at before the library reads it, since some parts make it panic.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokenizers::Tokenizer;

use super::checks::check_charsmap;
use super::family::Family;
use crate::foreign::shown;
use crate::numbering::Numbering;

/// What XLM-RoBERTa replaces by the sign of a space.
pub(super) const SPACES: &str = " {2,}";

/// Reads a `tokenizer.json` but for its decoder, on which the library panics where it is malformed, and for what it says
/// about cutting and filling up texts.
pub(super) fn parse(text: &str) -> Result<(Tokenizer, &'static Family), String> {
    let mut json: Value = serde_json::from_str(text).map_err(|error| shown(&error.to_string()))?;
    for (role, part, allowed) in
        [("normaliser", "normalizer", &NORMALIZERS[..]), ("pre-tokeniser", "pre_tokenizer", &PRE_TOKENIZERS)]
    {
        json.get_mut(part).map_or(Ok(()), |part| check_part(role, part, allowed))?;
    }
    check_model(&json["model"])?;
    if json["model"]["vocab"].is_object() {
        check_ids(text)?;
    }
    for part in ["decoder", "truncation", "padding"] {
        if let Some(part) = json.get_mut(part) {
            part.take();
        }
    }
    let inner: Tokenizer = json.to_string().parse().map_err(|error| shown(&format!("{error}")))?;
    let family = Family::of_model(inner.get_model())?;
    Ok((inner, family))
}

/// What classifiers do to a text before it is cut: none of it can fail, whatever the text, once [`check_detail`] has
/// looked at it. Others can: regular expressions in the middle of a text.
const NORMALIZERS: [&str; 12] = [
    "BertNormalizer",
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Nmt",
    "Precompiled",
    "Replace",
    "Sequence",
    "Strip",
    "StripAccents",
];
const PRE_TOKENIZERS: [&str; 8] = [
    "BertPreTokenizer",
    "ByteLevel",
    "Digits",
    "Metaspace",
    "Punctuation",
    "Sequence",
    "Whitespace",
    "WhitespaceSplit",
];

/// Refuses a part, or a part of a sequence, whose type is not `allowed`.
fn check_part(role: &str, part: &mut Value, allowed: &[&str]) -> Result<(), String> {
    if part.is_null() {
        return Ok(());
    }
    let kind = part["type"].as_str().unwrap_or("without a type").to_owned();
    if !allowed.contains(&kind.as_str()) {
        return Err(format!(
            "its {role} `{}` is not supported: allowed are {}",
            shown(&kind),
            allowed.join(", ")
        ));
    }
    check_detail(&kind, part).map_err(|reason| format!("its {role} `{kind}`: {reason}"))?;
    for list in ["normalizers", "pretokenizers"] {
        let members = part.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        members.into_iter().try_for_each(|member| check_part(role, member, allowed))?;
    }
    Ok(())
}

/// Refuses a table that would make the library panic, and patterns other than those known to do no harm.
fn check_detail(kind: &str, part: &mut Value) -> Result<(), String> {
    match kind {
        "Precompiled" => {
            let encoded = part["precompiled_charsmap"].as_str().unwrap_or_default();
            let charsmap = STANDARD.decode(encoded).map_err(|_| "its table is not base64")?;
            check_charsmap(&charsmap)?;
            // The library has a reader of base64 of its own.
            part["precompiled_charsmap"] = STANDARD.encode(charsmap).into();
            Ok(())
        }
        "Replace" => {
            let pattern = &part["pattern"];
            let is_text = pattern["String"].as_str().is_some_and(|text| !text.is_empty());
            if is_text || pattern["Regex"] == SPACES {
                Ok(())
            } else {
                Err(format!(
                    "it replaces {}: allowed are texts and the pattern `{SPACES}`",
                    shown(&pattern.to_string())
                ))
            }
        }
        _ => Ok(()),
    }
}

/// Refuses what the library would panic on while it reads a model, or would leave to chance.
fn check_model(model: &Value) -> Result<(), String> {
    let is_unset = |part: &str| model[part].is_null() || model[part] == "" || model[part] == 0.0;
    if !is_unset("dropout") {
        return Err(format!(
            "its model leaves out merges at random: `dropout` is {}",
            shown(&model["dropout"].to_string())
        ));
    }
    let unsupported =
        ["continuing_subword_prefix", "end_of_word_suffix"].into_iter().find(|part| !is_unset(part));
    match unsupported {
        Some(part) if model.get("merges").is_some() => {
            Err(format!("its merges have a `{part}`, which is not supported"))
        }
        _ if model["vocab"].is_array() && !model["unk_id"].is_u64() => {
            Err("its model has no `unk_id`, the unknown piece".into())
        }
        _ => Ok(()),
    }
}

/// Refuses two pieces of one id, and two ids of one piece, of which the library would keep one or the other.
fn check_ids(text: &str) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct Model {
        vocab: Numbering,
    }
    #[derive(serde::Deserialize)]
    struct File {
        model: Model,
    }
    let file: File = serde_json::from_str(text).map_err(|error| shown(&error.to_string()))?;
    file.model.vocab.into_unique().map(drop)
}
