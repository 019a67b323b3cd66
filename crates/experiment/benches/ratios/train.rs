//! Training from text to model, compared with the bare optimiser steps of an equal model in eager PyTorch.
use std::fs;
use std::path::{Path, PathBuf};

use core_masking::ClassifierConfig;
use core_masking::TranslatorConfig;
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::sentence_tokenizer::SentenceTokenizer;
use corpus::tokenizer::SubwordTokenizer;
use serde_json::{Value, json};
use subject::Description;
use tempfile::TempDir;
use training::Machine;

use crate::peer::Peer;
use crate::{Context, Row, timed};

/// Words per line.
const LENGTH: usize = 20;

const SYLLABLES: [&str; 15] =
    ["be", "ba", "bo", "bu", "bi", "da", "de", "do", "du", "di", "ga", "ge", "go", "gu", "gi"];

/// Words of three syllables.
const WORDS: u64 = 15 * 15 * 15;

const CLASSIFIER: &str = r#"
task = "classification"
description = "A classifier of MiniLM's size"
[data]
test = "dev"
labels = ["0", "1"]
format = { kind = "tsv", text = "text", label = "label" }
[data.splits]
train = "train.tsv"
dev = "dev.tsv"
[score]
metric = "accuracy"
[tokenizer]
vocabulary = 4000
max_length = 128
[model]
layers = 6
heads = 12
d_model = 384
d_ff = 1536
dropout = 0.1
[training]
seed = 1
epochs = 1
batch_size = 32
learning_rate = 1e-5
keep = "last"
"#;

const TRANSLATOR: &str = r#"
description = "A translator of Multi30k's size"
[data]
dev = "dev"
test = "dev"
[data.splits]
train = { source = "train.txt", target = "train.txt" }
dev = { source = "dev.txt", target = "dev.txt" }
[tokenizer]
vocabulary = 8000
[model]
layers = 6
heads = 8
d_model = 128
d_ff = 512
activation = "relu"
dropout = 0.1
positions = 128
[training]
seed = 1
epochs = 1
batch_tokens = 2000
peak_learning_rate = 1e-5
warmup_steps = 10
label_smoothing = 0.1
clip_norm = 1.0
[decoding]
length_ratio = 1.5
length_offset = 10
"#;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    for (name, spec, lines, task) in [
        (
            "fine-tuning a classifier of MiniLM's size",
            CLASSIFIER,
            640,
            of_classifier as fn(&Path, &[String]) -> Value,
        ),
        ("training a translator for Multi30k", TRANSLATOR, 3_000, of_translator),
    ] {
        let lines = text(lines);
        let trained = Trained::new(context, spec, &lines);
        let mut task = task(&trained.train(), &lines);
        let steps = trained.steps();
        task["do"] = "train".into();
        task["threads"] = context.machine.threads.into();
        task["steps"] = steps.into();
        task["rows"] = (lines.len() / steps).into();
        let ratio = Peer::start(context, task)
            .map(|mut peer| context.ratio(|| timed(|| drop(trained.train())), || peer.seconds()));
        row(Row { name: format!("{name}, relative to eager PyTorch"), ratio, wanted: 1.0 });
    }
}

/// A setup in a temporary folder.
struct Trained {
    folder: TempDir,
    machine: Machine,
}

impl Trained {
    fn new(context: &Context, spec: &str, lines: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (file, lines) in [("train", lines), ("dev", &lines[..8])] {
            let labelled = lines.iter().zip([0, 1].into_iter().cycle());
            let labelled: String = labelled.map(|(line, label)| format!("{line}\t{label}\n")).collect();
            fs::write(folder.path().join(format!("{file}.tsv")), format!("text\tlabel\n{labelled}")).unwrap();
            fs::write(folder.path().join(format!("{file}.txt")), lines.join("\n") + "\n").unwrap();
        }
        fs::write(folder.path().join("made-up.toml"), spec).unwrap();
        let machine = Machine { data: folder.path().to_owned(), quiet: true, ..context.machine.clone() };
        Self { folder, machine }
    }

    /// Trains from scratch; returns the model's folder.
    fn train(&self) -> PathBuf {
        let description = Description::read(&self.folder.path().join("made-up.toml")).unwrap();
        description.train(&self.machine, &self.folder.path().join("results"), true).unwrap()
    }

    /// Returns the number of steps of the epoch, the second column of its row.
    fn steps(&self) -> usize {
        let curve = fs::read_to_string(self.folder.path().join("results/made-up/training.csv")).unwrap();
        curve.lines().nth(1).unwrap().split(',').nth(1).unwrap().parse().unwrap()
    }
}

/// Returns lines of synthetic words, some of which are frequent.
fn text(lines: usize) -> Vec<String> {
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % WORDS
    };
    let mut word = || {
        let rank = next().min(next()).min(next());
        [rank / 225, rank / 15 % 15, rank % 15].map(|syllable| SYLLABLES[syllable as usize]).concat()
    };
    (0..lines).map(|_| (0..LENGTH).map(|_| word()).collect::<Vec<_>>().join(" ")).collect()
}

/// Returns the mean number of tokens per line.
fn mean(lines: &[String], tokens: impl Fn(&String) -> usize) -> usize {
    lines.iter().map(tokens).sum::<usize>() / lines.len()
}

fn of_classifier(model: &Path, lines: &[String]) -> Value {
    let tokenizer = ClassifierTokenizer::load(model, 128).unwrap();
    let length = mean(lines, |line| tokenizer.encode(line, None).unwrap().ids.len());
    let config = ClassifierConfig::read(&model.join("config.json")).unwrap();
    json!({
        "family": "bert", "lengths": [length], "labels": 2, "config": {
            "vocab_size": config.vocab_size, "hidden_size": config.hidden_size,
            "num_hidden_layers": config.num_hidden_layers, "num_attention_heads": config.num_attention_heads,
            "intermediate_size": config.intermediate_size,
        },
    })
}

fn of_translator(model: &Path, lines: &[String]) -> Value {
    let tokenizer = SubwordTokenizer::load(&model.join("tokenizer.json")).unwrap();
    let length = mean(lines, |line| tokenizer.encode(line).unwrap().len());
    let config = TranslatorConfig::read(&model.join("config.json")).unwrap();
    json!({ "family": "marian", "lengths": [length, length], "labels": 0, "config": config })
}
