//! Configurations of models that can be written as GGUF files: Llama and similar families.
use std::path::Path;

use families::language_model::LanguageConfig;
use families::parts::Activation;
use families::rotary::RotaryScaling;
use families::tables::{LLAMA, MISTRAL, QWEN2};
use serde_json::{Map, Value};

use crate::Error;

/// Reads the configuration of a folder to be exported. Fails if neither `llama` nor `deci` of llama.cpp can represent the model.
pub(crate) fn read(folder: &Path) -> Result<LanguageConfig, Error> {
    let path = folder.join("config.json");
    let json: Map<String, Value> = families::checkpoint::read_json(&path)?;
    let wrong = |reason| Error::of(&path, reason);
    // gives models that are not language models, such as classifiers, the right error
    json.get("model_type").and_then(Value::as_str).map_or(Ok(()), check_family).map_err(wrong)?;
    let config = LanguageConfig::read(&path)?;
    check_family(config.family.model_type).and_then(|()| check(&config)).map_err(wrong)?;
    Ok(config)
}

fn check_family(model_type: &str) -> Result<(), String> {
    if [&LLAMA, &MISTRAL, &QWEN2].iter().any(|family| family.model_type == model_type) {
        return Ok(());
    }
    let why = match model_type {
        "qwen3" => {
            "; `deci`, the architecture of llama.cpp whose layers may differ, has no norms of queries and keys"
        }
        _ => "",
    };
    let model_type = words::excerpt(model_type);
    Err(format!("model_type `{model_type}` cannot be written as GGUF{why}; expected llama, mistral or qwen2"))
}

/// Refuses configurations that llama.cpp's `llama` and `deci` cannot represent.
fn check(config: &LanguageConfig) -> Result<(), String> {
    if ![Activation::Silu, Activation::Swish].contains(&config.hidden_act) {
        return Err(format!("hidden_act `{:?}` cannot be written as GGUF; expected silu", config.hidden_act));
    }
    match (0..config.num_hidden_layers).find_map(|layer| config.window(layer)) {
        Some(window) => Err(format!(
            "sliding_window is {window}, but llama.cpp's `llama` and `deci` have no windows: set it to null if all texts are \
             shorter"
        )),
        None => Ok(()),
    }
}

/// Returns the divisor of each rotary frequency, one per pair of channels.
pub(crate) fn divisors(scaling: RotaryScaling, config: &LanguageConfig) -> Vec<f32> {
    let divisor = |pair: i64| {
        let frequency = config.rope_theta.powf(-2.0 * pair as f64 / config.d_head() as f64);
        (frequency / scaling.scale(frequency)) as f32
    };
    (0..config.d_head() / 2).map(divisor).collect()
}

pub(crate) fn read_json(path: &Path) -> Result<Value, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::reading(path))?;
    serde_json::from_str(&text).map_err(|error| Error::of(path, error))
}
