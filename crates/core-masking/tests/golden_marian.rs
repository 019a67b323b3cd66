//! Importance and beam search under gates agree with Hugging Face transformers on a random Marian translator:
//! `crates/test-support/golden/README.md` describes the numbers. Logits, losses, derivatives and beam search of all families are in
//! `golden_encoder_decoders.rs`.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeSet;

use core_masking::loss::PairBatch;
use core_masking::{BeamSearch, GatedModel, Gates, HeadId, HeadSet, Measure, Stopping, Translator};
use golden::{gap, tensor};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);

struct Golden {
    model: Translator,
    numbers: Value,
}

impl Golden {
    fn load() -> Self {
        let (folder, numbers) = golden::load("marian-random.json");
        let model = Translator::load(&folder.join("marian-random"), OPTIONS).unwrap();
        Self { model, numbers }
    }

    fn rows(&self, name: &str) -> Vec<Vec<u32>> {
        serde_json::from_value(self.numbers[name].clone()).unwrap()
    }

    /// Returns rows without padding, token 60. The end token stays.
    fn sentences(&self, name: &str) -> Vec<Vec<u32>> {
        let unpadded = |row: Vec<u32>| row.into_iter().filter(|&token| token != 60).collect();
        self.rows(name).into_iter().map(unpadded).collect()
    }

    fn batch(&self) -> PairBatch {
        let (sources, targets) = (self.sources(), self.sentences("target_ids"));
        PairBatch::new(&self.model, &slices(&sources), &slices(&targets))
    }

    fn sources(&self) -> Vec<Vec<u32>> {
        self.sentences("source_ids")
    }

    fn open(&self) -> Gates {
        Gates::open(&self.model.layout(), OPTIONS)
    }

    fn masking(&self, heads: impl IntoIterator<Item = HeadId>) -> Gates {
        Gates::masking(&self.model.layout(), &[heads.into_iter().collect::<HeadSet>()], OPTIONS).unwrap()
    }

    fn greedy(&self, gates: &Gates) -> Vec<Vec<u32>> {
        let search = BeamSearch {
            beam: 1,
            length_penalty: 1.0,
            stopping: Stopping::Early,
            length_limit: (0.0, 20),
            rules: None,
        };
        let sources = self.sources();
        let found = search.translate(&self.model, &slices(&sources), gates).unwrap();
        found.into_iter().map(|translation| translation.tokens).collect()
    }

    /// Returns generated rows as transformers prints them, without start, end and padding tokens.
    fn generated(&self, name: &str) -> Vec<Vec<u32>> {
        let words = |row: Vec<u32>| row.into_iter().filter(|token| ![0, 60].contains(token)).collect();
        self.rows(name).into_iter().map(words).collect()
    }
}

fn slices(rows: &[Vec<u32>]) -> Vec<&[u32]> {
    rows.iter().map(Vec::as_slice).collect()
}

/// Equation 2 is the mean of the gradients' absolute values over sentences.
#[test]
fn importance_agrees_with_the_gradients() {
    let golden = Golden::load();
    let measures = BTreeSet::from([Measure::Example]);
    let measured = golden.model.measure(&golden.batch(), &golden.open(), &measures);
    let found = measured[&Measure::Example].means();
    for (key, expected) in golden.numbers["dloss_dxi_by_sentence"].as_object().unwrap() {
        let (attention, numbers) = golden::place(key);
        let expected = tensor(expected).abs().mean_dim(0, false, None); // [heads]
        let score = |head| found.get(HeadId::from_index(attention, numbers[0], head)).unwrap();
        let found = Tensor::from_slice(&(0..4).map(score).collect::<Vec<f64>>());
        let gap = gap(&found, &expected) / expected.max().double_value(&[]);
        assert!(gap < 1e-4, "importance of {key} differs by {gap:e} of its size");
    }
}

#[test]
fn greedy_search_agrees() {
    let golden = Golden::load();
    assert_eq!(golden.greedy(&golden.open()), golden.generated("greedy"));
}

#[test]
fn greedy_search_with_gates_agrees() {
    let golden = Golden::load();
    let mut closed = Vec::new();
    for (key, gates) in golden.numbers["greedy_gates"].as_object().unwrap() {
        let (attention, numbers) = golden::place(key);
        let gates: Vec<f64> = serde_json::from_value(gates.clone()).unwrap();
        let heads = (0..gates.len()).filter(|&head| gates[head] == 0.0);
        closed.extend(heads.map(|head| HeadId::from_index(attention, numbers[0], head)));
    }
    let found = golden.greedy(&golden.masking(closed));
    assert_eq!(found, golden.generated("greedy_with_gates"));
}
