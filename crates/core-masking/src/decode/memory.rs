//! What a decoder attends to: the source, and the target so far.
use tch::{Device, Kind, Tensor};

use super::lane_memory::LaneMemory;
use super::tensor_memory::TensorMemory;
use crate::translator::DecoderMemory;
use crate::{GatedModel, Gates, Translator};

/// Keys and values of the source, computed once, and of the target, appended to at each step, for all layers of a decoder.
///
/// Layers are counted from 0, and the first axis of each tensor is the sentences still in the batch.
pub(super) trait Memory: DecoderMemory {
    /// How many hypotheses a sentence has: one before the first step, then as many as the beam is wide.
    fn hypotheses(&self) -> i64;

    /// Makes room for one more position, that of the newest tokens.
    fn extend(&mut self);

    /// Hypothesis `i` of each sentence inherits the past of hypothesis `origins[i]`.
    fn reorder(&mut self, origins: &[&[usize]]);

    /// Sentence `rows[i]` is the `i`-th from now on; those that are not named leave.
    fn keep(&mut self, rows: &[usize]);

    /// The memory of `count` sentences from `first` on, which go on alone.
    fn part(&self, first: usize, count: usize) -> Box<dyn Memory>;
}

/// An empty target and this source.
///
/// - `memory`: encoder states `[sentence, source, d_model]`
/// - `source_bias`: `[sentence, 1, 1, source]`; what it hides stands on the right
pub(super) fn memory(
    model: &Translator,
    beam: usize,
    memory: &Tensor,
    source_bias: &Tensor,
    gates: &Gates,
) -> Box<dyn Memory> {
    if model.options() == (Kind::Float, Device::Cpu) && !gates.is_recorded() {
        Box::new(LaneMemory::new(model, memory, source_bias))
    } else {
        Box::new(TensorMemory::new(model, beam as i64, memory, source_bias))
    }
}

#[cfg(test)]
mod tests {
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{Attention, Dropout, HeadSet, Removal, TranslatorConfig};

    const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);

    /// 3 layers of 3 heads, of which one lacks a head, and another all.
    fn model() -> Translator {
        let json = serde_json::json!({
            "model_type": "marian", "vocab_size": 11, "d_model": 18, "encoder_layers": 1,
            "encoder_attention_heads": 3, "encoder_ffn_dim": 7, "decoder_layers": 3, "decoder_attention_heads": 3,
            "decoder_ffn_dim": 5, "activation_function": "relu", "max_position_embeddings": 40,
            "scale_embedding": true, "pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 1,
        });
        let config: TranslatorConfig = serde_json::from_value(json).unwrap();
        let model = Translator::random(config, 5, OPTIONS).unwrap();
        let removed = "dec-dec:1:2+dec-dec:2:1+dec-dec:2:2+dec-dec:2:3+enc-dec:3:1";
        model.without_heads(&removed.parse().unwrap(), Removal::Cut).unwrap()
    }

    /// Whatever hypotheses continue which, whoever leaves or goes on alone, and whatever is masked: both memories give the same,
    /// on sources of different lengths, for longer than the tensors have room at first.
    #[test]
    fn both_memories_are_the_same() {
        let model = model();
        for (seed, beam) in [(1, 1), (2, 3), (3, 5)] {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let states = Tensor::randn([4, 6, 18], OPTIONS);
            let bias = Tensor::zeros([4, 1, 1, 6], OPTIONS);
            let _ = bias.get(1).narrow(2, 4, 2).fill_(f64::NEG_INFINITY);
            let sets =
                ["", "enc-dec:1:1", "dec-dec:3:2+enc-dec:2:3", ""].map(|set| set.parse::<HeadSet>().unwrap());
            let mut gates = Gates::masking(&model.layout(), &sets, OPTIONS).unwrap();
            let mut memories: [Box<dyn Memory>; 2] = [
                Box::new(TensorMemory::new(&model, beam, &states, &bias)),
                Box::new(LaneMemory::new(&model, &states, &bias)),
            ];
            let mut sentences = 4_i64;
            for step in 0..40 {
                let hypotheses = if step == 0 { 1 } else { beam };
                assert_eq!(memories.each_ref().map(|memory| memory.hypotheses()), [hypotheses; 2]);
                memories.iter_mut().for_each(|memory| memory.extend());
                for index in 0..3 {
                    let x = Tensor::randn([sentences, hypotheses, 18], OPTIONS);
                    let [of_target, of_source] =
                        [Attention::DecDec, Attention::EncDec].map(|attention| gates.of(attention, index));
                    let [one, other] = memories.each_mut().map(|memory| {
                        let [self_attention, encoder_attention] = [Attention::DecDec, Attention::EncDec]
                            .map(|attention| model.layers.module(attention, index));
                        let target = memory.of_target(index, self_attention, &x, of_target, &Dropout::OFF);
                        target
                            + memory.of_source(index, encoder_attention, &x, of_source, &Dropout::OFF) * 2.0
                    });
                    let gap = (one - other).abs().max().double_value(&[]);
                    assert!(gap < 1e-5, "beam {beam}, step {step}, layer {index}: {gap:e}");
                }
                let origins: Vec<Vec<usize>> = (0..sentences)
                    .map(|_| (0..beam).map(|_| random.random_range(0..hypotheses as usize)).collect())
                    .collect();
                let origins: Vec<&[usize]> = origins.iter().map(Vec::as_slice).collect();
                memories.iter_mut().for_each(|memory| memory.reorder(&origins));
                if step == 7 {
                    let mut rows = vec![3, 1, 0];
                    rows.shuffle(&mut random);
                    memories.iter_mut().for_each(|memory| memory.keep(&rows));
                    let rows: Vec<i64> = rows.into_iter().map(|row| row as i64).collect();
                    (gates, sentences) = (gates.select(&Tensor::from_slice(&rows)), 3);
                }
                if step == 23 {
                    memories = memories.map(|memory| memory.part(1, 2));
                    (gates, sentences) = (gates.select(&Tensor::from_slice(&[1_i64, 2])), 2);
                }
            }
        }
    }
}
