//! `config.json` and `model.safetensors` of a Hugging Face folder, whatever the model.
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::message::excerpt;
use crate::{Error, Weights};

/// Reads a `config.json` of one model type; what it says is yet to be validated.
///
/// # Errors
/// If the file is missing, no JSON, of another model type, or lacks an entry.
pub(crate) fn read_config<C: DeserializeOwned>(path: &Path, model_type: &str) -> Result<C, Error> {
    let json: Value = read_json(path)?;
    let found = json.get("model_type").and_then(Value::as_str).unwrap_or("none");
    if found != model_type {
        let fault = format!("model_type is `{}`, but it must be `{model_type}` here", excerpt(found));
        return Err(Error::Config { path: path.to_owned(), fault });
    }
    parse(path, json)
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
    let fault = |source| Error::Read { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(fault)?.is_file() {
        return Err(fault(std::io::Error::other("not a regular file")));
    }
    File::open(path).map_err(fault)
}

/// Writes `config.json` and `model.safetensors`; each is there whole or not at all.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn write(folder: &Path, config: &impl Serialize, weights: &Weights) -> Result<(), Error> {
    let path = folder.join("config.json");
    let json =
        serde_json::to_string_pretty(config).map_err(|source| Error::Json { path: path.clone(), source })?;
    durable::write(&path, json + "\n")?;
    weights.write(&folder.join("model.safetensors"))
}
