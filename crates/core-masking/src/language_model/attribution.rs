//! Direct logit attribution: each head's contribution to the logit difference between two tokens, without paths through later layers.
//! Wang et al. (2023), Section 3.1, <https://arxiv.org/abs/2211.00593>.
//!
//! With the scales of norms held constant, the difference is a sum over embeddings, heads, biases and feed-forward layers. If logits are
//! soft-capped (Gemma 2), the difference is taken before the cap, which is not linear.
use tch::{Kind, Tensor, no_grad};

use super::{LanguageModel, PredictionBatch};
use crate::importance::Sums;
use crate::model::tolerance;
use crate::{Attention, GatedModel, Gates, HeadId, HeadMeans, ModelDropout};

/// Two tokens to compare at one position of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contrast {
    /// Row of the text in its batch.
    pub row: usize,
    /// Position that predicts them, counted from 0.
    pub position: usize,
    /// The correct token.
    pub token: u32,
    /// The token it is compared with.
    pub other: u32,
}

/// Contributions to logit differences, in double precision.
#[derive(Debug)]
pub struct Attribution {
    /// Contributions of the remaining heads of each layer, `[contrasts, kept]`.
    pub heads: Vec<Tensor>,
    /// All other contributions, `[contrasts, 2 + 2 * layers]`: the embeddings, the last norm's bias, then for each layer its attention
    /// biases and its feed-forward layer.
    pub others: Tensor,
    /// Logit of the correct token minus logit of the other token, `[contrasts]`: the sum of all contributions.
    pub differences: Tensor,
}

/// Values of a layer at the positions of contrasts.
struct LayerValues {
    context: Tensor,  // gated head outputs, [contrasts, kept * d_head]
    merged: Tensor,   // output of W_o, [contrasts, d_model]
    attended: Tensor, // the residual stream after attention, [contrasts, d_model]
    leaving: Tensor,  // output of the layer, [contrasts, d_model]
}

impl LanguageModel {
    /// Decomposes the logit differences of a batch with at least one contrast.
    ///
    /// `gates`: one row; their replacements have one row, or one per example of the batch
    ///
    /// # Panics
    /// If the contributions do not sum to the differences because the model has a part that is not handled here.
    pub fn attribution(&self, batch: &PredictionBatch, gates: &Gates) -> Attribution {
        no_grad(|| self.attributed(batch, gates))
    }

    fn attributed(&self, batch: &PredictionBatch, gates: &Gates) -> Attribution {
        let (kind, device) = self.options();
        let of = |value: &dyn Fn(&Contrast) -> usize| {
            let values: Vec<i64> = batch.contrasts.iter().map(|contrast| value(contrast) as i64).collect();
            Tensor::from_slice(&values).to_device(device)
        };
        let (rows, places) = (of(&|contrast| contrast.row), of(&|contrast| contrast.position));
        let count = places.max().int64_value(&[]) + 1;
        let ids = batch.ids.narrow(1, 0, count).index_select(0, &rows);
        let example_of_row = batch.choices.as_ref().map(|choices| &choices.example_of_row);
        let gates = &gates
            .select(&example_of_row.map_or_else(|| rows.shallow_clone(), |of| of.index_select(0, &rows)));
        let places = Tensor::arange(rows.size()[0], (Kind::Int64, device)) * count + places;
        let there = |x: &Tensor| x.flatten(0, 1).index_select(0, &places); // [contrasts, ..] of [contrasts, position, ..]

        let (mut x, angles) = (self.embed(&ids, 0, &ModelDropout::OFF), self.angles(0, count));
        let entering = there(&x);
        let mut passages: Vec<LayerValues> = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            let gate = gates.of(Attention::SelfAttention, number);
            let context = self.context(number, &x, &angles, gates, &ModelDropout::OFF);
            let context = layer.attention.gated(context, gate); // [contrasts, kept, position, d_head]
            let merged = layer.attention.merge_open(&context);
            let attended = layer.attended(&there(&x), &there(&merged), &ModelDropout::OFF);
            let leaving = layer.finish(&x, &merged, &ModelDropout::OFF);
            passages.push(LayerValues {
                context: there(&context.transpose(1, 2).flatten(2, 3)),
                merged: there(&merged),
                attended,
                leaving: there(&leaving),
            });
            x = leaving;
        }

        let wide = |x: &Tensor| x.to_kind(Kind::Double);
        let along = |x: &Tensor, direction: &Tensor| (wide(x) * direction).sum_dim_intlist(-1, false, None);
        let row_of = |token: Tensor| wide(&self.output.table.index_select(0, &token));
        let direction =
            row_of(of(&|contrast| contrast.token as usize)) - row_of(of(&|contrast| contrast.other as usize));
        let differences = along(&self.normalised(&there(&x)), &direction);
        let direction =
            self.config.logit_divisor().map_or_else(|| direction.shallow_clone(), |by| &direction / by);
        let (direction, of_norm) = self.norm.frozen(&there(&x), &direction); // of the residual stream
        let (mut heads, mut others) = (Vec::new(), vec![along(&entering, &direction), of_norm]);
        for (layer, passage) in self.layers.iter().zip(passages) {
            let (inner, of_norm) = layer.frozen(&passage.merged, &direction);
            let output = &layer.attention.output;
            let read = inner.matmul(&wide(output.weight())) * wide(&passage.context); // [contrasts, kept * d_head]
            let d_head = layer.attention.d_head;
            let shape = [read.size()[0], read.size()[1] / d_head, d_head];
            heads.push(read.view(shape).sum_dim_intlist(-1, false, None));
            others.push(along(&output.bias(), &inner) + of_norm);
            others.push(along(&(passage.leaving - passage.attended), &direction));
        }
        let found = Attribution { heads, others: Tensor::stack(&others, 1), differences };
        let gap = found.gap();
        assert!(
            gap.is_nan() || gap <= tolerance(kind),
            "the parts of logits differ from their sum by {gap:e} of their magnitude"
        );
        found
    }

    /// Returns the mean contribution of each head over the contrasts of a batch.
    pub(super) fn attributed_to_heads(&self, batch: &PredictionBatch, gates: &Gates) -> HeadMeans {
        let mut means = HeadMeans::default();
        if batch.contrasts.is_empty() {
            return means;
        }
        let (attention, layout) = (Attention::SelfAttention, self.layout());
        for (layer, parts) in self.attribution(batch, gates).heads.iter().enumerate() {
            let sums = Sums::of_segments(parts);
            for (place, head) in layout.kept(attention, layer).into_iter().enumerate() {
                means.add(HeadId::from_index(attention, layer, head as usize), sums.of(place));
            }
        }
        means
    }
}

impl Attribution {
    /// Returns the maximum gap between summed contributions and differences, relative to the sum of absolute contributions or 1, if larger.
    pub fn gap(&self) -> f64 {
        let parts: Vec<&Tensor> = self.heads.iter().chain([&self.others]).collect();
        let parts = Tensor::cat(&parts, 1); // [contrasts, parts]
        let sum = |parts: &Tensor| parts.sum_dim_intlist(1, false, None);
        ((sum(&parts) - &self.differences).abs() / sum(&parts.abs()).clamp_min(1.0)).max().double_value(&[])
    }
}
