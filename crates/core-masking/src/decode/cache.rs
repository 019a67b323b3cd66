//! Keys and values of a decoder: of the source, computed once, and of the target, appended to at each step.
use tch::Tensor;

use crate::attention::KeyValue;
use crate::model::GatedModel;
use crate::translator::{DecoderLayer, Translator};

/// What all decoder layers attend to. The first axis of each tensor is the sentences still in the batch.
///
/// The number of keys is always a multiple of [`LANES`]; those in excess are hidden by the biases.
pub(super) struct Cache {
    beam: i64,
    source: Vec<KeyValue>, // [sentence, heads, source, d_head]
    source_bias: Tensor,   // [sentence, 1, 1, source]
    target: Vec<KeyValue>, // [sentence, heads, capacity, d_head]; those of all hypotheses, position by position
    target_bias: Tensor, // [sentence, 1, hypothesis, capacity]: 0 where the slot is the hypothesis's own past
    used: i64,           // slots
    own_slots: Tensor,   // [1, 1, beam, beam]: the newest slots, each visible to its hypothesis alone
}

/// Keys that libtorch's kernel takes at once; what is left over costs it more than as many whole steps.
pub(super) const LANES: i64 = 16;

impl Cache {
    /// `memory`: encoder states `[sentence, source, d_model]`.
    pub(super) fn new(model: &Translator, beam: i64, memory: &Tensor, source_bias: &Tensor) -> Self {
        let padding = -memory.size()[1] & (LANES - 1);
        let padded = |kv: KeyValue| KeyValue {
            key: kv.key.constant_pad_nd([0, 0, 0, padding]).contiguous(),
            value: kv.value.constant_pad_nd([0, 0, 0, padding]).contiguous(),
        };
        let layers = model.decoder_layers().iter();
        let source: Vec<KeyValue> =
            layers.map(|layer| padded(layer.encoder_attention.keys_values(memory))).collect();
        let sentences = memory.size()[0];
        let room = |layer: &DecoderLayer| layer.self_attention.room(sentences, LANES * beam, model.options());
        let target = model.decoder_layers().iter().map(room).collect();
        let hidden = |shape: &[i64]| Tensor::full(shape, f64::NEG_INFINITY, model.options());
        let others = hidden(&[beam, beam]);
        Self {
            beam,
            source,
            source_bias: Tensor::cat(&[source_bias, &hidden(&[sentences, 1, 1, padding])], 3),
            target,
            target_bias: hidden(&[sentences, 1, 1, LANES * beam]),
            used: 0,
            own_slots: (others.triu(1) + others.tril(-1)).view([1, 1, beam, beam]),
        }
    }

    /// How many a sentence has: one before the first step, then as many as the beam is wide.
    pub(super) fn hypotheses(&self) -> i64 {
        self.target_bias.size()[2]
    }

    /// Makes room for one more position and shows its slots to their hypotheses.
    pub(super) fn extend(&mut self) {
        let new = self.hypotheses();
        if self.used + new > self.target_bias.size()[3] {
            self.grow();
        }
        let own_slots = self.own_slots.narrow(2, 0, new).narrow(3, 0, new);
        self.target_bias.narrow(3, self.used, new).copy_(&own_slots);
        self.used += new;
    }

    /// Room for [`LANES`] more positions.
    fn grow(&mut self) {
        let more = LANES * self.beam;
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

    /// Writes the newest keys and values of a layer, `[sentence, heads, hypothesis, d_head]`, and returns all so far.
    pub(super) fn append(&mut self, layer: usize, newest: &KeyValue) -> KeyValue {
        let written = self.hypotheses();
        let write = |all: &Tensor, new: &Tensor| {
            all.narrow(2, self.used - written, written).copy_(new);
            all.narrow(2, 0, self.visible())
        };
        let target = &self.target[layer];
        KeyValue { key: write(&target.key, &newest.key), value: write(&target.value, &newest.value) }
    }

    /// Hypothesis `i` of each sentence inherits the past of hypothesis `origins[i]`.
    pub(super) fn reorder(&mut self, origins: &[&[usize]]) {
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

    /// Sentence `rows[i]` is the `i`-th from now on; those that are not named leave.
    ///
    /// Only what changes its place is copied, within tensors that are the cache's own; those that left keep their room.
    pub(super) fn keep(&mut self, rows: &[usize]) {
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

    /// The cache of some of the sentences, in the place of these until it grows.
    pub(super) fn part(&self, first: i64, count: i64) -> Self {
        let own = |all: &Tensor| all.narrow(0, first, count);
        let of_layers = |all: &[KeyValue]| {
            all.iter().map(|kv| KeyValue { key: own(&kv.key), value: own(&kv.value) }).collect()
        };
        Self {
            beam: self.beam,
            source: of_layers(&self.source),
            source_bias: own(&self.source_bias),
            target: of_layers(&self.target),
            target_bias: own(&self.target_bias),
            used: self.used,
            own_slots: self.own_slots.shallow_clone(),
        }
    }

    /// Keys and values of the source for a layer.
    pub(super) fn source(&self, layer: usize) -> &KeyValue {
        &self.source[layer]
    }

    /// `[sentence, 1, 1, source]`.
    pub(super) fn source_bias(&self) -> &Tensor {
        &self.source_bias
    }

    /// `[sentence, 1, hypothesis, slots]`, for the slots that [`append`](Self::append) returns.
    pub(super) fn target_bias(&self) -> Tensor {
        self.target_bias.narrow(3, 0, self.visible())
    }

    /// Used slots, rounded up to whole steps of the kernel.
    fn visible(&self) -> i64 {
        (self.used + LANES - 1) / LANES * LANES
    }
}
