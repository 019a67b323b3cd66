//! Half of the heads removed from the weights: measured speed, compared with the speed predicted from multiply-adds.
use core_masking::{Gates, HeadSet, Removal};
use tch::no_grad;

use crate::models::{BERT_BASE, MINILM, Timed, classifier, finish, llama};
use crate::{Context, Row, timed};

/// Tokens per text.
const LENGTH: u32 = 128;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    tch::set_num_threads(context.machine.threads as i32);
    let device = context.machine.device;
    for size in [MINILM, BERT_BASE] {
        let name = format!("half of the heads of {}", size.0);
        halve(context, row, &name, &classifier(size, device), Removal::Cut);
    }
    halve(context, row, "half of the groups of a Llama", &llama(device), Removal::Uniform);
}

/// Times a model against a copy without every other head, or every other group if heads share keys and values, so that each layer keeps
/// half of its heads.
fn halve<M: Timed>(context: &Context, row: &mut dyn FnMut(Row), what: &str, model: &M, removal: Removal) {
    let layout = model.layout();
    let mut heads = layout.heads();
    heads.retain(|id| {
        let module = layout.module(id.attention(), id.layer_index());
        module.key_value_of(id.head_index() as i64) % 2 == 1
    });
    let pruned = model.without_heads(&heads.into_iter().collect::<HeadSet>(), removal).unwrap();
    let predicted = model.work(LENGTH) / pruned.work(LENGTH);
    for batch_size in [16, 64] {
        let batch = model.synthetic(batch_size, LENGTH);
        let ratio = context.ratio(|| seconds(&pruned, &batch), || seconds(model, &batch));
        let name = format!(
            "{what} removed, batch {batch_size}: {ratio:.2} times as fast; {predicted:.2} predicted from multiply-adds"
        );
        row(Row { name, ratio: Ok(ratio / predicted), wanted: 0.9 });
    }
}

fn seconds<M: Timed>(model: &M, batch: &M::Batch) -> f64 {
    let open = Gates::open(&model.layout(), model.options());
    timed(|| finish(&no_grad(|| model.output(batch, &open))))
}
