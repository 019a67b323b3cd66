//! Properties of any BERT classifier, tested on small random models in double precision.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod random;

use std::fs;

use core_masking::classifier::{Classified, Pretrained};
use core_masking::{
    Attention, Classifier, Error, GatedModel, Gates, HeadId, HeadSet, ModelConfig, ModelDropout, Weights,
};
use proptest::prelude::*;
use random::{DOUBLE, SINGLE, gap};
use tch::{Device, Kind, Tensor};

const CLASSES: [&str; 3] = ["no", "perhaps", "yes"];

fn model(options: (Kind, Device)) -> Classifier {
    Classifier::random(random::bert(0.4).with_labels(&CLASSES.map(str::to_owned)), 3, options).unwrap()
}

type Text = (Vec<u32>, Vec<u32>);

fn logits(model: &Classifier, texts: &[Text], gates: &Gates) -> Tensor {
    let rows: Vec<(&[u32], &[u32])> = texts.iter().map(|(ids, kinds)| (&ids[..], &kinds[..])).collect();
    model.forward(&model.batch(&rows).unwrap(), gates, &ModelDropout::OFF)
}

fn texts() -> impl Strategy<Value = Vec<Text>> {
    let text =
        prop::collection::vec((1_u32..23, 0_u32..2), 1..=13).prop_map(|tokens| tokens.into_iter().unzip());
    prop::collection::vec(text, 1..6)
}

fn heads() -> impl Strategy<Value = HeadSet> {
    let id = |(layer, head)| HeadId::from_index(Attention::SelfAttention, layer, head);
    prop::collection::vec((0_usize..3, 0_usize..4).prop_map(id), 0..8)
        .prop_map(|heads| heads.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_batch_gives_what_its_texts_give_alone(texts in texts(), heads in heads()) {
        let model = model(DOUBLE);
        let gates = Gates::masking(&model.layout(), &[heads], DOUBLE).unwrap();
        let together = logits(&model, &texts, &gates);
        for (row, text) in texts.iter().enumerate() {
            let alone = logits(&model, std::slice::from_ref(text), &gates);
            let gap = gap(&together.narrow(0, row as i64, 1), &alone);
            prop_assert!(gap < 1e-12, "row {row} differs by {gap:e}");
        }
    }
}

#[test]
fn dropout_draws_from_its_seed_and_is_off_in_evaluation() {
    let model = model(SINGLE);
    let batch = model.batch(&[(&[5, 6, 7, 8], &[0, 0, 1, 1])]).unwrap();
    let gates = model.open();
    let run = |seed| model.forward(&batch, &gates, &ModelDropout::new(model.config().dropout(), seed));
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert_ne!(run(1), model.forward(&batch, &gates, &ModelDropout::OFF));
}

#[test]
fn inputs_beyond_the_embedding_tables_are_refused() {
    let model = model(DOUBLE);
    for (ids, segment, expected) in
        [(&[23][..], 0, "token 23"), (&[1], 2, "segment 2"), (&[1; 14], 0, "13 positions")]
    {
        let message = model.batch(&[(ids, &vec![segment; ids.len()])]).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

/// Saves the model with other tensors; `change` renames a tensor, or drops it.
fn saved(change: impl Fn(&str) -> Option<String>) -> (Classifier, tempfile::TempDir) {
    let (model, folder) = (model(SINGLE), tempfile::tempdir().unwrap());
    model.save(folder.path()).unwrap();
    let changed =
        model.weights().iter().filter_map(|(name, tensor)| Some((change(name)?, tensor.shallow_clone())));
    Weights::from_tensors(changed).write(&folder.path().join("model.safetensors")).unwrap();
    (model, folder)
}

fn pretrained(folder: &tempfile::TempDir, labels: &[&str]) -> Result<Pretrained, Error> {
    let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
    Classifier::load_pretrained(folder.path(), (&labels, Classified::Texts), 7, SINGLE)
}

/// TensorFlow's names of norms, no prefix, and pretraining heads.
#[test]
fn older_names_of_tensors_are_recognised() {
    let (saved, folder) = saved(|name| {
        let name = name.strip_prefix("bert.").unwrap_or(name);
        let name =
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
        Some(if name == "classifier.bias" { "cls.predictions.bias".to_owned() } else { name })
    });
    let loaded = pretrained(&folder, &CLASSES).unwrap();
    assert_eq!(loaded.new, ["classifier.bias"]);
    for (name, tensor) in saved.weights().iter().filter(|(name, _)| *name != "classifier.bias") {
        assert_eq!(loaded.model.weights().get(name).unwrap(), *tensor, "{name}");
    }
}

#[test]
fn a_missing_classifier_is_new_for_fine_tuning_and_an_error_otherwise() {
    let is_of_head = |name: &str| name.starts_with("classifier") || name.contains("pooler");
    let (_, folder) = saved(|name| (!is_of_head(name)).then(|| name.to_owned()));
    let refusal = Classifier::load(folder.path(), SINGLE).unwrap_err().to_string();
    assert!(refusal.contains("lacks tensor `bert.pooler.dense.bias`"), "{refusal}");
    let [first, again] = [0, 1].map(|_| pretrained(&folder, &["a", "b", "c", "d"]).unwrap());
    let new = ["bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias"];
    assert_eq!(first.new, new);
    assert_eq!(first.model.config().labels(), ["a", "b", "c", "d"]);
    let weight = |found: &Pretrained| found.model.weights().get("classifier.weight").unwrap();
    assert_eq!(weight(&first).size(), [4, 20]);
    assert_eq!(weight(&again), weight(&first), "initial weights depend on the seed alone");
}

/// Replaced if classes differ in number, names or order, or `config.json` names one class or none; a pooler of another size is refused.
#[test]
fn a_classifier_for_other_classes_is_replaced() {
    let (_, folder) = saved(|name| Some(name.to_owned()));
    let new = |labels: &[&str]| pretrained(&folder, labels).unwrap().new;
    let classifier = ["classifier.weight", "classifier.bias"];
    assert_eq!(new(&["a", "b"]), classifier);
    assert_eq!(new(&["yes", "perhaps", "no"]), classifier);
    assert!(new(&CLASSES).is_empty());
    let (_, swapped) = saved(|name| match name {
        "classifier.bias" => Some("bert.pooler.dense.bias".to_owned()),
        "bert.pooler.dense.bias" => Some("classifier.bias".to_owned()),
        name => Some(name.to_owned()),
    });
    let message = pretrained(&swapped, &["a", "b"]).unwrap_err().to_string();
    assert!(message.contains("tensor `bert.pooler.dense.bias` is [3]"), "{message}");

    let path = folder.path().join("config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for names in [serde_json::json!({"0": "LABEL_0"}), serde_json::json!({})] {
        config["id2label"] = names;
        fs::write(&path, config.to_string()).unwrap();
        assert!(Classifier::load(folder.path(), SINGLE).is_err());
        assert_eq!(new(&["a", "b", "c"]), classifier);
    }
}
