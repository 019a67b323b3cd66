//! Masking each head of a model in turn, compared with plain forward passes and with a loop over a transformers model that has a hook
//! before the output projection. Language models compute the nats of each text.
//!
//! One batch is used, and both sides use all threads. The other side is timed on one head per layer, since every head takes equal time.
//! Ours is timed on a third of the heads of each layer, which can share less work than all heads.
use serde_json::{Value, json};
use tch::Device;

use crate::models::{
    BERT_BASE, MINILM, Timed, bert_config, classifier, gpt2, gpt2_config, smollm2, smollm2_config,
};
use crate::peer::Peer;
use crate::sweep::{one_by_one, together};
use crate::{Context, Row};

/// A model and the ratios that it should reach.
pub struct Case {
    pub name: &'static str,
    pub config: Value,
    /// Texts in the batch, and the length of each in tokens.
    pub texts: usize,
    pub length: u32,
    /// Wanted ratios on a CPU, compared with plain passes and with transformers.
    pub wanted: [f64; 2],
}

/// Wanted ratios on a GPU, which small batches leave idle.
const WANTED_ON_GPU: [f64; 2] = [1.35, 5.0];

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    let device = context.machine.device;
    tch::set_num_threads(context.machine.threads as i32);
    for (size, wanted) in [(MINILM, [1.5, 1.5]), (BERT_BASE, [1.5, 1.5])] {
        let case = Case { name: size.0, config: bert_config(size), texts: 12, length: 40, wanted };
        case.measure(&classifier(size, device), context, row);
    }
    let wanted = [1.35, 2.0];
    let case = Case { name: "GPT-2", config: gpt2_config(), texts: 8, length: 128, wanted };
    case.measure(&gpt2(device), context, row);
    let wanted = [1.35, 1.9];
    let case = Case { name: "SmolLM2 135M", config: smollm2_config(), texts: 8, length: 128, wanted };
    case.measure(&smollm2(device), context, row);
}

impl Case {
    fn measure<M: Timed>(self, model: &M, context: &Context, row: &mut dyn FnMut(Row)) {
        let (plain, of_peer) = self.ratios(model, context);
        let name = |other| {
            format!("all heads of {} on all threads, one masked at a time, compared with {other}", self.name)
        };
        let wanted = if context.machine.device == Device::Cpu { self.wanted } else { WANTED_ON_GPU };
        row(Row { name: name("plain forward passes"), ratio: Ok(plain), wanted: wanted[0] });
        row(Row { name: name("transformers with a hook"), ratio: of_peer, wanted: wanted[1] });
    }

    /// Returns how many times faster masked passes are than plain passes and than transformers with a hook.
    pub fn ratios<M: Timed>(&self, model: &M, context: &Context) -> (f64, Result<f64, String>) {
        let batch = model.synthetic(self.texts, self.length);
        let mut heads = model.layout().heads();
        let layers = 1 + heads.last().unwrap().layer_index();
        let timed = heads.len() / layers / 3;
        heads.retain(|id| id.head_index() < timed);

        let mut theirs: Vec<Box<dyn FnMut() -> f64 + '_>> = vec![Box::new(|| one_by_one(model, &batch))];
        let task = json!({
            "do": "mask", "threads": context.machine.threads, "config": self.config, "texts": self.texts, "length": self.length,
        });
        let mut why = String::new();
        match Peer::start(context, task) {
            Ok(mut peer) => theirs.push(Box::new(move || peer.seconds() / layers as f64)),
            Err(fault) => why = fault,
        }
        let ratios = context.ratios(|| together(model, &batch, &heads), &mut theirs);
        (ratios[0], ratios.get(1).copied().ok_or(why))
    }
}
