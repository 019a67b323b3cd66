//! Agreement with Hugging Face transformers on a random Marian translator: `crates/test-support/golden/README.md` says how
//! the numbers were made. Heads and layers count from 0 there.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::{BTreeMap, BTreeSet};

use core_masking::loss::PairBatch;
use core_masking::{
    BeamSearch, GatedModel, Gates, HeadId, HeadSet, Measure, ModelDropout, Stopping, Translator,
};
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

    /// Rows without their padding, the symbol 60. The end symbol stays.
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

    fn logits(&self, gates: &Gates) -> Tensor {
        let batch = self.batch();
        let memory = self.model.encode(&batch.source, gates, &ModelDropout::OFF);
        let hidden =
            self.model.decode(&batch.decoder_input, &memory, &batch.source.bias, gates, &ModelDropout::OFF);
        self.model.logits(&hidden)
    }

    fn open(&self) -> Gates {
        Gates::open(&self.model.layout(), OPTIONS)
    }

    fn masking(&self, heads: impl IntoIterator<Item = HeadId>) -> Gates {
        Gates::masking(&self.model.layout(), &[heads.into_iter().collect::<HeadSet>()], OPTIONS).unwrap()
    }

    fn search(&self, beam: usize, gates: &Gates) -> Vec<Vec<u32>> {
        let search = BeamSearch {
            beam,
            length_penalty: 1.0,
            stopping: Stopping::Early,
            length_limit: (0.0, 20),
            rules: None,
        };
        let sources = self.sources();
        let found = search.translate(&self.model, &slices(&sources), gates).unwrap();
        found.into_iter().map(|translation| translation.tokens).collect()
    }

    /// Generated rows as transformers prints them, without start, end and padding symbols.
    fn generated(&self, name: &str) -> Vec<Vec<u32>> {
        let words = |row: Vec<u32>| row.into_iter().filter(|token| ![0, 60].contains(token)).collect();
        self.rows(name).into_iter().map(words).collect()
    }
}

fn slices(rows: &[Vec<u32>]) -> Vec<&[u32]> {
    rows.iter().map(Vec::as_slice).collect()
}

/// Real target positions only: transformers computes something at padding too, and nobody reads it.
#[test]
fn logits_agree() {
    let golden = Golden::load();
    let found = golden.logits(&golden.open());
    let gap = gap(&found, &tensor(&golden.numbers["logits"]));
    assert!(gap < 1e-4, "logits differ by {gap:e}");
}

#[test]
fn logits_agree_with_each_head_masked() {
    let golden = Golden::load();
    let cases = &golden.numbers["logits_first8_with_one_head_masked"];
    let logits = |gates: &Gates| golden.logits(gates).narrow(2, 0, 8);
    assert_eq!(golden::compare_masked(&golden.model, cases, 1e-4, gap, logits), 36);
}

#[test]
fn sentence_losses_agree() {
    let golden = Golden::load();
    let found = golden.model.losses(&golden.batch(), &golden.open(), &ModelDropout::OFF);
    let expected = tensor(&golden.numbers["loss_by_sentence"]);
    let gap = ((found.to_kind(Kind::Double) - &expected) / &expected).abs().max().double_value(&[]);
    assert!(gap < 1e-5, "losses differ by {gap:e} of their size");
}

#[test]
fn gradients_of_the_gates_agree() {
    let golden = Golden::load();
    let rows = golden.sources().len() as i64;
    let ones = |shape: core_masking::LayerShape| {
        Tensor::ones([shape.layers as i64, rows, shape.heads as i64], OPTIONS).set_requires_grad(true)
    };
    let stacked: BTreeMap<_, _> =
        golden.model.layout().types().map(|(attention, shape)| (attention, ones(shape))).collect();
    let gates = Gates::from_stacked(&stacked);
    golden.model.losses(&golden.batch(), &gates, &ModelDropout::OFF).sum(None).backward();
    let cases = golden.numbers["dloss_dxi_by_sentence"].as_object().unwrap();
    assert_eq!(cases.len(), 9);
    for (key, expected) in cases {
        let (attention, numbers) = golden::place(key);
        let found = stacked[&attention].grad().select(0, numbers[0] as i64); // [rows, heads]
        let expected = tensor(expected);
        // about 1e-4 relative is what single precision reaches (golden/README.md)
        let scale = expected.abs().max().double_value(&[]);
        let gap = gap(&found, &expected) / scale;
        assert!(gap < 1e-4, "dL/dxi of {key} differs by {gap:e} of its size");
    }
}

/// Equation 2 is the mean of their absolute values over sentences.
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
    assert_eq!(golden.search(1, &golden.open()), golden.generated("greedy"));
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
    let found = golden.search(1, &golden.masking(closed));
    assert_eq!(found, golden.generated("greedy_with_gates"));
}

#[test]
fn beam_search_agrees() {
    let golden = Golden::load();
    let found = golden.search(5, &golden.open());
    assert_eq!(found, golden.generated("beam5_length_penalty1_early_stopping"));
}
