//! Relevance of all heads compared with a forward pass of the text or pair, on one thread and in double precision, as `relevance` computes
//! it. For a pair this includes the relevance for each target token.
use core_masking::classifier::LabelledBatch;
use core_masking::loss::PairBatch;
use core_masking::{GatedModel, Gates, ModelDropout, Translator};
use tch::{Device, Kind, Tensor, no_grad};

use crate::importance::multi30k;
use crate::models::{MINILM, Timed, classifier};
use crate::{Context, Row, timed};

/// It should take at most as long as 20 forward passes.
const WANTED: f64 = 1.0 / 20.0;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    tch::set_num_threads(1);
    let name = |model| format!("relevance in {model}, relative to a forward pass");
    row(Row { name: name("MiniLM"), ratio: Ok(of_classifier(context)), wanted: WANTED });
    let model = "a translator for Multi30k, for 15 tokens";
    row(Row { name: name(model), ratio: Ok(of_translator(context)), wanted: WANTED });
}

fn of_classifier(context: &Context) -> f64 {
    let model = classifier(MINILM, Device::Cpu).to_kind(Kind::Double).unwrap();
    let batch = LabelledBatch { inputs: model.synthetic(1, 25), labels: Tensor::from_slice(&[0_i64]) };
    let open = Gates::open(&model.layout(), model.options());
    context.ratio(
        || timed(|| drop(model.relevance(&batch).unwrap())),
        || timed(|| drop(no_grad(|| model.forward(&batch.inputs, &open, &ModelDropout::OFF)))),
    )
}

fn of_translator(context: &Context) -> f64 {
    let model = Translator::random(multi30k(), 1, (Kind::Double, Device::Cpu)).unwrap();
    let sentence: Vec<u32> = (0..14).map(|place| 2 + place * 91 % 7990).chain([0]).collect();
    let pair = PairBatch::new(&model, &[&sentence], &[&sentence]);
    let open = Gates::open(&model.layout(), model.options());
    context.ratio(
        || timed(|| drop(model.relevance(&pair).unwrap())),
        || timed(|| drop(no_grad(|| model.losses(&pair, &open, &ModelDropout::OFF)))),
    )
}
