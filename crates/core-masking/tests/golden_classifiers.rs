//! Agreement with Hugging Face transformers on random classifiers of all families but BERT, which has more numbers of its own:
//! `crates/test-support/golden/README.md` says how they were made. Heads and layers count from 0 there.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeMap;

use core_masking::classifier::LabelledBatch;
use core_masking::{Attention, Classifier, ClassifierConfig, GatedModel, Gates, ModelDropout};
use golden::{gap, relative_gap, tensor};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const FAMILIES: [&str; 3] = ["roberta", "xlm-roberta", "distilbert"];

struct Golden {
    model: Classifier,
    numbers: Value,
}

impl Golden {
    fn load(family: &str) -> Self {
        let (folder, numbers) = golden::load(&format!("families/{family}.json"));
        Self { model: Classifier::load(&folder.join("families").join(family), OPTIONS).unwrap(), numbers }
    }

    fn examples(&self) -> LabelledBatch {
        let rows =
            |name: &str| -> Vec<Vec<f64>> { serde_json::from_value(self.numbers[name].clone()).unwrap() };
        let real = |(ids, mask): (Vec<f64>, Vec<f64>)| -> Vec<u32> {
            ids.into_iter().zip(mask).filter(|&(_, real)| real == 1.0).map(|(id, _)| id as u32).collect()
        };
        let texts: Vec<Vec<u32>> =
            rows("input_ids").into_iter().zip(rows("attention_mask")).map(real).collect();
        let segments: Vec<Vec<u32>> = texts.iter().map(|text| vec![0; text.len()]).collect();
        let rows: Vec<(&[u32], &[u32])> =
            texts.iter().zip(&segments).map(|(ids, segments)| (&ids[..], &segments[..])).collect();
        let labels = tensor(&self.numbers["labels"]).to_kind(Kind::Int64);
        LabelledBatch { texts: self.model.batch(&rows).unwrap(), labels }
    }

    fn logits(&self, gates: &Gates) -> Tensor {
        self.model.forward(&self.examples().texts, gates, &ModelDropout::OFF)
    }

    fn open(&self) -> Gates {
        Gates::open(&self.model.layout(), OPTIONS)
    }
}

#[test]
fn logits_agree_also_with_a_head_masked_and_under_several_gates() {
    for family in FAMILIES {
        let golden = Golden::load(family);
        let gap = |gates: &Gates, expected: &Value| gap(&golden.logits(gates), &tensor(expected));
        let open = gap(&golden.open(), &golden.numbers["logits"]);
        assert!(open < 1e-4, "{family}: {open:e}");
        let cases = &golden.numbers["logits_with_one_head_masked"];
        golden::compare_masked(&golden.model, cases, 1e-4, golden::gap, |gates| golden.logits(gates));
        let several = tensor(&golden.numbers["several_gates"]).to_kind(Kind::Float);
        let several = Gates::from_stacked(&BTreeMap::from([(Attention::SelfAttention, several)]));
        let several = gap(&several, &golden.numbers["logits_with_several_gates"]);
        assert!(several < 1e-4, "{family} under several gates: {several:e}");
    }
}

#[test]
fn losses_and_their_derivatives_by_gates_agree() {
    for family in FAMILIES {
        let golden = Golden::load(family);
        let ones = tensor(&golden.numbers["dloss_dxi_by_example"]).ones_like().to_kind(Kind::Float);
        let leaves = BTreeMap::from([(Attention::SelfAttention, ones.set_requires_grad(true))]);
        let gates = Gates::from_stacked(&leaves);
        let losses = golden.model.losses(&golden.examples(), &gates, &ModelDropout::OFF);
        let loss = relative_gap(&losses, &tensor(&golden.numbers["loss"]));
        assert!(loss < 1e-5, "{family}: losses differ by {loss:e} of the greatest");
        losses.sum(None).backward();
        let expected = tensor(&golden.numbers["dloss_dxi_by_example"]);
        let derivative = relative_gap(&leaves[&Attention::SelfAttention].grad(), &expected);
        assert!(derivative < 1e-4, "{family}: derivatives differ by {derivative:e} of the greatest");
    }
}

#[test]
fn a_folder_of_each_family_goes_there_and_back() {
    for family in FAMILIES {
        let golden = Golden::load(family);
        let folder = tempfile::tempdir().unwrap();
        golden.model.save(folder.path()).unwrap();
        let back = Classifier::load(folder.path(), OPTIONS).unwrap();
        assert_eq!(back.config(), golden.model.config());
        let logits = back.forward(&golden.examples().texts, &golden.open(), &ModelDropout::OFF);
        assert_eq!(logits, golden.logits(&golden.open()), "{family}");
        let original = std::fs::read_to_string(
            golden::load("versions.json").0.join("families").join(family).join("config.json"),
        );
        let [original, saved] = [original, std::fs::read_to_string(folder.path().join("config.json"))]
            .map(|text| serde_json::from_str::<BTreeMap<String, Value>>(&text.unwrap()).unwrap());
        for (name, value) in saved {
            assert_eq!(original.get(&name), Some(&value), "{family}: {name}");
        }
    }
}

/// Logits of transformers 4.57.1 for `<s> 7 <pad> 9 </s>` with all five attended to, in the notation of each family: RoBERTa
/// does not count a padding symbol that stands in a text, DistilBERT does.
#[test]
fn a_padding_symbol_within_a_text_has_the_position_that_its_family_gives_it() {
    let cases = [
        ("roberta", 1, [1.253_062_2, -2.026_901, -1.773_159_1]),
        ("distilbert", 0, [-0.187_008_04, -0.005_111_329, 0.839_947_94]),
    ];
    for (family, padding, expected) in cases {
        let model = Golden::load(family).model;
        let texts = model.batch(&[(&[0, 7, padding, 9, 2], &[0; 5])]).unwrap();
        let logits = model.forward(&texts, &Gates::open(&model.layout(), OPTIONS), &ModelDropout::OFF);
        let gap = gap(&logits, &Tensor::from_slice(&expected).view([1, 3]));
        assert!(gap < 1e-4, "{family}: {gap:e}");
    }
}

/// A `config.json` of one's own need not name its classes.
#[test]
fn classes_may_be_counted_instead_of_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let mut config = serde_json::json!({
        "model_type": "roberta", "vocab_size": 9, "hidden_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 5, "hidden_act": "gelu_python", "max_position_embeddings": 8, "num_labels": 3,
    });
    std::fs::write(&path, config.to_string()).unwrap();
    assert_eq!(ClassifierConfig::read(&path).unwrap().labels(), ["LABEL_0", "LABEL_1", "LABEL_2"]);
    config["num_labels"] = "many".into();
    std::fs::write(&path, config.to_string()).unwrap();
    let refusal = ClassifierConfig::read(&path).unwrap_err().to_string();
    assert!(refusal.contains("num_labels must be a number up to 65536"), "{refusal}");
}

/// A text of RoBERTa may have two tokens less than the table has rows: that of the padding and those before it are not used.
#[test]
fn a_text_longer_than_the_positions_behind_the_padding_is_refused() {
    let model = Golden::load("roberta").model;
    let ids = [5; 33];
    assert!(model.batch(&[(&ids[..32], &[0; 32])]).is_ok());
    let message = model.batch(&[(&ids, &[0; 33])]).unwrap_err().to_string();
    assert_eq!(message, "a text of 33 tokens is longer than the 32 positions of the model");
}
