//! `vocab.json` and `merges.txt`: byte-level BPE as GPT-2 published it.
use std::collections::{HashMap, HashSet};
use std::path::Path;

use tokenizers::models::bpe::BPE;
use words::excerpt;

use crate::Error;
use crate::foreign::{MOST_BYTES, parse_json, read_json, read_text};
use crate::numbering::Numbering;

/// Reads `vocab.json` and `merges.txt`; `wrong` makes an error out of what is wrong with a file.
pub(crate) fn read(folder: &Path, wrong: fn(&Path, String) -> Error) -> Result<BPE, Error> {
    let path = folder.join("vocab.json");
    let numbering: Numbering = read_json(&path, wrong)?;
    let vocabulary = numbering.into_unique().map_err(|reason| wrong(&path, reason))?;
    let path = folder.join("merges.txt");
    let text = read_text(&path, MOST_BYTES)?;
    let merges = parse_merges(&text, &vocabulary).map_err(|reason| wrong(&path, reason))?;
    // Not the builder: it takes a hash table from a crate that we do not depend on.
    let model = serde_json::json!({"type": "BPE", "vocab": vocabulary, "merges": merges});
    parse_json(&model.to_string()).map_err(|reason| wrong(&path, reason))
}

/// Reads the merges: a line with the version, then two pieces in each line. transformers skips the first line and
/// whatever follows the last line break without looking at them.
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
            return Err(format!("`vocab.json` lacks `{}`", excerpt(piece)));
        }
    }
    Ok([left, right])
}
