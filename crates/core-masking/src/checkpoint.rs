//! `config.json` and `model.safetensors` of a Hugging Face folder, whatever the model.
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Error, Weights};

/// Reads a `config.json` of one model type; what it says is yet to be validated.
///
/// # Errors
/// If the file is missing, no JSON, of another model type, or lacks an entry.
pub(crate) fn read_config<C: DeserializeOwned>(path: &Path, model_type: &str) -> Result<C, Error> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let fault = |source| Error::Json { path: path.to_owned(), source };
    let json: Value = serde_json::from_str(&text).map_err(fault)?;
    let found = json.get("model_type").and_then(Value::as_str).unwrap_or("none");
    if found != model_type {
        let fault = format!("model_type is `{found}`, but it must be `{model_type}` here");
        return Err(Error::Config { path: path.to_owned(), fault });
    }
    serde_json::from_value(json).map_err(fault)
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
