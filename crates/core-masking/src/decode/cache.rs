//! Keys and values of a decoder: of the source, computed once, and of the target, appended to at each step.
use tch::{Tensor, no_grad};

use crate::attention::KeyValue;
use crate::marian::Marian;

/// What all decoder layers attend to. The first axis of each tensor is the sentences still in the batch.
pub(super) struct Cache {
    beam: i64,
    source: Vec<KeyValue>, // [sentence, heads, source, d_head]
    source_bias: Tensor,   // [sentence, 1, 1, source]
    target: Vec<KeyValue>, // [sentence, heads, capacity, d_head]; slot = position * beam + hypothesis
    target_bias: Tensor,   // [sentence, 1, beam, slots used]: 0 where the slot is the hypothesis's own past
    own_slots: Tensor,     // [1, 1, beam, beam]: the newest slots, each visible to its hypothesis alone
}

/// Positions that the cache grows by when it is full.
const GROWTH: i64 = 16;

impl Cache {
    /// `memory`: encoder states `[sentence, source, d_model]`.
    pub(super) fn new(model: &Marian, beam: i64, memory: &Tensor, source_bias: &Tensor) -> Self {
        let layers = model.decoder_layers();
        let source: Vec<KeyValue> =
            layers.iter().map(|layer| layer.encoder_attention.keys_values(memory)).map(contiguous).collect();
        let sentences = memory.size()[0];
        let empty = |like: &Tensor| {
            let shape = [sentences, like.size()[1], GROWTH * beam, like.size()[3]];
            Tensor::zeros(shape, model.options())
        };
        let target =
            source.iter().map(|kv| KeyValue { key: empty(&kv.key), value: empty(&kv.value) }).collect();
        let hidden = Tensor::full([beam, beam], f64::NEG_INFINITY, model.options());
        Self {
            beam,
            source,
            source_bias: source_bias.shallow_clone(),
            target,
            target_bias: Tensor::zeros([sentences, 1, beam, 0], model.options()),
            own_slots: (hidden.triu(1) + hidden.tril(-1)).view([1, 1, beam, beam]),
        }
    }

    /// Makes room for one more position and shows its slots to their hypotheses.
    pub(super) fn extend(&mut self) {
        let own = self.own_slots.expand([self.target_bias.size()[0], -1, -1, -1], false);
        self.target_bias = Tensor::cat(&[&self.target_bias, &own], 3);
        let full = self.target.first().is_some_and(|kv| kv.key.size()[2] < self.slots());
        if full {
            for kv in &mut self.target {
                kv.key = kv.key.constant_pad_nd([0, 0, 0, GROWTH * self.beam]);
                kv.value = kv.value.constant_pad_nd([0, 0, 0, GROWTH * self.beam]);
            }
        }
    }

    /// Writes the newest keys and values of a layer, `[sentence, heads, beam, d_head]`, and returns all so far.
    pub(super) fn append(&mut self, layer: usize, newest: &KeyValue) -> KeyValue {
        let (slots, beam) = (self.slots(), self.beam);
        let write = |all: &Tensor, new: &Tensor| {
            no_grad(|| all.narrow(2, slots - beam, beam).copy_(new));
            all.narrow(2, 0, slots)
        };
        let target = &self.target[layer];
        KeyValue { key: write(&target.key, &newest.key), value: write(&target.value, &newest.value) }
    }

    /// Hypothesis `i` of each sentence inherits the past of hypothesis `origins[i]`.
    pub(super) fn reorder(&mut self, origins: &[&[usize]]) {
        let beam = self.beam as usize;
        let rows: Vec<i64> = origins
            .iter()
            .enumerate()
            .flat_map(|(sentence, origins)| {
                origins.iter().map(move |origin| (sentence * beam + origin) as i64)
            })
            .collect();
        if rows.iter().enumerate().all(|(row, &origin)| row as i64 == origin) {
            return;
        }
        let rows = Tensor::from_slice(&rows).to_device(self.target_bias.device());
        let flat = self.target_bias.view([-1, self.slots()]); // [sentence * beam, slots]
        self.target_bias = flat.index_select(0, &rows).view([-1, 1, self.beam, self.slots()]);
    }

    /// Keeps these sentences, `[kept]`.
    pub(super) fn keep(&mut self, rows: &Tensor) {
        for kv in self.source.iter_mut().chain(&mut self.target) {
            kv.key = kv.key.index_select(0, rows);
            kv.value = kv.value.index_select(0, rows);
        }
        self.source_bias = self.source_bias.index_select(0, rows);
        self.target_bias = self.target_bias.index_select(0, rows);
    }

    /// Keys and values of the source for a layer.
    pub(super) fn source(&self, layer: usize) -> &KeyValue {
        &self.source[layer]
    }

    /// `[sentence, 1, 1, source]`.
    pub(super) fn source_bias(&self) -> &Tensor {
        &self.source_bias
    }

    /// `[sentence, 1, beam, slots]`.
    pub(super) fn target_bias(&self) -> &Tensor {
        &self.target_bias
    }

    fn slots(&self) -> i64 {
        self.target_bias.size()[3]
    }
}

/// Attention reads the source's keys at every step, so they are laid out once.
fn contiguous(kv: KeyValue) -> KeyValue {
    KeyValue { key: kv.key.contiguous(), value: kv.value.contiguous() }
}
