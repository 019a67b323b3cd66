//! Agreement with transformers' `generate` on a folder like opus-mt: `fixtures/tiny-marian`, made by the scripts next to it, a small
//! translator for the demo language with half-precision weights.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::path::{Path, PathBuf};

use core_masking::{BeamSearch, GatedModel, Translator, Weights};
use golden::{OPTIONS, rows, slices};
use serde_json::{Map, Value};
use tch::{Kind, Tensor};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-marian")
}

fn json(name: &str) -> Value {
    golden::read(&folder().join(name))
}

/// Copies the folder and changes the copy.
fn copy_with(change: impl FnOnce(&Path)) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["config.json", "generation_config.json", "model.safetensors"] {
        std::fs::copy(folder().join(name), copy.path().join(name)).unwrap();
    }
    change(copy.path());
    copy
}

/// Returns the settings of `generate` with `settings` overriding the folder's.
fn search(model: &Translator, settings: &Map<String, Value>) -> BeamSearch {
    let mut generation = json("generation_config.json");
    generation.as_object_mut().unwrap().extend(settings.clone());
    let copy = copy_with(|copy| {
        std::fs::write(copy.join("generation_config.json"), generation.to_string()).unwrap();
    });
    BeamSearch::read(copy.path(), model.config()).unwrap()
}

fn translate(model: &Translator, search: &BeamSearch, sources: &[Vec<u32>]) -> Vec<Vec<u32>> {
    // such a small model gains nothing from threads, and concurrent tests would compete for them
    tch::set_num_threads(1);
    let (gates, sources) = (model.open(), slices(sources));
    let batches = sources.chunks(100).map(|batch| search.translate(model, batch, &gates).unwrap());
    batches.flatten().map(|translation| translation.tokens).collect()
}

/// Requires equal translations: all of greedy search, at least 99% of beam search in single precision. Numbers from transformers 5.23.
#[test]
fn translations_are_those_of_transformers() {
    let model = Translator::load(&folder(), OPTIONS).unwrap();
    let expected = json("expected-generate.json");
    let sources = rows(&expected["source"]);
    let cases = expected["cases"].as_array().unwrap();
    assert_eq!((sources.len(), cases.len()), (300, 12));
    let mut failures = Vec::new();
    for case in cases {
        let rows = rows(&case["rows"]);
        let search = search(&model, case["settings"].as_object().unwrap());
        let found = translate(&model, &search, &sources[..rows.len()]);
        let equal = rows.iter().zip(&found).filter(|(row, found)| row == found).count();
        println!("{}: {equal} of {}", case["settings"], rows.len());
        let least = if search.beam == 1 { rows.len() } else { (rows.len() * 99).div_ceil(100) };
        if equal < least {
            failures.push(format!("{}: {equal} of {}", case["settings"], rows.len()));
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}

/// opus-mt's files repeat the tied embeddings and the sinusoidal positions.
#[test]
fn repeated_tables_are_accepted_if_they_have_the_expected_values() {
    let model = Translator::load(&folder(), OPTIONS).unwrap();
    // Vaswani et al. (2017), Section 3.5; all sines, then all cosines
    let angle = |place: i64| (place / 24) as f64 / 10_000_f64.powf(2.0 * (place % 24) as f64 / 48.0);
    let angles = Tensor::from_slice(&(0..64 * 24).map(angle).collect::<Vec<f64>>()).view([64, 24]);
    let table = Tensor::cat(&[angles.sin(), angles.cos()], 1).to_kind(Kind::Float);
    let repeated = |name: &'static str, tensor: &Tensor| {
        let own = model.weights().iter().map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
        let weights = Weights::from_tensors(own.chain([(name.to_owned(), tensor.shallow_clone())]));
        let copy = copy_with(|copy| weights.write(&copy.join("model.safetensors")).unwrap());
        Translator::load(copy.path(), OPTIONS).map(|_| ()).map_err(|error| error.to_string())
    };
    let shared = model.weights().get("model.shared.weight").unwrap();
    let rounded = table.to_kind(Kind::BFloat16).to_kind(Kind::Float);
    for (name, right, fault) in [
        ("model.encoder.embed_positions.weight", [&table, &rounded], "is not the sinusoidal table"),
        ("model.decoder.embed_positions.weight", [&table, &rounded], "is not the sinusoidal table"),
        ("model.encoder.embed_tokens.weight", [&shared; 2], "is not equal to"),
        ("model.decoder.embed_tokens.weight", [&shared; 2], "is not equal to"),
        ("lm_head.weight", [&shared; 2], "is not equal to"),
    ] {
        assert_eq!(right.map(|tensor| repeated(name, tensor)), [Ok(()), Ok(())]);
        let error = repeated(name, &(right[0] + 0.1)).unwrap_err();
        assert!(error.contains(name) && error.contains(fault), "{error}");
    }
}
