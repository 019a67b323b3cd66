//! What a decoder attends to: the source, and the target so far.
use tch::{Device, Kind, Tensor};

use super::lane_memory::SimdCache;
use super::tensor_memory::TensorMemory;
use crate::translator::DecoderMemory;
use crate::{GatedModel, Gates, Translator};

/// Key-value cache of all layers of a decoder: the source, computed once, and the target, extended in each step. Layers are counted from 0;
/// the first axis of each tensor is the sentences still in the batch.
pub(super) trait Memory: DecoderMemory {
    /// Returns the hypotheses per sentence: one before the first step, then the beam width.
    fn hypotheses(&self) -> i64;

    /// Makes room for the newest tokens.
    fn extend(&mut self);

    /// Makes hypothesis `i` of each sentence inherit the past of hypothesis `origins[i]`.
    fn reorder(&mut self, origins: &[&[usize]]);

    /// Keeps only the sentences `rows`, in this order.
    fn keep(&mut self, rows: &[usize]);
}

/// Creates the cache for this source, with an empty target.
///
/// - `memory`: encoder states `[sentence, source, d_model]`
/// - `source_bias`: `[sentence, 1, 1, source]`; padding is on the right
pub(super) fn memory(
    model: &Translator,
    beam: usize,
    memory: &Tensor,
    source_bias: &Tensor,
    gates: &Gates,
) -> Box<dyn Memory> {
    if model.options() == (Kind::Float, Device::Cpu) && !gates.is_recorded() {
        Box::new(SimdCache::new(model, memory, source_bias))
    } else {
        Box::new(TensorMemory::new(model, beam as i64, memory, source_bias))
    }
}
