//! Reference numbers as JSON.
#![allow(dead_code, reason = "some tests have no use for a part")]
use std::path::{Path, PathBuf};

use core_masking::{Attention, GatedModel, Gates, HeadId, HeadSet};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

pub const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);

// Folders by the type of model.
pub const CLASSIFIERS: &str = "more/bert families/roberta families/xlm-roberta families/distilbert more/camembert more/electra \
    more/mpnet more/albert more/deberta-v2 more/modernbert more/modernbert-mean tokens-images/bert-tokens \
    tokens-images/roberta-tokens tokens-images/distilbert-tokens tokens-images/vit tokens-images/vit-grey tokens-images/deit";
pub const LANGUAGE_MODELS: &str = "families/gpt2 families/llama families/llama3 families/mistral families/qwen2 families/qwen3 \
    more/llama-bias more/llama-head_dim more/granite more/starcoder2 more/smollm3 more/olmo2 more/phi3 more/phi3-partial more/gpt_neox \
    more/gpt_neox-serial more/opt more/gemma more/gemma2 more/gemma3_text more/gemma3_text-linear more/qwen3_moe \
    tokens-images/cohere tokens-images/cohere-qk tokens-images/glm4";
pub const TRANSLATORS: &str = "families/fsmt more/marian more/marian-two more/marian-two-sizes more/bart more/mbart more/m2m_100 \
    more/pegasus more/t5 more/t5-v1.1 more/mt5";
/// Folders outside the repository, which may be missing.
const OUTSIDE: &str = "more/llama-bias more/llama-head_dim more/phi3 more/gpt_neox-serial more/gemma more/gemma3_text-linear \
    more/marian more/marian-two";

/// Returns the folder `name` of reference numbers; if it is missing, returns `None` outside the repository and fails otherwise.
pub fn folder(name: &str) -> Option<PathBuf> {
    let folder = test_support::golden(name);
    let may_be_missing = OUTSIDE.split_whitespace().any(|outside| outside == name);
    assert!(folder.is_some() || may_be_missing, "no folder {name}");
    folder
}

/// Returns the [`folder`] `name` and the contents of the JSON file next to it.
pub fn load(name: &str) -> Option<(PathBuf, Value)> {
    tch::set_num_threads(1); // the models are tiny, and waiting for threads would take most of the time
    let folder = folder(name)?;
    Some((folder, read(&test_support::golden(&format!("{name}.json")).unwrap())))
}

/// Reads a JSON file.
pub fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Writes to the folder `to` the `config.json` from `path` with these changes; an entry that becomes "absent" is left out.
pub fn write_config(path: &Path, changes: &Value, to: &Path) {
    let mut config = read(path);
    let entries = config.as_object_mut().unwrap();
    entries.extend(changes.as_object().unwrap().clone());
    entries.retain(|_, value| *value != "absent");
    std::fs::write(to.join("config.json"), config.to_string()).unwrap();
}

/// Converts nested arrays of numbers to a tensor in double precision.
pub fn tensor(value: &Value) -> Tensor {
    let items = value.as_array().unwrap();
    if items[0].is_array() {
        return Tensor::stack(&items.iter().map(tensor).collect::<Vec<_>>(), 0);
    }
    Tensor::from_slice(&items.iter().map(|number| number.as_f64().unwrap()).collect::<Vec<_>>())
}

/// Converts rows of whole numbers, which may be written as `7.0`.
pub fn rows(value: &Value) -> Vec<Vec<u32>> {
    let rows: Vec<Vec<f64>> = serde_json::from_value(value.clone()).unwrap();
    rows.into_iter().map(|row| row.into_iter().map(|id| id as u32).collect()).collect()
}

/// Returns the tokens at which the mask is 1.
pub fn real(numbers: &Value, name: &str, mask: &str) -> Vec<Vec<u32>> {
    let real = |(row, mask): (Vec<u32>, Vec<u32>)| {
        row.into_iter().zip(mask).filter(|(_, mask)| *mask == 1).map(|(id, _)| id).collect()
    };
    rows(&numbers[name]).into_iter().zip(rows(&numbers[mask])).map(real).collect()
}

pub fn slices(rows: &[Vec<u32>]) -> Vec<&[u32]> {
    rows.iter().map(Vec::as_slice).collect()
}

/// Returns the maximum difference of two tensors of equal shape.
pub fn gap(found: &Tensor, expected: &Tensor) -> f64 {
    assert_eq!(found.size(), expected.size());
    (found.to_kind(Kind::Double) - expected).abs().max().double_value(&[])
}

/// Maximum [`gap`] that rounding and summation order explain, relative to expected numbers above 1.
pub const TOLERANCE: f64 = 5e-5;

/// Returns the [`gap`] that [`TOLERANCE`] limits.
pub fn gap_of_each(found: &Tensor, expected: &Tensor) -> f64 {
    let size = expected.abs().clamp_min(1.0);
    gap(&(found.to_kind(Kind::Double) / &size), &(expected / &size))
}

/// Returns the [`gap`] relative to the largest expected number.
pub fn relative_gap(found: &Tensor, expected: &Tensor) -> f64 {
    gap(found, expected) / expected.abs().max().double_value(&[])
}

/// Parses a head from a key such as `1,3` or `enc-dec,1,3`, counted from 0.
pub fn head(key: &str) -> HeadId {
    let parts: Vec<&str> = key.split(',').collect();
    let (attention, places) = match parts[..] {
        [name, layer, head] => (name.parse().unwrap(), [layer, head]),
        _ => (Attention::SelfAttention, [parts[0], parts[1]]),
    };
    let [layer, head] = places.map(|number| number.parse().unwrap());
    HeadId::from_index(attention, layer, head)
}

pub fn masking<M: GatedModel>(model: &M, set: &HeadSet) -> Gates {
    Gates::masking(&model.layout(), std::slice::from_ref(set), model.options()).unwrap()
}

/// Compares the results of `run` with each head masked; `cases` has an entry for every head.
pub fn compare_masked<M: GatedModel>(
    model: &M,
    cases: &Value,
    tolerance: f64,
    gap: fn(&Tensor, &Tensor) -> f64,
    run: impl Fn(&Gates) -> Tensor,
) {
    let cases = cases.as_object().unwrap();
    assert_eq!(cases.len(), model.layout().heads().len());
    for (key, expected) in cases {
        let gap = gap(&run(&masking(model, &HeadSet::from_iter([head(key)]))), &tensor(expected));
        assert!(gap < tolerance, "without {key}: {gap:e}");
    }
}
