//! Rankings of heads agree with Hugging Face transformers on a random BERT classifier: `crates/test-support/golden/README.md` describes the
//! numbers. Logits, losses and derivatives of all families are in `golden_classifiers.rs`.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeSet;

use core_masking::classifier::{Inputs, LabelledBatch};
use core_masking::{Classifier, GatedModel, Gates, HeadScores, Measure};
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

    /// Returns token ids and segments of each text, without padding.
    fn texts(&self) -> Vec<(Vec<u32>, Vec<u32>)> {
        let lengths = self.rows("attention_mask").into_iter().map(|row| row.iter().sum::<u32>() as usize);
        let pairs = self.rows("input_ids").into_iter().zip(self.rows("token_type_ids"));
        lengths
            .zip(pairs)
            .map(|(length, (ids, segments))| (ids[..length].to_vec(), segments[..length].to_vec()))
            .collect()
    }

    fn batch(&self) -> Inputs {
        let texts = self.texts();
        let rows: Vec<(&[u32], &[u32])> =
            texts.iter().map(|(ids, segments)| (ids.as_slice(), segments.as_slice())).collect();
        self.model.batch(&rows).unwrap()
    }

    fn open(&self) -> Gates {
        Gates::open(&self.model.layout(), OPTIONS)
    }

    fn examples(&self) -> LabelledBatch {
        let labels: Vec<i64> = serde_json::from_value(self.numbers["labels"].clone()).unwrap();
        LabelledBatch { inputs: self.batch(), labels: Tensor::from_slice(&labels) }
    }

    /// Compares with the numbers `name`, `[layers][heads]`.
    fn assert_scores(&self, name: &str, found: &HeadScores) {
        let found: Vec<f64> = found.iter().map(|(_, score)| score).collect();
        let expected = tensor(&self.numbers[name]);
        // single precision reaches about 1e-4 relative (golden/README.md)
        let found = Tensor::from_slice(&found).view([3, 4]);
        let gap = gap(&found, &expected) / expected.abs().max().double_value(&[]);
        assert!(gap < 1e-4, "{name} differs by {gap:e} of its size");
    }
}

/// Each ranking alone, and all in one pass.
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
