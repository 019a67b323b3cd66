//! Memory that a decoder attends to: the source, and the target so far.
use tch::{Device, Kind, Tensor};

use super::lane_memory::LaneMemory;
use super::tensor_memory::TensorMemory;
use crate::translator::DecoderMemory;
use crate::{GatedModel, Gates, Translator};

/// Keys and values of the source, computed once, and of the target, appended to at each step, for all layers of a decoder.
///
/// Layers are counted from 0, and the first axis of each tensor is the sentences still in the batch.
pub(super) trait Memory: DecoderMemory {
    /// Hypotheses of a sentence: one before the first step, then as many as the beam is wide.
    fn hypotheses(&self) -> i64;

    /// Makes room for one more position, that of the newest tokens.
    fn extend(&mut self);

    /// Hypothesis `i` of each sentence inherits the past of hypothesis `origins[i]`.
    fn reorder(&mut self, origins: &[&[usize]]);

    /// Sentence `rows[i]` is the `i`-th from now on; those that are not named leave.
    fn keep(&mut self, rows: &[usize]);
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
