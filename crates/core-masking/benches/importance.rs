//! Time of scoring all heads by Equation 2, beside the forward and backward pass of a training step on the same batch, on
//! one thread as each thread of an experiment has.
//!
//! Both in turn; the ratio of their medians is printed, for a classifier of MiniLM's size and a small translator.
#![expect(clippy::unwrap_used, reason = "a benchmark has no one to report an error to")]
use std::collections::BTreeSet;
use std::time::Instant;

use core_masking::bert::{BertClassifier, BertConfig, BertDropout};
use core_masking::importance::{measure_classifier, measure_translator};
use core_masking::loss::{PairBatch, label_losses, sentence_losses};
use core_masking::marian::{Marian, MarianConfig};
use core_masking::{Gates, Measure, Weights};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const REPEATS: usize = 9;

/// The same weights as leaves that require gradients.
fn trainable(weights: &Weights) -> Weights {
    let leaf = |(name, tensor): (&str, &Tensor)| (name.to_owned(), tensor.copy().set_requires_grad(true));
    Weights::from_tensors(weights.iter().map(leaf))
}

/// Runs both in turn and prints their medians in milliseconds and the ratio.
fn compare(name: &str, training: impl Fn(), importance: impl Fn()) {
    let time = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    let (mut steps, mut scores) = (Vec::new(), Vec::new());
    for repeat in 0..=REPEATS {
        let (step, score) = (time(&training), time(&importance));
        // the first pass warms up
        if repeat > 0 {
            steps.push(step);
            scores.push(score);
        }
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (step, score) = (median(steps), median(scores));
    let ratio = score / step;
    println!(
        "{name}: importance {score:.0} ms, forward and backward of training {step:.0} ms, ratio {ratio:.2}"
    );
}

fn classifier() {
    let json = serde_json::json!({
        "model_type": "bert", "vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6,
        "num_attention_heads": 12, "intermediate_size": 1536, "hidden_act": "gelu",
        "max_position_embeddings": 512, "type_vocab_size": 2,
    });
    let config: BertConfig = serde_json::from_value(json).unwrap();
    let config = config.with_labels(&["0", "1"].map(str::to_owned));
    let model = BertClassifier::random(config, 1, OPTIONS).unwrap();
    let text = |row: u32| (0..45 + row % 20).map(|place| (1000 + (row * 37 + place * 11) % 9000, 0)).unzip();
    let texts: Vec<(Vec<u32>, Vec<u32>)> = (0..32).map(text).collect();
    let rows: Vec<(&[u32], &[u32])> = texts.iter().map(|(ids, segments)| (&ids[..], &segments[..])).collect();
    let batch = model.batch(&rows).unwrap();
    let labels = Tensor::from_slice(&(0..32).map(|row| row % 2).collect::<Vec<i64>>());
    let learner = BertClassifier::new(model.config().clone(), trainable(model.weights())).unwrap();
    let (open, measures) = (Gates::open(&model.layout(), OPTIONS), BTreeSet::from([Measure::Example]));
    compare(
        "classifier of MiniLM's size, 32 texts",
        || label_losses(&learner, &batch, &labels, &open, &BertDropout::OFF).mean(None).backward(),
        || drop(measure_classifier(&model, &batch, &labels, &open, &measures)),
    );
}

fn translator() {
    let json = serde_json::json!({
        "model_type": "marian", "vocab_size": 8000, "d_model": 128, "encoder_layers": 6,
        "encoder_attention_heads": 8, "encoder_ffn_dim": 512, "decoder_layers": 6, "decoder_attention_heads": 8,
        "decoder_ffn_dim": 512, "activation_function": "relu", "max_position_embeddings": 128,
        "scale_embedding": true, "pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 1,
    });
    let config: MarianConfig = serde_json::from_value(json).unwrap();
    let model = Marian::random(config, 1, OPTIONS).unwrap();
    let sentence =
        |row: u32| (0..10 + row % 12).map(|place| 2 + (row * 91 + place * 7) % 7990).chain([0]).collect();
    let sentences: Vec<Vec<u32>> = (0..64).map(sentence).collect();
    let rows: Vec<&[u32]> = sentences.iter().map(Vec::as_slice).collect();
    let learner = Marian::new(model.config().clone(), trainable(model.weights())).unwrap();
    let batch = PairBatch::new(&model, &rows, &rows);
    let (open, measures) = (Gates::open(&model.layout(), OPTIONS), BTreeSet::from([Measure::Example]));
    compare(
        "translator of Multi30k's size, 64 pairs",
        || sentence_losses(&learner, &batch, &open).sum(None).backward(),
        || drop(measure_translator(&model, &batch, &open, &measures)),
    );
}

fn main() {
    tch::set_num_threads(1);
    classifier();
    translator();
}
