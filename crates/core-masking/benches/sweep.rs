//! Masking each head in turn: sharing what the head sets have in common, beside evaluating them one by one.
//!
//! `cargo bench -p core-masking --bench sweep`. Random weights, one batch, one thread, A B A B. One by one is the plain
//! forward pass of each set: all layers at all positions. It is timed on one head of each layer, since all heads of a
//! layer cost it the same.
#![expect(clippy::unwrap_used, reason = "a benchmark has no one to report an error to")]
use std::time::Instant;

use core_masking::bert::{BertClassifier, BertConfig, BertDropout, Variants};
use core_masking::{Gates, HeadId, HeadSet, SegmentBatch};
use tch::{Device, Kind, no_grad};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const ROUNDS: usize = 3;

/// Layers, heads and d_model; d_ff is 4 times as wide.
const MODELS: [(&str, i64, i64, i64); 2] = [("MiniLM", 6, 12, 384), ("BERT base", 12, 12, 768)];

/// Tokens of each text, and texts of the batch.
const TEXTS: (usize, usize) = (40, 12);

fn main() {
    tch::set_num_threads(1);
    println!("{:<10} {:>12} {:>12} {:>8}", "model", "one by one", "together", "ratio");
    for (name, layers, heads, width) in MODELS {
        let model = model(layers, heads, width);
        let batch = batch(&model);
        let sets: Vec<HeadSet> =
            model.layout().heads().into_iter().map(|id| HeadSet::from_iter([id])).collect();
        let mut seconds = [Vec::new(), Vec::new()];
        for round in 0..=ROUNDS {
            let alone = timed(|| one_by_one(&model, &batch)) * heads as f64;
            let together = timed(|| together(&model, &batch, &sets));
            if round > 0 {
                seconds[0].push(alone);
                seconds[1].push(together);
            }
        }
        let [alone, together] = seconds.map(median);
        println!("{name:<10} {alone:>10.2} s {together:>10.2} s {:>8.2}", alone / together);
    }
}

fn model(layers: i64, heads: i64, width: i64) -> BertClassifier {
    let json = serde_json::json!({
        "model_type": "bert", "vocab_size": 1000, "hidden_size": width, "num_hidden_layers": layers,
        "num_attention_heads": heads, "intermediate_size": 4 * width, "hidden_act": "gelu",
        "max_position_embeddings": 128, "type_vocab_size": 2,
    });
    let config: BertConfig = serde_json::from_value(json).unwrap();
    BertClassifier::random(config, 1, OPTIONS).unwrap()
}

fn batch(model: &BertClassifier) -> SegmentBatch {
    let (length, texts) = TEXTS;
    let ids: Vec<u32> = (0..length as u32).map(|place| 1 + place * 7 % 900).collect();
    let segments = vec![0; length];
    model.batch(&vec![(&ids[..], &segments[..]); texts]).unwrap()
}

/// One head of each layer.
fn one_by_one(model: &BertClassifier, batch: &SegmentBatch) {
    let layout = model.layout();
    for id in layout.heads().into_iter().filter(|id: &HeadId| id.head_index() == 0) {
        let gates = Gates::masking(&layout, &[HeadSet::from_iter([id])], OPTIONS).unwrap();
        no_grad(|| plain(model, batch, &gates));
    }
}

/// All heads, layer by layer as a subject evaluates them.
fn together(model: &BertClassifier, batch: &SegmentBatch, sets: &[HeadSet]) {
    let mut trunk = None;
    for layer in sets.chunk_by(|left, right| lowest(left) == lowest(right)) {
        let variants = Variants::new(model, layer, false).unwrap();
        let (_, left) = no_grad(|| model.sweep(batch, &variants, 1, trunk.take()));
        trunk = Some(left);
    }
}

fn lowest(set: &HeadSet) -> Option<usize> {
    set.iter().map(HeadId::layer_index).min()
}

fn timed(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64()
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// All layers at all positions, as a model without this project's short cuts computes them.
fn plain(model: &BertClassifier, batch: &SegmentBatch, gates: &Gates) {
    let mut x = model.embed(batch, &BertDropout::OFF);
    for layer in 0..model.config().num_hidden_layers {
        x = model.layer(layer, &x, batch, gates, &BertDropout::OFF);
    }
}
