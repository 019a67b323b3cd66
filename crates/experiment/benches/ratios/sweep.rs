//! Masking each head in turn: head sets that share work, compared with one at a time.
//!
//! One at a time means a plain forward pass for each set, through all layers at all positions. It is timed on one head per layer because
//! the heads of a layer take equal time. One batch and one thread, as in each worker of an experiment; on a GPU all heads of a layer are
//! rows of one batch.
use core_masking::{GatedModel, Gates, HeadId, HeadSet};
use tch::{Device, no_grad};

use crate::models::{BERT_BASE, MINILM, Timed, classifier, finish};
use crate::{Context, Row, timed};

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    tch::set_num_threads(1);
    for (size, count, wanted) in [(MINILM, 12, 2.4), (BERT_BASE, 4, 2.2)] {
        let model = classifier(size, context.machine.device);
        let batch = model.synthetic(count, 40);
        let all = model.layout().heads();
        let ratio = context.ratio(|| together(&model, &batch, &all), || one_by_one(&model, &batch));
        let name = format!("all heads of {}, one masked at a time, relative to plain forward passes", size.0);
        row(Row { name, ratio: Ok(ratio), wanted });
    }
}

/// Returns the seconds per head; one head of each layer is masked, in separate passes.
pub fn one_by_one<M: Timed>(model: &M, batch: &M::Batch) -> f64 {
    let layout = model.layout();
    let mut heads = layout.heads();
    heads.retain(|id| id.head_index() == 0);
    let seconds = timed(|| {
        for &id in &heads {
            let gates = Gates::masking(&layout, &[HeadSet::from_iter([id])], model.options()).unwrap();
            no_grad(|| finish(&model.plain(batch, &gates)));
        }
    });
    seconds / heads.len() as f64
}

/// Returns the seconds per head if heads are evaluated layer by layer, as in an experiment.
pub fn together<M: Timed>(model: &M, batch: &M::Batch, heads: &[HeadId]) -> f64 {
    let is_on_cpu = model.options().1 == Device::Cpu;
    let mut prefix = None;
    let seconds = timed(|| {
        for layer in heads.chunk_by(|left, right| left.layer_index() == right.layer_index()) {
            let sets: Vec<HeadSet> = layer.iter().map(|&id| HeadSet::from_iter([id])).collect();
            let rows = if is_on_cpu { 1 } else { sets.len() };
            let (outputs, left) = no_grad(|| model.swept(batch, &sets, rows, prefix.take()));
            outputs.iter().for_each(finish);
            prefix = Some(left);
        }
    });
    seconds / heads.len() as f64
}
