//! Byte-level BPE: `vocab.json` and `merges.txt` of RoBERTa (and of GPT-2, from which it has them).
use std::collections::{HashMap, HashSet};
use std::path::Path;

use tokenizers::Tokenizer;
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::settings::Settings;
use super::{read, wrong};
use crate::Error;
use crate::foreign::shown;
use crate::numbering::Numbering;

/// Reads `vocab.json` and `merges.txt`.
pub(super) fn load(folder: &Path, settings: &Settings) -> Result<Tokenizer, Error> {
    let path = folder.join("vocab.json");
    let vocabulary = parse_vocabulary(&read(&path)?).map_err(|reason| wrong(&path, reason))?;
    let path = folder.join("merges.txt");
    let text = read(&path)?;
    let merges = parse_merges(&text, &vocabulary).map_err(|reason| wrong(&path, reason))?;
    // The builder takes a hash table of a crate that we do not depend on.
    let model = serde_json::json!({"type": "BPE", "vocab": vocabulary, "merges": merges});
    let model: BPE =
        serde_json::from_str(&model.to_string()).map_err(|error| wrong(&path, shown(&error.to_string())))?;
    let mut inner = Tokenizer::new(model);
    inner.with_pre_tokenizer(Some(ByteLevel::default().add_prefix_space(settings.add_prefix_space)));
    Ok(inner)
}

fn parse_vocabulary(text: &str) -> Result<HashMap<String, u32>, String> {
    let numbering: Numbering = serde_json::from_str(text).map_err(|error| shown(&error.to_string()))?;
    numbering.into_unique()
}

/// Two pieces a line, after a line with the version. transformers leaves out the first line and what follows the last
/// line break, whatever they are.
fn parse_merges<'a>(text: &'a str, vocabulary: &HashMap<String, u32>) -> Result<Vec<[&'a str; 2]>, String> {
    if !text.starts_with("#version") {
        return Err("its first line must begin with `#version`".into());
    }
    if !text.ends_with('\n') {
        return Err("its last line has no end".into());
    }
    let mut seen = HashSet::new();
    let lines = text.lines().zip(1..).skip(1);
    lines
        .map(|(line, number)| {
            let pieces =
                parse_merge(line, vocabulary).map_err(|reason| format!("line {number}: {reason}"))?;
            if seen.insert(pieces) {
                Ok(pieces)
            } else {
                Err(format!("line {number}: its merge stands above too"))
            }
        })
        .collect()
}

fn parse_merge<'a>(line: &'a str, vocabulary: &HashMap<String, u32>) -> Result<[&'a str; 2], String> {
    let pieces = line
        .split_once(' ')
        .filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '));
    let Some((left, right)) = pieces else {
        return Err("it must hold two pieces with a space between them".into());
    };
    for piece in [left, right, &[left, right].concat()] {
        if !vocabulary.contains_key(piece) {
            return Err(format!("`vocab.json` lacks `{}`", shown(piece)));
        }
    }
    Ok([left, right])
}
