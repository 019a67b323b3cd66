//! Key-value cache of a decoder as tensors, on any device and in any precision.
use tch::Tensor;

use super::memory::Memory;
use crate::Attention;
use crate::attention::{KEYS_AT_ONCE, KeyValue, MultiHeadAttention};
use crate::model::GatedModel;
use crate::translator::{DecoderMemory, Reader, Translator};

/// Keys and values of all decoder layers. The first axis of each tensor is the sentences still in the batch.
///
/// The hypotheses of a sentence are the queries of one batch row. A bias determines which slots belong to which hypothesis, so that
/// reordering the beam moves few numbers and no keys. The number of keys is a multiple of [`KEYS_AT_ONCE`]; biases hide the padding.
pub(super) struct TensorMemory {
    beam: i64,
    source: Vec<KeyValue>, // [sentence, heads, source, d_head]
    source_bias: Tensor,   // [sentence, 1, 1, source]
    target: Vec<KeyValue>, // [sentence, heads, capacity, d_head]; all hypotheses, position by position
    target_bias: Tensor,   // [sentence, 1, hypothesis, capacity]: 0 at the hypothesis's own past
    used: i64,             // slots
    own_slots: Tensor,     // [1, 1, beam, beam]: makes each newest slot visible to its hypothesis only
}

impl TensorMemory {
    /// Computes keys and values of `memory`, encoder states `[sentence, source, d_model]`.
    pub(super) fn new(model: &Translator, beam: i64, memory: &Tensor, source_bias: &Tensor) -> Self {
        let padding = -memory.size()[1] & (KEYS_AT_ONCE - 1);
        let padded = |kv: KeyValue| KeyValue {
            key: kv.key.constant_pad_nd([0, 0, 0, padding]).contiguous(),
            value: kv.value.constant_pad_nd([0, 0, 0, padding]).contiguous(),
        };
        let modules = |attention| {
            (0..model.config().decoder_layers).map(move |layer| model.layers.module(attention, layer))
        };
        let source = modules(Attention::EncDec).map(|module| padded(module.keys_values(memory))).collect();
        let sentences = memory.size()[0];
        let room = |module: &MultiHeadAttention| module.room(sentences, KEYS_AT_ONCE * beam, model.options());
        let target = modules(Attention::DecDec).map(room).collect();
        let hidden = |shape: &[i64]| Tensor::full(shape, f64::NEG_INFINITY, model.options());
        let others = hidden(&[beam, beam]);
        Self {
            beam,
            source,
            source_bias: Tensor::cat(&[source_bias, &hidden(&[sentences, 1, 1, padding])], 3),
            target,
            target_bias: hidden(&[sentences, 1, 1, KEYS_AT_ONCE * beam]),
            used: 0,
            own_slots: (others.triu(1) + others.tril(-1)).view([1, 1, beam, beam]),
        }
    }

    /// Makes room for [`KEYS_AT_ONCE`] more positions.
    fn grow(&mut self) {
        let more = KEYS_AT_ONCE * self.beam;
        for kv in &mut self.target {
            kv.key = kv.key.constant_pad_nd([0, 0, 0, more]);
            kv.value = kv.value.constant_pad_nd([0, 0, 0, more]);
        }
        let bias = &self.target_bias;
        let hidden = bias.new_full(
            [bias.size()[0], 1, self.hypotheses(), more],
            f64::NEG_INFINITY,
            (bias.kind(), bias.device()),
        );
        self.target_bias = Tensor::cat(&[bias, &hidden], 3);
    }

    /// Writes the newest keys and values of a layer, `[sentence, heads, hypothesis, d_head]`; returns all so far.
    fn append(&mut self, layer: usize, newest: &KeyValue) -> KeyValue {
        let written = self.hypotheses();
        let write = |all: &Tensor, new: &Tensor| {
            all.narrow(2, self.used - written, written).copy_(new);
            all.narrow(2, 0, self.visible())
        };
        let target = &self.target[layer];
        KeyValue { key: write(&target.key, &newest.key), value: write(&target.value, &newest.value) }
    }

    /// Returns the bias of the slots that [`append`](Self::append) returns, `[sentence, 1, hypothesis, slots]`.
    fn target_bias(&self) -> Tensor {
        self.target_bias.narrow(3, 0, self.visible())
    }

    /// Returns the distances from the newest position to the visible slots, `[1, slots]`. The first position has one slot, later ones have
    /// one per hypothesis.
    fn distances(&self) -> Tensor {
        let position = |slot: i64| (slot + self.beam - 1) / self.beam;
        let newest = position(self.used - 1);
        let distances: Vec<i64> = (0..self.visible()).map(|slot| position(slot) - newest).collect();
        Tensor::from_slice(&distances).to_device(self.target_bias.device()).unsqueeze(0)
    }

    /// Returns the number of used slots, rounded up to whole steps of the kernel.
    fn visible(&self) -> i64 {
        (self.used + KEYS_AT_ONCE - 1) / KEYS_AT_ONCE * KEYS_AT_ONCE
    }
}

impl DecoderMemory for TensorMemory {
    fn of_target(&mut self, Reader { layer, module, gate, dropout }: Reader<'_>, x: &Tensor) -> Tensor {
        let target = self.append(layer, &module.keys_values(x));
        let bias = self.target_bias();
        let biased = module.distance_bias(|| self.distances()).map(|of_distances| &bias + of_distances);
        module.attend(x, &target, biased.as_ref().unwrap_or(&bias), gate, dropout)
    }

    fn of_source(&self, Reader { layer, module, gate, dropout }: Reader<'_>, x: &Tensor) -> Tensor {
        module.attend(x, &self.source[layer], &self.source_bias, gate, dropout)
    }
}

impl Memory for TensorMemory {
    fn hypotheses(&self) -> i64 {
        self.target_bias.size()[2]
    }

    fn extend(&mut self) {
        let new = self.hypotheses();
        if self.used + new > self.target_bias.size()[3] {
            self.grow();
        }
        let own_slots = self.own_slots.narrow(2, 0, new).narrow(3, 0, new);
        self.target_bias.narrow(3, self.used, new).copy_(&own_slots);
        self.used += new;
    }

    fn reorder(&mut self, origins: &[&[usize]]) {
        let before = self.hypotheses() as usize;
        let rows: Vec<i64> = origins
            .iter()
            .enumerate()
            .flat_map(|(sentence, origins)| {
                origins.iter().map(move |origin| (sentence * before + origin) as i64)
            })
            .collect();
        if rows.len() == origins.len() * before
            && rows.iter().enumerate().all(|(row, &origin)| row as i64 == origin)
        {
            return;
        }
        let rows = Tensor::from_slice(&rows).to_device(self.target_bias.device());
        let capacity = self.target_bias.size()[3];
        let flat = self.target_bias.view([-1, capacity]); // [sentence * hypothesis, capacity]
        self.target_bias = flat.index_select(0, &rows).view([origins.len() as i64, 1, -1, capacity]);
    }

    // Copies only moved sentences, in place; slots of finished sentences stay allocated.
    fn keep(&mut self, rows: &[usize]) {
        let (to, from): (Vec<i64>, Vec<i64>) =
            (0..).zip(rows).map(|(to, &from)| (to, from as i64)).filter(|(to, from)| to != from).unzip();
        let device = self.target_bias.device();
        let (to, from) =
            (Tensor::from_slice(&to).to_device(device), Tensor::from_slice(&from).to_device(device));
        let keep = |all: &mut Tensor| {
            let _ = all.index_copy_(0, &to, &all.index_select(0, &from));
            *all = all.narrow(0, 0, rows.len() as i64);
        };
        let keys_values = self.source.iter_mut().chain(&mut self.target);
        let tensors = keys_values.flat_map(|kv| [&mut kv.key, &mut kv.value]);
        tensors.chain([&mut self.source_bias, &mut self.target_bias]).for_each(keep);
    }
}
