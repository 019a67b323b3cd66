//! Importance of all heads by Equation 2, compared with the forward and backward pass of a training step on one batch. One thread, as in
//! each worker of an experiment.
use std::collections::BTreeSet;

use core_masking::classifier::LabelledBatch;
use core_masking::loss::PairBatch;
use core_masking::{
    Classifier, GatedModel, Gates, Measure, ModelDropout, Translator, TranslatorConfig, Weights,
};
use tch::{Kind, Tensor};

use crate::models::{MINILM, Timed, classifier, finish};
use crate::{Context, Row, timed};

/// It should take at most 1.3 times as long as a training step.
const WANTED: f64 = 1.0 / 1.3;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    tch::set_num_threads(1);
    let name =
        |model| format!("importance of all heads of {model}, vs. a training step's forward and backward");
    row(Row { name: name("MiniLM"), ratio: Ok(of_classifier(context)), wanted: WANTED });
    row(Row { name: name("a translator for Multi30k"), ratio: Ok(of_translator(context)), wanted: WANTED });
}

/// Copies the weights as leaves that require gradients.
fn trainable(weights: &Weights) -> Weights {
    let leaf = |(name, tensor): (&str, &Tensor)| (name.to_owned(), tensor.copy().set_requires_grad(true));
    Weights::from_tensors(weights.iter().map(leaf))
}

/// Computes the gradients of all weights, as a training step does.
fn backward(loss: &Tensor, weights: &Weights) {
    let all: Vec<&Tensor> = weights.iter().map(|(_, tensor)| tensor).collect();
    for gradient in Tensor::run_backward(&[loss], &all, false, false) {
        finish(&gradient);
    }
}

fn of_classifier(context: &Context) -> f64 {
    let model = classifier(MINILM, context.machine.device);
    let labels = Tensor::from_slice(&(0..32).map(|row| row % 2).collect::<Vec<i64>>());
    let labels = labels.to_device(context.machine.device);
    let batch = LabelledBatch { inputs: model.synthetic(32, 55), labels };
    let learner = Classifier::new(model.config().clone(), trainable(model.weights())).unwrap();
    let (open, measures) =
        (Gates::open(&model.layout(), model.options()), BTreeSet::from([Measure::Example]));
    context.ratio(
        || timed(|| drop(model.measure(&batch, &open, &measures))),
        || {
            timed(|| {
                let loss = learner.losses(&batch, &open, &ModelDropout::OFF).mean(None);
                backward(&loss, learner.weights());
            })
        },
    )
}

/// Returns the architecture of `multi30k-en-fr`.
pub fn multi30k() -> TranslatorConfig {
    let json = serde_json::json!({
        "model_type": "marian", "vocab_size": 8000, "d_model": 128, "encoder_layers": 6,
        "encoder_attention_heads": 8, "encoder_ffn_dim": 512, "decoder_layers": 6, "decoder_attention_heads": 8,
        "decoder_ffn_dim": 512, "activation_function": "relu", "max_position_embeddings": 128,
        "scale_embedding": true, "pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 1,
    });
    serde_json::from_value(json).unwrap()
}

fn of_translator(context: &Context) -> f64 {
    let model = Translator::random(multi30k(), 1, (Kind::Float, context.machine.device)).unwrap();
    let sentence =
        |row: u32| (0..10 + row % 12).map(|place| 2 + (row * 91 + place * 7) % 7990).chain([0]).collect();
    let sentences: Vec<Vec<u32>> = (0..64).map(sentence).collect();
    let rows: Vec<&[u32]> = sentences.iter().map(Vec::as_slice).collect();
    let learner = Translator::new(model.config().clone(), trainable(model.weights())).unwrap();
    let batch = PairBatch::new(&model, &rows, &rows);
    let (open, measures) =
        (Gates::open(&model.layout(), model.options()), BTreeSet::from([Measure::Example]));
    context.ratio(
        || timed(|| drop(model.measure(&batch, &open, &measures))),
        || {
            timed(|| {
                backward(&learner.losses(&batch, &open, &ModelDropout::OFF).sum(None), learner.weights())
            })
        },
    )
}
