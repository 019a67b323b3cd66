//! `config.json` and `model.safetensors` of a Hugging Face folder, whatever the model.
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use words::excerpt;

use crate::Error;

/// The family that a `config.json` names.
///
/// # Errors
/// If it is none of `families`; the message lists them.
pub(crate) fn family<F>(
    path: &Path,
    json: &Map<String, Value>,
    families: &[&'static F],
    name: impl Fn(&F) -> &'static str,
) -> Result<&'static F, Error> {
    let found = json.get("model_type").and_then(Value::as_str).unwrap_or("none");
    families.iter().copied().find(|family| name(family) == found).ok_or_else(|| {
        let known: Vec<String> = families.iter().map(|family| format!("`{}`", name(family))).collect();
        let fault = format!("model_type is `{}`, but it must be {} here", excerpt(found), known.join(" or "));
        Error::Config { path: path.to_owned(), fault }
    })
}

/// Refuses variants that are not supported: entries that a `config.json` may have, and the only value that each may have.
///
/// # Errors
/// The first entry at fault, in words.
pub(crate) fn check_supported(
    json: &Map<String, Value>,
    supported: &[(&'static str, bool)],
) -> Result<(), String> {
    for (name, wanted) in supported {
        if json.get(*name).and_then(Value::as_bool).is_some_and(|found| found != *wanted) {
            return Err(format!("{name} is {}, which is not supported", !wanted));
        }
    }
    Ok(())
}

/// Bytes of a JSON file at most: names for 65,536 classes have room.
const LONGEST_JSON: u64 = 1 << 24;

/// Reads a JSON file.
///
/// # Errors
/// If the file is missing, too long, no JSON, or lacks an entry.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let mut text = Vec::new();
    open(path)?
        .take(LONGEST_JSON + 1)
        .read_to_end(&mut text)
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if text.len() as u64 > LONGEST_JSON {
        let fault = format!("longer than {LONGEST_JSON} bytes, which no such file is");
        return Err(Error::Config { path: path.to_owned(), fault });
    }
    serde_json::from_slice(&text)
        .map_err(|source| Error::Json { path: path.to_owned(), source: tame(&source) })
}

/// What the JSON of a file says.
///
/// # Errors
/// If it lacks an entry, or one is of another type.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, json: Value) -> Result<T, Error> {
    serde_json::from_value(json)
        .map_err(|source| Error::Json { path: path.to_owned(), source: tame(&source) })
}

/// The error without control characters of the file, and not longer than a line.
pub(crate) fn tame(error: &serde_json::Error) -> serde_json::Error {
    serde::de::Error::custom(excerpt(&error.to_string()))
}

/// Opens a file for reading, but nothing that never ends, such as a pipe or a device.
///
/// # Errors
/// If it is missing, or no regular file.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    durable::open_regular(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Writes a JSON file; it is there whole or not at all.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(value)
        .map_err(|source| Error::Json { path: path.to_owned(), source })?;
    Ok(durable::write(path, json + "\n")?)
}
