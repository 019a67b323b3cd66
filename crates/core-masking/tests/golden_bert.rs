//! Agreement with Hugging Face transformers on a random BERT classifier: `crates/test-support/golden/README.md` says how
//! the numbers were made. Heads and layers count from 0 there.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::{BTreeMap, BTreeSet};

use core_masking::classifier::LabelledBatch;
use core_masking::{
    Attention, Classifier, GatedModel, Gates, HeadScores, Measure, ModelDropout, SegmentBatch,
};
use golden::{gap, tensor};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);

struct Golden {
    model: Classifier,
    numbers: Value,
}

impl Golden {
    fn load() -> Self {
        let (folder, numbers) = golden::load("bert-random.json");
        let model = Classifier::load(&folder.join("bert-random"), OPTIONS).unwrap();
        Self { model, numbers }
    }

    fn rows(&self, name: &str) -> Vec<Vec<u32>> {
        serde_json::from_value(self.numbers[name].clone()).unwrap()
    }

    /// Token ids and segments of each text, without padding.
    fn texts(&self) -> Vec<(Vec<u32>, Vec<u32>)> {
        let lengths = self.rows("attention_mask").into_iter().map(|row| row.iter().sum::<u32>() as usize);
        let pairs = self.rows("input_ids").into_iter().zip(self.rows("token_type_ids"));
        lengths
            .zip(pairs)
            .map(|(length, (ids, segments))| (ids[..length].to_vec(), segments[..length].to_vec()))
            .collect()
    }

    fn batch(&self) -> SegmentBatch {
        let texts = self.texts();
        let rows: Vec<(&[u32], &[u32])> =
            texts.iter().map(|(ids, segments)| (ids.as_slice(), segments.as_slice())).collect();
        self.model.batch(&rows).unwrap()
    }

    fn logits(&self, gates: &Gates) -> Tensor {
        self.model.forward(&self.batch(), gates, &ModelDropout::OFF)
    }

    fn open(&self) -> Gates {
        Gates::open(&self.model.layout(), OPTIONS)
    }

    fn examples(&self) -> LabelledBatch {
        let labels: Vec<i64> = serde_json::from_value(self.numbers["labels"].clone()).unwrap();
        LabelledBatch { texts: self.batch(), labels: Tensor::from_slice(&labels) }
    }

    fn losses(&self, gates: &Gates) -> Tensor {
        self.model.losses(&self.examples(), gates, &ModelDropout::OFF)
    }

    /// Compares with the numbers called `name`, `[layers][heads]`.
    fn assert_scores(&self, name: &str, found: &HeadScores) {
        let found: Vec<f64> = found.iter().map(|(_, score)| score).collect();
        let expected = tensor(&self.numbers[name]);
        // about 1e-4 relative is what single precision reaches (golden/README.md)
        let found = Tensor::from_slice(&found).view([3, 4]);
        let gap = gap(&found, &expected) / expected.abs().max().double_value(&[]);
        assert!(gap < 1e-4, "{name} differs by {gap:e} of its size");
    }
}

#[test]
fn logits_agree() {
    let golden = Golden::load();
    let gap = gap(&golden.logits(&golden.open()), &tensor(&golden.numbers["logits"]));
    assert!(gap < 1e-4, "logits differ by {gap:e}");
}

#[test]
fn logits_agree_with_each_head_masked() {
    let golden = Golden::load();
    let cases = &golden.numbers["logits_with_one_head_masked"];
    assert_eq!(golden::compare_masked(&golden.model, cases, 1e-4, gap, |gates| golden.logits(gates)), 12);
}

/// A layer without heads, and a gate of 1/2, among them.
#[test]
fn logits_agree_with_several_gates() {
    let golden = Golden::load();
    let gates = golden.numbers["several_gates"].as_object().unwrap();
    let layers: Vec<Tensor> = gates.values().map(|gates| tensor(gates).to_kind(Kind::Float)).collect();
    let stacked = Tensor::stack(&layers, 0).unsqueeze(1); // [layers, 1, heads]
    let gates = Gates::from_stacked(&BTreeMap::from([(Attention::SelfAttention, stacked)]));
    let gap = gap(&golden.logits(&gates), &tensor(&golden.numbers["logits_with_several_gates"]));
    assert!(gap < 1e-4, "logits differ by {gap:e}");
}

#[test]
fn losses_agree() {
    let golden = Golden::load();
    let expected = tensor(&golden.numbers["loss"]);
    let found = golden.losses(&golden.open());
    let gap = ((found.to_kind(Kind::Double) - &expected) / &expected).abs().max().double_value(&[]);
    assert!(gap < 1e-4, "losses differ by {gap:e} of their size");
}

#[test]
fn gradients_of_the_gates_agree() {
    let golden = Golden::load();
    let rows = golden.texts().len() as i64;
    let xi = Tensor::ones([3, rows, 4], OPTIONS).set_requires_grad(true);
    let gates = BTreeMap::from([(Attention::SelfAttention, xi)]);
    golden.losses(&Gates::from_stacked(&gates)).sum(None).backward();
    let found = gates[&Attention::SelfAttention].grad();
    let expected = tensor(&golden.numbers["dloss_dxi_by_example"]);
    // about 1e-4 relative is what single precision reaches (golden/README.md)
    let gap = gap(&found, &expected) / expected.abs().max().double_value(&[]);
    assert!(gap < 1e-4, "dL/dxi differs by {gap:e} of its size");
}

/// Each measure alone, and all in one pass.
#[test]
fn scores_of_heads_agree() {
    let golden = Golden::load();
    let cases = [
        (Measure::Example, "importance_example"),
        (Measure::Token, "importance_token"),
        (Measure::AttentionGradient, "importance_attention"),
        (Measure::Entropy, "entropy_nats"),
        (Measure::Confidence, "confidence"),
    ];
    let measure = |measures: &[Measure]| {
        let measures: BTreeSet<Measure> = measures.iter().copied().collect();
        golden.model.measure(&golden.examples(), &golden.open(), &measures)
    };
    let together = measure(&Measure::of_passes().collect::<Vec<_>>());
    for (case, name) in cases {
        golden.assert_scores(name, &measure(&[case])[&case].means());
        golden.assert_scores(name, &together[&case].means());
    }
    golden.assert_scores(
        "importance_example_normalised",
        &together[&Measure::Example].means().normalised_by_layer(),
    );
    golden.assert_scores(
        "importance_token_normalised",
        &together[&Measure::Token].means().normalised_by_layer(),
    );
}
