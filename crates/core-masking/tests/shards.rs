//! Models in several files with an index, as transformers saves large ones.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use core_masking::{Classifier, GatedModel, ModelDropout, Weights};
use serde_json::json;
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const INDEX: &str = "model.safetensors.index.json";

fn whole() -> std::path::PathBuf {
    test_support::golden("families/roberta").unwrap()
}

fn logits(model: &Classifier) -> Tensor {
    let texts = model.batch(&[(&[0, 7, 9, 2], &[0; 4])]).unwrap();
    model.forward(&texts, &model.open(), &ModelDropout::OFF)
}

/// Writes the model to two files, every second tensor to the second; returns the contents of the index.
fn split(folder: &Path) -> BTreeMap<String, String> {
    fs::copy(whole().join("config.json"), folder.join("config.json")).unwrap();
    let weights = Weights::read(&whole().join("model.safetensors"), OPTIONS).unwrap();
    let name = |place: usize| format!("model-0000{}-of-00002.safetensors", place % 2 + 1);
    for shard in 0..2 {
        let own = weights.iter().enumerate().filter(|(place, _)| place % 2 == shard);
        let own = own.map(|(_, (name, tensor))| (name.to_owned(), tensor.shallow_clone()));
        Weights::from_tensors(own).write(&folder.join(name(shard))).unwrap();
    }
    weights.iter().enumerate().map(|(place, (tensor, _))| (tensor.to_owned(), name(place))).collect()
}

fn load(folder: &Path, index: &BTreeMap<String, String>) -> Result<Classifier, String> {
    let json = json!({ "metadata": { "total_size": 1 }, "weight_map": index });
    fs::write(folder.join(INDEX), json.to_string()).unwrap();
    Classifier::load(folder, OPTIONS).map_err(|error| error.to_string())
}

#[test]
fn shards_are_read_as_one_file_if_the_index_fits_them() {
    let folder = tempfile::tempdir().unwrap();
    let index = split(folder.path());
    let found = logits(&load(folder.path(), &index).unwrap());
    assert_eq!(found, logits(&Classifier::load(&whole(), OPTIONS).unwrap()));

    let refuse = |shard: &str, expected: &str| {
        let mut index = index.clone();
        index.insert("classifier.dense.bias".to_owned(), shard.to_owned());
        let refusal = load(folder.path(), &index).unwrap_err();
        assert!(refusal.contains(expected), "{shard}: {refusal}");
    };
    refuse("model-00003.safetensors", "model-00003.safetensors");
    for name in ["../model.safetensors", "/etc/passwd", "model.bin", "a/b.safetensors", ""] {
        refuse(name, "is not the name of a shard in the same folder");
    }
    fs::copy(whole().join("model.safetensors"), folder.path().join("model-00003.safetensors")).unwrap();
    refuse("model-00003.safetensors", "is in more than one of its files");
}

#[test]
fn half_precision_runs_in_either_kind() {
    let folder = tempfile::tempdir().unwrap();
    let model = Classifier::load(&whole(), OPTIONS).unwrap();
    let quick = Classifier::load(&whole(), (Kind::BFloat16, Device::Cpu)).unwrap();
    assert_eq!(quick.options().0, Kind::BFloat16);
    model.to_kind(Kind::BFloat16).unwrap().save(folder.path()).unwrap();
    for other in [quick, Classifier::load(folder.path(), OPTIONS).unwrap()] {
        let gap = (logits(&other) - logits(&model)).abs().max().double_value(&[]);
        assert!(gap > 0.0 && gap < 0.2, "{gap}");
    }
}
