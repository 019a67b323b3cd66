//! Masking each head in turn: head sets that share what they have in common, beside one at a time.
//!
//! One by one is the plain forward pass of each set: all layers at all positions. It is timed on one head of each layer,
//! since all heads of a layer cost it the same. One batch, one thread, as each thread of an experiment has; on a GPU all heads
//! of a layer are rows of one batch.
use core_masking::{Classifier, GatedModel, ModelDropout};
use core_masking::{Gates, HeadId, HeadSet, SegmentBatch};
use tch::{Device, no_grad};

use crate::models::{BERT_BASE, MINILM, classifier, finish, texts};
use crate::{Context, Row, timed};

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    tch::set_num_threads(1);
    for (size, count, wanted) in [(MINILM, 12, 2.4), (BERT_BASE, 4, 2.2)] {
        let model = classifier(size, context.machine.device);
        let batch = texts(&model, count, 40);
        let sets: Vec<HeadSet> =
            model.layout().heads().into_iter().map(|id| HeadSet::from_iter([id])).collect();
        let heads = size.2 as f64;
        let ratio = context.ratio(
            || timed(|| together(&model, &batch, &sets)),
            || heads * timed(|| one_by_one(&model, &batch)),
        );
        let name = format!("all heads of {}, one masked at a time, beside plain forward passes", size.0);
        row(Row { name, ratio: Ok(ratio), wanted });
    }
}

/// One head of each layer.
fn one_by_one(model: &Classifier, batch: &SegmentBatch) {
    let layout = model.layout();
    for id in layout.heads().into_iter().filter(|id: &HeadId| id.head_index() == 0) {
        let gates = Gates::masking(&layout, &[HeadSet::from_iter([id])], model.options()).unwrap();
        no_grad(|| plain(model, batch, &gates));
    }
}

/// All heads, layer by layer as a subject evaluates them.
fn together(model: &Classifier, batch: &SegmentBatch, sets: &[HeadSet]) {
    let rows = if model.options().1 == Device::Cpu { 1 } else { model.config().num_attention_heads };
    let mut trunk = None;
    for layer in sets.chunk_by(|left, right| lowest(left) == lowest(right)) {
        let variants = model.variants(layer, false).unwrap();
        let (logits, left) = no_grad(|| model.sweep(batch, &variants, rows, trunk.take()));
        logits.iter().for_each(finish);
        trunk = Some(left);
    }
}

fn lowest(set: &HeadSet) -> Option<usize> {
    set.iter().map(HeadId::layer_index).min()
}

/// All layers at all positions, as a model without this project's short cuts computes them.
fn plain(model: &Classifier, batch: &SegmentBatch, gates: &Gates) {
    let mut x = model.embed(batch, &ModelDropout::OFF);
    for layer in 0..model.config().num_hidden_layers {
        x = model.layer(layer, &x, batch, gates, &ModelDropout::OFF);
    }
    finish(&x);
}
