//! Masking each head of a language model in turn, beside plain forward passes and beside a loop over a model of transformers
//! with a hook before `c_proj`. All of them compute the nats of each text.
//!
//! One batch, all of whose products take all threads, as those of transformers do. Whichever head is masked, it costs the
//! others the same, so they are timed on one head of each layer. Ours is timed on a third of the heads of each layer, which
//! share less than all heads do.
use core_masking::GatedModel;
use serde_json::json;

use crate::models::{Timed, gpt2, gpt2_config};
use crate::peer::Peer;
use crate::sweep::{one_by_one, together};
use crate::{Context, Row};

/// Texts of the batch, and the length of each in tokens.
const TEXTS: usize = 8;
const LENGTH: u32 = 128;
/// Heads of each layer that ours is timed on.
const HEADS: usize = 4;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    let machine = &context.machine;
    tch::set_num_threads(machine.threads as i32);
    let model = gpt2(machine.device);
    let batch = model.made_up(TEXTS, LENGTH);
    let mut heads = model.layout().heads();
    heads.retain(|id| id.head_index() < HEADS);

    let mut theirs: Vec<Box<dyn FnMut() -> f64 + '_>> = vec![Box::new(|| one_by_one(&model, &batch))];
    let layers = model.config().num_hidden_layers as f64;
    let task = json!({
        "do": "mask", "threads": machine.threads, "config": gpt2_config(), "texts": TEXTS, "length": LENGTH,
    });
    let mut why = String::new();
    match Peer::start(&context.args.python, machine.device, &task) {
        Ok(mut peer) => theirs.push(Box::new(move || peer.seconds() / layers)),
        Err(fault) => why = fault,
    }
    let ratios = context.ratios(|| together(&model, &batch, &heads), &mut theirs);

    let name = |other| format!("all heads of GPT-2, one masked at a time, beside {other}");
    row(Row { name: name("plain forward passes"), ratio: Ok(ratios[0]), wanted: 1.35 });
    let of_peer = ratios.get(1).copied().ok_or(why);
    row(Row { name: name("transformers with a hook"), ratio: of_peer, wanted: 2.0 });
}
