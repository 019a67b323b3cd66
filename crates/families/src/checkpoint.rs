//! `config.json` and `model.safetensors` of a Hugging Face folder, for all models.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use words::excerpt;

use crate::Error;
use crate::parts::Inventory;
use crate::tensor_file::TensorFile;

/// Remedy for quantised weights.
pub const DEQUANTISE: &str = "use the model that it was made from, or, where transformers can do it, python -c \"from \
     transformers import AutoModelForCausalLM as M; M.from_pretrained('DIR').dequantize().save_pretrained('NEW')\"";

/// Keys by which other tools give layers different sizes (skipped or narrower layers, as in DeciLM and Nemotron).
const BY_LAYER: [&str; 3] = ["per_layer_config", "layer_head_num", "block_configs"];

/// Reads the `config.json` of a model of one of `families`, identified by `model_type` or else by the class in `architectures`.
///
/// - `names`: both names of a family
/// - `of_family`: builds the configuration for a family from the keys of the file
/// - `inventory`: returns its tensors, so that an error can name the nearest family
pub fn read_config<F, C>(
    path: &Path,
    families: &[&'static F],
    names: impl Fn(&F) -> [&'static str; 2],
    of_family: impl Fn(Map<String, Value>, &'static F) -> Result<C, Error>,
    inventory: impl Fn(&C) -> Inventory,
) -> Result<C, Error> {
    refuse_adapter(path)?;
    let json: Map<String, Value> = read_json(path)?;
    if let Some(settings) = json.get("quantization_config").filter(|settings| !settings.is_null()) {
        let settings = excerpt(&settings.to_string()).to_string();
        return Err(Error::file(path, format!("its weights are quantised ({settings}): {DEQUANTISE}")));
    }
    if let Some(entry) = BY_LAYER.iter().find(|entry| json.get(**entry).is_some_and(|value| !value.is_null()))
    {
        let fault = format!(
            "`{entry}` sets sizes per layer, which is not supported: all layers must have equal heads, except for those in \
             `pruned_heads`"
        );
        return Err(Error::file(path, fault));
    }
    if json.contains_key("vision_config") {
        let fault = "it is a vision-language model (`vision_config`), but only text is supported: save its language model separately";
        return Err(Error::file(path, fault.to_owned()));
    }
    let found = json.get("model_type").and_then(Value::as_str);
    let class = json.get("architectures").and_then(|classes| classes.get(0)?.as_str());
    let is_named = |names: [&str; 2]| found.map_or(class == Some(names[1]), |found| found == names[0]);
    let read_as = |family: &'static F| {
        let mut json = json.clone();
        json.insert("model_type".to_owned(), names(family)[0].into());
        of_family(json, family)
    };
    if let Some(family) = families.iter().find(|family| is_named(names(family))) {
        return read_as(family);
    }
    let known: Vec<String> = families.iter().map(|family| format!("`{}`", names(family)[0])).collect();
    let known = known.join(" or ");
    let fault = match found {
        Some(found) => {
            let all =
                families.iter().map(|own| (names(own)[0], read_as(own).ok().map(|own| inventory(&own))));
            let nearest = nearest(path, all).unwrap_or_default();
            format!("model_type is `{}`, expected {known}{nearest}", excerpt(found))
        }
        None => format!("it lacks model_type: add the line \"model_type\": \"...\" with {known}"),
    };
    Err(Error::file(path, fault))
}

/// Describes the family whose tensors are nearest to those next to a `config.json`, and the differences; `None` if most differ.
fn nearest(path: &Path, families: impl Iterator<Item = (&'static str, Option<Inventory>)>) -> Option<String> {
    let file = TensorFile::open_folder(path.parent()?).ok()?;
    let differences = |(family, inventory): (&'static str, Option<Inventory>)| {
        let known: BTreeMap<String, Vec<i64>> = inventory?.into_iter().collect();
        let is_missing = |(name, shape): &(&String, &Vec<i64>)| file.shape(name).as_ref() != Some(*shape);
        let missing: Vec<String> = known.iter().filter(is_missing).map(|(name, _)| name.clone()).collect();
        let others: Vec<String> = file.names().filter(|name| !known.contains_key(*name)).cloned().collect();
        Some((family, [(missing, "missing or misshapen"), (others, "unknown")]))
    };
    let count = |found: &[(Vec<String>, &str); 2]| found.iter().map(|(names, _)| names.len()).sum::<usize>();
    let (family, found) = families.filter_map(differences).min_by_key(|(_, found)| count(found))?;
    if 2 * count(&found) > file.names().count() {
        return None;
    }
    let listed = found.iter().filter(|(names, _)| !names.is_empty()).map(|(names, what)| {
        format!("{} {what}, such as `{}`", words::count(names.len(), "tensor"), excerpt(&names[0]))
    });
    let listed: Vec<String> = listed.collect();
    Some(if listed.is_empty() {
        format!("; its tensors have the names and shapes of `{family}`, but its computation may differ")
    } else {
        format!("; the closest is `{family}`, with {}", listed.join(" and "))
    })
}

/// Files with an adapter's weights, under PEFT's present and former names.
const ADAPTER_WEIGHTS: [&str; 2] = ["adapter_model.safetensors", "adapter_model.bin"];

/// Refuses a folder with an adapter: without `file` it contains no model, and next to full weights the adapter would be ignored, while
/// transformers adds it if PEFT is installed (`find_adapter_config_file` in
/// <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/auto/auto_factory.py>).
///
/// The error contains a Python command that merges the adapter.
pub fn refuse_adapter(file: &Path) -> Result<(), Error> {
    let settings = file.with_file_name("adapter_config.json");
    if !settings.exists() {
        return Ok(());
    }
    let mut weights = ADAPTER_WEIGHTS.iter().map(|name| file.with_file_name(name));
    let (path, fault, otherwise) = match (file.exists(), weights.find(|path| path.exists())) {
        (false, _) => (settings, "this is an adapter, not a model", ""),
        (true, Some(weights)) => (
            weights,
            "this is an adapter, which would not be measured with the full weights in its folder",
            "; or move it and `adapter_config.json` to another folder to measure the full weights without it",
        ),
        (true, None) => return Ok(()),
    };
    let merge = "merge it into its base model with python -c \"from peft import \
         AutoPeftModelForSequenceClassification as M; M.from_pretrained('DIR').merge_and_unload().save_pretrained('NEW')\" \
         (ForCausalLM or ForSeq2SeqLM for other tasks), and copy the tokenizer";
    Err(Error::file(&path, format!("{fault}: {merge}{otherwise}")))
}

/// Refuses unsupported variants; `supported` lists keys of `config.json` and the only value each may have.
pub fn check_supported(json: &Map<String, Value>, supported: &[(&'static str, bool)]) -> Result<(), String> {
    for (name, wanted) in supported {
        if json.get(*name).and_then(Value::as_bool).is_some_and(|found| found != *wanted) {
            return Err(format!("{name} is {}, which is not supported", !wanted));
        }
    }
    Ok(())
}

/// Maximum size of a JSON file in bytes; names for 65,536 classes fit.
const LONGEST_JSON: u64 = 1 << 24;

/// Reads a JSON file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let mut text = Vec::new();
    open(path)?
        .take(LONGEST_JSON + 1)
        .read_to_end(&mut text)
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if text.len() as u64 > LONGEST_JSON {
        let fault = format!("longer than {LONGEST_JSON} bytes, the limit for such a file");
        return Err(Error::file(path, fault));
    }
    serde_json::from_slice(&text).map_err(|fault| Error::json(path, &fault))
}

/// Parses a configuration from the JSON of a file.
pub fn parse<T: DeserializeOwned>(path: &Path, json: Value) -> Result<T, Error> {
    serde_json::from_value(json).map_err(|fault| Error::json(path, &fault))
}

/// Opens a regular file for reading; refuses pipes and devices, which never end.
pub fn open(path: &Path) -> Result<File, Error> {
    durable::open_regular(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Writes a JSON file, which appears complete or not at all.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(value).map_err(|fault| Error::json(path, &fault))?;
    Ok(durable::write(path, json + "\n")?)
}
