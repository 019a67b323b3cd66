//! Properties of any BERT classifier, tested on small random models in double precision.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use core_masking::classifier::Classified;
use core_masking::{
    Attention, Classifier, ClassifierConfig, GatedModel, Gates, HeadId, HeadSet, ModelConfig, ModelDropout,
    Weights,
};
use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Double, Device::Cpu);
const SINGLE: (Kind, Device) = (Kind::Float, Device::Cpu);

/// 3 layers of 4 heads of width 5, 23 words, 13 positions, 3 classes; weights are large enough for heads to matter.
fn config() -> ClassifierConfig {
    let json = serde_json::json!({
        "model_type": "bert", "vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 3,
        "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
        "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": 0.4,
    });
    let config: ClassifierConfig = serde_json::from_value(json).unwrap();
    config.with_labels(&["no", "perhaps", "yes"].map(str::to_owned))
}

fn model(options: (Kind, Device)) -> Classifier {
    Classifier::random(config(), 3, options).unwrap()
}

type Text = (Vec<u32>, Vec<u32>);

fn logits(model: &Classifier, texts: &[Text], gates: &Gates) -> Tensor {
    let rows: Vec<(&[u32], &[u32])> = texts.iter().map(|(ids, kinds)| (&ids[..], &kinds[..])).collect();
    model.forward(&model.batch(&rows).unwrap(), gates, &ModelDropout::OFF)
}

fn gap(left: &Tensor, right: &Tensor) -> f64 {
    (left - right).abs().max().double_value(&[])
}

fn texts() -> impl Strategy<Value = Vec<Text>> {
    let text =
        prop::collection::vec((1_u32..23, 0_u32..2), 1..=13).prop_map(|tokens| tokens.into_iter().unzip());
    prop::collection::vec(text, 1..6)
}

fn heads() -> impl Strategy<Value = HeadSet> {
    let id = (0_usize..3, 0_usize..4).prop_map(|(layer, head)| head_id(layer, head));
    prop::collection::vec(id, 0..8).prop_map(|heads| heads.into_iter().collect())
}

fn head_id(layer: usize, head: usize) -> HeadId {
    HeadId::from_index(Attention::SelfAttention, layer, head)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_batch_gives_what_its_texts_give_alone(texts in texts(), heads in heads()) {
        let model = model(OPTIONS);
        let gates = Gates::masking(&model.layout(), &[heads], OPTIONS).unwrap();
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
    let gates = Gates::open(&model.layout(), SINGLE);
    let run = |seed| model.forward(&batch, &gates, &ModelDropout::new(model.config().dropout(), seed));
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert_ne!(run(1), model.forward(&batch, &gates, &ModelDropout::OFF));
}

#[test]
fn what_the_tables_have_no_row_for_is_refused() {
    let model = model(OPTIONS);
    let refusal = |ids: &[u32], segments: &[u32]| model.batch(&[(ids, segments)]).unwrap_err().to_string();
    assert_eq!(refusal(&[23], &[0]), "token 23 is outside the embeddings, which have 23 rows");
    assert_eq!(refusal(&[1], &[2]), "segment 2 is outside the embeddings, which have 2 rows");
    let long = [1; 14];
    assert_eq!(refusal(&long, &[0; 14]), "a text of 14 tokens is longer than the 13 positions of the model");
}

/// Writes the model with renamed tensors; `None` drops a tensor.
fn save_renamed(folder: &Path, rename: impl Fn(&str) -> Option<String>) -> Classifier {
    let saved = model(SINGLE);
    saved.save(folder).unwrap();
    let renamed =
        saved.weights().iter().filter_map(|(name, tensor)| Some((rename(name)?, tensor.shallow_clone())));
    Weights::from_tensors(renamed).write(&folder.join("model.safetensors")).unwrap();
    saved
}

/// TensorFlow's names of norms, no prefix, and pretraining heads.
#[test]
fn folders_of_all_ages_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let saved = save_renamed(folder.path(), |name| {
        let name = name.strip_prefix("bert.").unwrap_or(name);
        let name =
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
        Some(if name == "classifier.bias" { "cls.predictions.bias".to_owned() } else { name })
    });
    let labels = saved.config().labels();
    let loaded = Classifier::load_pretrained(folder.path(), (&labels, Classified::Texts), 7, SINGLE).unwrap();
    assert_eq!(loaded.new, ["classifier.bias"]);
    for (name, tensor) in saved.weights().iter().filter(|(name, _)| *name != "classifier.bias") {
        assert_eq!(loaded.model.weights().get(name).unwrap(), *tensor, "{name}");
    }
}

#[test]
fn a_missing_classifier_is_new_for_fine_tuning_and_an_error_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    save_renamed(path, |name| {
        (!name.starts_with("classifier") && !name.contains("pooler")).then(|| name.to_owned())
    });
    let refusal = Classifier::load(path, SINGLE).unwrap_err().to_string();
    assert!(refusal.contains("lacks tensor `bert.pooler.dense.bias`"), "{refusal}");
    let labels = ["a", "b", "c", "d"].map(str::to_owned);
    let pretrained = Classifier::load_pretrained(path, (&labels, Classified::Texts), 7, SINGLE).unwrap();
    let new = ["bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias"];
    assert_eq!(pretrained.new, new);
    assert_eq!(pretrained.model.config().labels(), labels);
    assert_eq!(pretrained.model.weights().get("classifier.weight").unwrap().size(), [4, 20]);
    let again = Classifier::load_pretrained(path, (&labels, Classified::Texts), 7, SINGLE).unwrap().model;
    let weight = |model: &Classifier| model.weights().get("classifier.weight").unwrap();
    assert_eq!(weight(&again), weight(&pretrained.model), "initial weights depend on the seed alone");
}

/// Classes that differ in number, names or order; but a pooler of another size is refused.
#[test]
fn a_classifier_for_other_classes_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    save_renamed(folder.path(), |name| Some(name.to_owned()));
    let new = |labels: &[&str]| {
        let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
        Classifier::load_pretrained(folder.path(), (&labels, Classified::Texts), 7, SINGLE)
            .map(|pretrained| pretrained.new)
    };
    let classifier = ["classifier.weight", "classifier.bias"];
    assert_eq!(new(&["a", "b"]).unwrap(), classifier);
    assert_eq!(new(&["yes", "perhaps", "no"]).unwrap(), classifier);
    assert!(new(&["no", "perhaps", "yes"]).unwrap().is_empty());

    let saved = model(SINGLE);
    let pooler = (String::from("bert.pooler.dense.bias"), Tensor::zeros([7], SINGLE));
    let others = saved.weights().iter().filter(|(name, _)| *name != pooler.0);
    let tensors = others.map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
    Weights::from_tensors(tensors.chain([(pooler.0.clone(), pooler.1.shallow_clone())]))
        .write(&folder.path().join("model.safetensors"))
        .unwrap();
    let message = new(&["a", "b"]).unwrap_err().to_string();
    assert!(message.contains("tensor `bert.pooler.dense.bias` is [7]"), "{message}");
}

/// One, as for regression, although tensors have three, or none.
#[test]
fn the_classes_of_a_pretrained_folder_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    model(SINGLE).save(folder.path()).unwrap();
    let path = folder.path().join("config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for names in [serde_json::json!({"0": "LABEL_0"}), serde_json::json!({})] {
        config["id2label"] = names;
        fs::write(&path, config.to_string()).unwrap();
        assert!(Classifier::load(folder.path(), SINGLE).is_err());
        let labels = ["a", "b", "c"].map(str::to_owned);
        let pretrained =
            Classifier::load_pretrained(folder.path(), (&labels, Classified::Texts), 7, SINGLE).unwrap();
        assert_eq!(pretrained.new, ["classifier.weight", "classifier.bias"]);
    }
}
