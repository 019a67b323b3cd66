//! `tokenizer.json` before the library reads it: some parts would make the library panic.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use words::excerpt;

use super::charsmap::check_charsmap;
use super::patterns::check_pattern;
use crate::foreign::parse_json;
use crate::numbering::Numbering;
use crate::pieces::LONGEST_REPLACEMENT;

/// The pattern that XLM-RoBERTa replaces with the sign for a space.
pub(crate) const SPACES: &str = " {2,}";

/// A part of a tokeniser, and what may play it.
pub(crate) struct Role {
    /// How messages call it.
    pub(crate) name: &'static str,
    /// Its entry in the file.
    pub(crate) part: &'static str,
    /// The types that it may have; after [`check_detail`] none of these can fail on any text.
    pub(crate) allowed: &'static [&'static str],
}

/// Parses a `tokenizer.json` and checks its model and the parts in `roles`; the others are not looked at.
pub(crate) fn check(text: &str, roles: &[Role]) -> Result<Value, String> {
    let mut json: Value = parse_json(text)?;
    for role in roles {
        json.get_mut(role.part).map_or(Ok(()), |part| check_part(role, part))?;
    }
    check_growth(&json)?;
    check_model(&json["model"])?;
    if json["model"]["vocab"].is_object() {
        check_ids(text)?;
    }
    Ok(json)
}

/// Refuses a part whose type is not allowed, also inside a sequence.
fn check_part(role: &Role, part: &mut Value) -> Result<(), String> {
    if part.is_null() {
        return Ok(());
    }
    let kind = part["type"].as_str().unwrap_or("without a type").to_owned();
    if !role.allowed.contains(&kind.as_str()) {
        return Err(format!(
            "its {} `{}` is not supported: allowed are {}",
            role.name,
            excerpt(&kind),
            role.allowed.join(", ")
        ));
    }
    check_detail(&kind, part).map_err(|reason| format!("its {} `{kind}`: {reason}", role.name))?;
    for list in LISTS {
        let members = part.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        members.into_iter().try_for_each(|member| check_part(role, member))?;
    }
    Ok(())
}

/// Where sequences have their members.
const LISTS: [&str; 3] = ["normalizers", "pretokenizers", "decoders"];

/// Refuses tables and numbers that would make the library panic, and all patterns but those known to be harmless.
fn check_detail(kind: &str, part: &mut Value) -> Result<(), String> {
    match kind {
        "Precompiled" => {
            let encoded = part["precompiled_charsmap"].as_str().unwrap_or_default();
            let charsmap = STANDARD.decode(encoded).map_err(|_| "its table is not base64")?;
            check_charsmap(&charsmap)?;
            // Encoded anew, since the library decodes base64 in its own way.
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
                    excerpt(&pattern.to_string())
                ))
            }
        }
        "Split" => check_pattern(&part["pattern"]),
        // The library cuts off more letters than a token has.
        "Strip" if !(part["stop"].is_null() || part["stop"] == 0) => {
            Err("it must not cut off the ends of tokens".to_owned())
        }
        _ => Ok(()),
    }
}

/// How many times its length a text may grow to before it is cut into pieces. By [`growth`], ALBERT's normaliser, the
/// strongest in use, comes to 1,728.
const MOST_GROWTH: u64 = 10_000;

/// Refuses parts that, one after another, could turn a short text into an endless one.
fn check_growth(json: &Value) -> Result<(), String> {
    let before = growth(&json["normalizer"]).saturating_mul(growth(&json["pre_tokenizer"]));
    let growths = [("normaliser and pre-tokeniser", before), ("decoder", growth(&json["decoder"]))];
    match growths.into_iter().find(|(_, growth)| *growth > MOST_GROWTH) {
        Some((parts, growth)) => Err(format!(
            "its {parts} could make a text {growth} times as long: {MOST_GROWTH} times is the most"
        )),
        None => Ok(()),
    }
}

/// The most times its length that a part can make a text grow to.
fn growth(part: &Value) -> u64 {
    let own = match part["type"].as_str().unwrap_or_default() {
        "Precompiled" => LONGEST_REPLACEMENT as u64,
        "NFKC" | "NFKD" => 18, // U+FDFA
        "BertNormalizer" | "ByteLevel" | "NFC" | "NFD" => 4,
        "Lowercase" => 3,
        "Prepend" => 1 + letters(&part["prepend"]),
        "Replace" => {
            let replaced = letters(&part["pattern"]["String"]).max(1);
            letters(&part["content"]).div_ceil(replaced).max(1)
        }
        _ => 1,
    };
    let members = LISTS.map(|list| part[list].as_array());
    members.into_iter().flatten().flatten().map(growth).fold(own, u64::saturating_mul)
}

fn letters(text: &Value) -> u64 {
    text.as_str().map_or(0, |text| text.chars().count() as u64)
}

/// Refuses models on which the library would panic, or whose pieces would be left to chance.
fn check_model(model: &Value) -> Result<(), String> {
    let is_unset = |part: &str| model[part].is_null() || model[part] == "" || model[part] == 0.0;
    if !is_unset("dropout") {
        return Err(format!(
            "its model leaves out merges at random: `dropout` is {}",
            excerpt(&model["dropout"].to_string())
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

/// Refuses two pieces with one id and two ids for one piece; the library would keep either.
fn check_ids(text: &str) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct Model {
        vocab: Numbering,
    }
    #[derive(serde::Deserialize)]
    struct File {
        model: Model,
    }
    let file: File = parse_json(text)?;
    file.model.vocab.into_unique().map(drop)
}
