//! Half of the heads removed for real: the speed that is measured, beside the one that multiply-adds predict.
use core_masking::{Classifier, GatedModel, ModelDropout};
use core_masking::{Gates, HeadSet, Removal, SegmentBatch};
use tch::no_grad;

use crate::models::{BERT_BASE, MINILM, classifier, finish, texts};
use crate::{Context, Row, timed};

/// Tokens of each text.
const LENGTH: u32 = 128;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    tch::set_num_threads(context.machine.threads as i32);
    for size in [MINILM, BERT_BASE] {
        let model = classifier(size, context.machine.device);
        // every other head, so that each layer keeps half of its own
        let half: HeadSet =
            model.layout().heads().into_iter().filter(|id| id.head_index() % 2 == 1).collect();
        let pruned = model.without_heads(&half, Removal::Cut).unwrap();
        let work = |model: &Classifier| model.multiply_adds(u64::from(LENGTH)) as f64;
        let predicted = work(&model) / work(&pruned);
        for batch_size in [16, 64] {
            let batch = texts(&model, batch_size, LENGTH);
            let ratio =
                context.ratio(|| timed(|| forward(&pruned, &batch)), || timed(|| forward(&model, &batch)));
            let name = format!(
                "half of the heads of {} removed, batch {batch_size}: {ratio:.2} times as fast, beside {predicted:.2} by \
                 multiply-adds",
                size.0
            );
            row(Row { name, ratio: Ok(ratio / predicted), wanted: 0.9 });
        }
    }
}

fn forward(model: &Classifier, batch: &SegmentBatch) {
    let open = Gates::open(&model.layout(), model.options());
    finish(&no_grad(|| model.forward(batch, &open, &ModelDropout::OFF)));
}
