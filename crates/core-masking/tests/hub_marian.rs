//! Agreement with transformers' `generate` on a folder like opus-mt: `fixtures/tiny-marian`, made by the scripts next to it, a small
//! translator for the demo language with half-precision weights.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::path::{Path, PathBuf};

use core_masking::{BeamSearch, GatedModel, Gates, OutputRules, Translator, Weights};
use serde_json::{Map, Value, json};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-marian")
}

fn json(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder().join(name)).unwrap()).unwrap()
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
    let gates = Gates::open(&model.layout(), OPTIONS);
    let slices: Vec<&[u32]> = sources.iter().map(Vec::as_slice).collect();
    let batches = slices.chunks(100).map(|batch| search.translate(model, batch, &gates).unwrap());
    batches.flatten().map(|translation| translation.tokens).collect()
}

/// Requires all of greedy search and at least 99% of beam search in single precision; `transformers` 5.23 made the numbers.
#[test]
fn translations_are_those_of_transformers() {
    let model = Translator::load(&folder(), OPTIONS).unwrap();
    let expected = json("expected-generate.json");
    let sources: Vec<Vec<u32>> = serde_json::from_value(expected["source"].clone()).unwrap();
    let cases = expected["cases"].as_array().unwrap();
    assert_eq!((sources.len(), cases.len()), (300, 12));
    let mut failures = Vec::new();
    for case in cases {
        let rows: Vec<Vec<u32>> = serde_json::from_value(case["rows"].clone()).unwrap();
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

#[test]
fn without_rules_of_its_own_a_search_bans_the_padding() {
    let model = Translator::load(&folder(), OPTIONS).unwrap();
    let sources: Vec<Vec<u32>> =
        serde_json::from_value(json("expected-generate.json")["source"].clone()).unwrap();
    let mut search = search(&model, &Map::new());
    search.rules = Some(OutputRules { banned: vec![253], end_forced: true, ..OutputRules::default() });
    let explicit = translate(&model, &search, &sources[..20]);
    search.rules = None;
    assert_eq!(translate(&model, &search, &sources[..20]), explicit);
}

#[test]
fn banned_tokens_are_never_generated() {
    let model = Translator::load(&folder(), OPTIONS).unwrap();
    let sources: Vec<Vec<u32>> =
        serde_json::from_value(json("expected-generate.json")["source"].clone()).unwrap();
    let search = |banned: Value| search(&model, json!({"bad_words_ids": banned}).as_object().unwrap());
    let free = translate(&model, &search(json!([[253]])), &sources[..20]);
    let common = free[0][0];
    let banned = translate(&model, &search(json!([[253], [common]])), &sources[..20]);
    assert!(!banned.concat().contains(&common));
}

/// If only one token is allowed, its renormalised probability is 1, and the original one is less.
#[test]
fn renormalising_makes_up_for_what_is_banned() {
    let model = Translator::load(&folder(), OPTIONS).unwrap();
    let gates = Gates::open(&model.layout(), OPTIONS);
    let score = |renormalised| {
        let banned = (0..254).filter(|&token| token != 17).collect();
        let mut search = search(&model, json!({"num_beams": 2, "max_new_tokens": 1}).as_object().unwrap());
        search.rules = Some(OutputRules { banned, renormalised, ..OutputRules::default() });
        let found = search.translate(&model, &[&[5, 9, 0]], &gates).unwrap();
        assert_eq!(found[0].tokens, [17]);
        found[0].score.unwrap()
    };
    assert!(score(true).abs() < 1e-6, "{}", score(true));
    assert!(score(false) < -1.0, "{}", score(false));
}

/// opus-mt's files repeat the tied embeddings and the sinusoidal positions.
#[test]
fn repeated_tables_are_accepted_if_they_are_what_they_should_be() {
    let model = Translator::load(&folder(), OPTIONS).unwrap();
    let table = Tensor::zeros([64, 48], OPTIONS);
    for position in 0..64_i64 {
        for pair in 0..24_i64 {
            // Vaswani et al. (2017), Section 3.5; all sines, then all cosines
            let angle = position as f64 / 10_000_f64.powf(2.0 * pair as f64 / 48.0);
            let _ = table.get(position).get(pair).fill_(angle.sin());
            let _ = table.get(position).get(24 + pair).fill_(angle.cos());
        }
    }
    let repeated = |name: &'static str, tensor: &Tensor| {
        let own = model.weights().iter().map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
        let weights = Weights::from_tensors(own.chain([(name.to_owned(), tensor.shallow_clone())]));
        let copy = copy_with(|copy| weights.write(&copy.join("model.safetensors")).unwrap());
        Translator::load(copy.path(), OPTIONS).map(|_| ()).map_err(|error| error.to_string())
    };
    let shared = model.weights().get("model.shared.weight").unwrap();
    for name in ["model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"] {
        let rounded = table.to_kind(Kind::BFloat16).to_kind(Kind::Float);
        assert_eq!([repeated(name, &table), repeated(name, &rounded)], [Ok(()), Ok(())]);
        let error = repeated(name, &(&table + 0.1)).unwrap_err();
        assert!(error.contains(name) && error.contains("is not the sinusoidal table"), "{error}");
    }
    for name in ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"] {
        assert_eq!(repeated(name, &shared), Ok(()));
        let error = repeated(name, &(&shared + 0.1)).unwrap_err();
        assert!(error.contains(name) && error.contains("is not equal to"), "{error}");
    }
}
