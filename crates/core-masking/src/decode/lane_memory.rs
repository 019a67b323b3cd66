//! Key-value cache of a decoder in single precision on a CPU.
use tch::{Kind, Tensor};

use super::lanes::{PackedKeyValue, Seen, SimdLayout};
use super::memory::Memory;
use crate::attention::MultiHeadAttention;
use crate::gates::Gate;
use crate::translator::{DecoderMemory, Reader};
use crate::{Attention, GatedModel, Translator, to_vec};

/// Keys and values of all decoder layers. They never move: each hypothesis stores where its past is.
pub(super) struct SimdCache {
    layers: Vec<Layer>,
    source_length: usize, // padding included
    sources: Vec<Source>, // of the sentences still in the batch
    pasts: Vec<Vec<u32>>, // [sentence * hypothesis]: its row in each step, oldest first
}

struct Layer {
    source: PackedKeyValue,     // [sentence of the first step * source length]
    steps: Vec<PackedKeyValue>, // per step, for the rows that were in the batch
}

#[derive(Clone, Copy)]
struct Source {
    /// Index of the sentence in the first step.
    sentence: usize,
    /// Number of tokens without padding.
    tokens: usize,
}

impl SimdCache {
    /// Computes keys and values of `memory`, encoder states `[sentence, source, d_model]`; `source_bias`: `[sentence, 1, 1, source]`.
    pub(super) fn new(model: &Translator, memory: &Tensor, source_bias: &Tensor) -> Self {
        let layer = |layer| {
            let attention = model.layers.module(Attention::EncDec, layer);
            Layer { source: keys_values(attention, memory), steps: Vec::new() }
        };
        let tokens = source_bias.isfinite().sum_dim_intlist([1, 2, 3].as_slice(), false, Kind::Int64); // [sentence]
        let tokens = to_vec::<i64>(&tokens).into_iter().enumerate();
        let sources: Vec<Source> =
            tokens.map(|(sentence, tokens)| Source { sentence, tokens: tokens as usize }).collect();
        Self {
            layers: (0..model.config().decoder_layers).map(layer).collect(),
            source_length: memory.size()[1] as usize,
            pasts: vec![Vec::new(); sources.len()],
            sources,
        }
    }
}

impl DecoderMemory for SimdCache {
    fn of_target(&mut self, Reader { layer, module, gate, .. }: Reader<'_>, x: &Tensor) -> Tensor {
        self.layers[layer].steps.push(keys_values(module, x));
        let steps = &self.layers[layer].steps;
        let count = steps.len() as i64;
        let distances = || Tensor::arange_start(1 - count, 1, (Kind::Int64, x.device())).unsqueeze(0);
        let biases = module.distance_bias(distances); // [1, kept, 1, steps]
        let biases = biases.map(|biases| biases.view([-1, count]).tr());
        attend(module, x, gate, biases.as_ref(), |row, seen| {
            let past = steps.iter().zip(&self.pasts[row]);
            past.for_each(|(step, &place)| seen.add(step, place as usize));
        })
    }

    fn of_source(&self, Reader { layer, module, gate, .. }: Reader<'_>, x: &Tensor) -> Tensor {
        let memory = &self.layers[layer].source;
        let hypotheses = self.hypotheses() as usize;
        attend(module, x, gate, None, |row, seen| {
            let Source { sentence, tokens } = self.sources[row / hypotheses];
            let first = sentence * self.source_length;
            (first..first + tokens).for_each(|place| seen.add(memory, place));
        })
    }
}

impl Memory for SimdCache {
    fn hypotheses(&self) -> i64 {
        (self.pasts.len() / self.sources.len().max(1)) as i64
    }

    fn extend(&mut self) {
        (0..).zip(&mut self.pasts).for_each(|(row, past)| past.push(row));
    }

    fn reorder(&mut self, origins: &[&[usize]]) {
        let before = self.hypotheses() as usize;
        let origins = origins.iter().enumerate();
        let rows = origins
            .flat_map(|(sentence, origins)| origins.iter().map(move |origin| sentence * before + origin));
        self.pasts = rows.map(|row| self.pasts[row].clone()).collect();
    }

    fn keep(&mut self, rows: &[usize]) {
        let hypotheses = self.hypotheses() as usize;
        let of_sentence = |&row: &usize| self.pasts[row * hypotheses..][..hypotheses].iter().cloned();
        self.pasts = rows.iter().flat_map(of_sentence).collect();
        self.sources = rows.iter().map(|&row| self.sources[row]).collect();
    }
}

/// Packs keys and values of `x`, `[.., position, d_model]`.
fn keys_values(attention: &MultiHeadAttention, x: &Tensor) -> PackedKeyValue {
    let [key, value] = [&attention.key, &attention.value].map(|map| {
        let (width, _) = map.size();
        layout(width, attention.d_head).pack(&map.forward(x), 1.0)
    });
    PackedKeyValue { key, value }
}

/// Attends from each row of `x` to what `show` shows it, with `biases` on the scores, as in [`SimdLayout::attend`]. `x` and the result are
/// `[sentence, hypothesis, d_model]`.
fn attend<'a>(
    attention: &MultiHeadAttention,
    x: &Tensor,
    gate: Gate<'_>,
    biases: Option<&Tensor>,
    show: impl Fn(usize, &mut Seen<'a>),
) -> Tensor {
    let (width, _) = attention.query.size();
    let layout = layout(width, attention.d_head);
    let context = layout.attend(&attention.query.forward(x), attention.divisor, biases, show); // [sentence, hypothesis, kept * d_head]
    let by_head = context.unflatten(2, [layout.heads as i64, attention.d_head]).transpose(1, 2);
    attention.merge(by_head, gate)
}

fn layout(width: u64, d_head: i64) -> SimdLayout {
    SimdLayout { heads: (width / d_head as u64) as usize, d_head: d_head as usize }
}
