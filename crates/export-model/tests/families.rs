//! The whole chain on families beside BERT and Marian: fine-tuning, curves, and exports read back.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use core_masking::{Classifier, ClassifierConfig, GatedModel, Translator, TranslatorConfig, Weights};
use records::PruningRow;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{command, rows, score_of_export, write_reviews};

const OPTIONS: (tch::Kind, tch::Device) = (tch::Kind::Float, tch::Device::Cpu);

const DATA: &str = r#"
task = "classification"
description = "A classifier for tests"
[data]
labels = ["bad", "good"]
format = { kind = "tsv", text = "review", label = "verdict" }
[data.splits]
train = "reviews/train.tsv"
dev = "reviews/dev.tsv"
test = "reviews/test.tsv"
[score]
metric = "accuracy"
[tokenizer]
max_length = 16
"#;

const TRAINING: &str = r#"
[training]
seed = 1
epochs = 2
batch_size = 16
learning_rate = 5e-3
keep = "last"
"#;

/// The folder of a tokeniser that transformers made.
fn tokenizer(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/tests/fixtures")).join(name)
}

/// A folder with the files of a tokeniser and a `config.json`.
fn checkpoint(folder: &Path, tokenizer: &Path, config: &Value) {
    fs::create_dir_all(folder).unwrap();
    for entry in fs::read_dir(tokenizer).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

/// Measures the curve of `tiny.toml`, whose middle removes `expected` heads, and exports that.
fn check_exports(folder: &Path, spec: &str, expected: (usize, usize)) {
    fs::write(folder.join("tiny.toml"), spec).unwrap();
    let settings = ["--step-percent", "50", "--resamples", "0", "--estimate-limit", "20"];
    command("iterative-prune", folder).args(settings).assert().success();
    let rows: Vec<PruningRow> = rows(folder, "iterative-prune.csv");
    let is_middle = |row: &&PruningRow| row.order == "importance" && row.step == 1 && !row.complement;
    let row = rows.iter().find(is_middle).unwrap();
    assert_eq!((row.masked, row.heads), expected);
    for form in ["cut", "zeros"] {
        let export = [form, "--form", form, "--percent", "50"];
        command("export-model", folder).args(export).assert().success();
        assert_eq!(score_of_export(folder, form, spec), row.score, "{form}");
    }
}

/// A folder with the texts of a classifier, and an untrained model of this kind.
fn classifier(config: &Value, fixture: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let base = folder.path().join("data/base");
    checkpoint(&base, &tokenizer(&format!("classifiers/{fixture}")), config);
    let config = ClassifierConfig::read(&base.join("config.json")).unwrap();
    Classifier::random(config, 3, OPTIONS).unwrap().save(&base).unwrap();
    write_reviews(folder.path());
    folder
}

/// Two layers of three heads, under RoBERTa's names; so few positions that those behind the padding are just enough.
fn roberta(model_type: &str, vocabulary: usize) -> Value {
    json!({
        "model_type": model_type, "vocab_size": vocabulary, "hidden_size": 12, "num_hidden_layers": 2,
        "num_attention_heads": 3, "intermediate_size": 14, "hidden_act": "gelu", "max_position_embeddings": 18,
        "type_vocab_size": 1, "pad_token_id": 1, "initializer_range": 0.3,
    })
}

/// Takes out the table of normalisation, which the fixture leaves empty for its size.
fn without_charsmap(folder: &Path) {
    let path = folder.join("tokenizer.json");
    let Ok(text) = fs::read_to_string(&path) else { return };
    let mut json: Value = serde_json::from_str(&text).unwrap();
    if let Some(parts) = json["normalizer"]["normalizers"].as_array_mut() {
        parts.retain(|part| part["type"] != "Precompiled");
    }
    fs::write(path, json.to_string()).unwrap();
}

/// As transformers saves what is too large for one file.
fn into_shards(folder: &Path) {
    let (whole, shard) = (folder.join("model.safetensors"), "model-00001-of-00001.safetensors");
    let weights = Weights::read(&whole, OPTIONS).unwrap();
    let index: BTreeMap<&str, &str> = weights.iter().map(|(name, _)| (name, shard)).collect();
    fs::rename(whole, folder.join(shard)).unwrap();
    fs::write(folder.join("model.safetensors.index.json"), json!({ "weight_map": index }).to_string())
        .unwrap();
}

#[test]
fn classifiers_are_fine_tuned_pruned_and_exported() {
    let distilbert = json!({
        "model_type": "distilbert", "vocab_size": 194, "dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 14,
        "activation": "gelu", "max_position_embeddings": 16, "initializer_range": 0.3,
    });
    type Finish = fn(&Path);
    let families: [(Value, &str, Finish); 3] = [
        (roberta("roberta", 400), "roberta-lists", |_| {}),
        (roberta("xlm-roberta", 402), "xlm-roberta-json", without_charsmap),
        (distilbert, "distilbert-list", into_shards),
    ];
    for (config, fixture, finish) in families {
        let folder = classifier(&config, fixture);
        finish(&folder.path().join("data/base"));
        check_exports(folder.path(), &format!("{DATA}[checkpoint]\nfrom = \"base\"\n{TRAINING}"), (3, 6));
    }
}

#[test]
fn a_text_that_roberta_has_no_positions_for_is_refused_before_training() {
    let mut config = roberta("roberta", 400);
    config["max_position_embeddings"] = 17.into();
    let folder = classifier(&config, "roberta-lists");
    let spec = format!("{DATA}[checkpoint]\nfrom = \"base\"\n{TRAINING}");
    fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    let message = test_support::refusal(&mut command("ablate-one", folder.path()));
    assert!(message.contains("16") && message.contains("15"), "{message}");
}

#[test]
fn a_translator_of_fairseq_is_pruned_and_exported() {
    let folder = TempDir::new().unwrap();
    let hub = folder.path().join("data/hub");
    let config = json!({
        "model_type": "fsmt", "src_vocab_size": 155, "tgt_vocab_size": 152, "d_model": 12, "encoder_layers": 2,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 14, "decoder_layers": 1, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 14, "max_position_embeddings": 40, "scale_embedding": true, "langs": ["en", "fr"],
        "max_length": 20, "num_beams": 2,
    });
    checkpoint(&hub, &tokenizer("fsmt"), &config);
    let config = TranslatorConfig::read(&hub.join("config.json")).unwrap();
    Translator::random(config, 5, OPTIONS).unwrap().save(&hub).unwrap();
    // what is not the model's stands beside it, as the hub has it
    let generation =
        json!({ "num_beams": 2, "max_length": 20, "decoder_start_token_id": 2, "eos_token_id": 2 });
    fs::write(hub.join("generation_config.json"), generation.to_string()).unwrap();
    let (english, french) =
        ("The dogs is sleeping.\nNobody eats here!\n", "Les chiens dorment.\nPersonne ici !\n");
    fs::write(folder.path().join("data/a.en"), english).unwrap();
    fs::write(folder.path().join("data/a.fr"), french).unwrap();
    let spec = "description = \"As it comes from a hub\"\n\
                [data]\nestimate = \"test\"\n\
                [data.splits]\n\
                test = { source = [\"a.en\", \"a.en\"], target = [\"a.fr\", \"a.fr\"] }\n";
    check_exports(folder.path(), &format!("{spec}[checkpoint]\nfrom = \"hub\"\n"), (5, 10));
}
