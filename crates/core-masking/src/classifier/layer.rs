//! Encoder layer: a block, its sliding window and its rotary positions.
use tch::{Kind, Tensor};

use crate::attention::Visible;
use crate::block::Block;
use crate::gates::Gate;
use crate::rotary::Rotary;
use crate::{ModelDropout, Weights};

#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) block: Block,
    rotary: Option<Rotary>,
}

impl Layer {
    pub(super) fn new(block: Block, weights: &Weights) -> Self {
        let rotary = block.rotary.map(|config| Rotary::new(config, weights.options().1));
        Self { block, rotary }
    }

    /// Returns how many positions a query sees on each side; `None` for all.
    fn reach(&self) -> Option<i64> {
        self.block.window.map(|window| window / 2)
    }

    /// Hides keys outside the sliding window in `bias`, `[batch, 1, 1, position]`; returns `[batch, 1, 1 or position, position]`.
    pub(super) fn within_reach(&self, bias: &Tensor) -> Tensor {
        let Some(reach) = self.reach() else { return bias.shallow_clone() };
        let positions = Tensor::arange(bias.size()[3], (Kind::Int64, bias.device()));
        let distances = (&positions - positions.unsqueeze(1)).abs(); // [query, key]
        // every position sees itself, so that no row is hidden entirely amid padding
        bias.masked_fill(&distances.greater(reach), f64::NEG_INFINITY).masked_fill(&distances.eq(0), 0.0)
    }

    /// Returns the head outputs at the first positions of `x`, before gating: `[batch, kept, queries, d_head]`.
    ///
    /// - `x`: `[batch, position, d_model]`, attended to in full
    /// - `bias`: `[batch, 1, 1, position]`
    pub(super) fn context(
        &self,
        x: &Tensor,
        queries: i64,
        bias: &Tensor,
        gates: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let angles = self.rotary.as_ref().map(|rotary| rotary.angles(0, x.size()[1], x.kind()));
        let attending = self.block.attending(x, queries, angles.as_ref());
        let bias = self.block.attention.scored(
            &self.within_reach(bias),
            &attending.queries,
            &attending.memory.key,
            &dropout.hidden,
        );
        self.block.context(attending, &Visible::Under(&bias), gates, dropout)
    }

    /// [`context`](Self::context) with open gates, computed with fewer products for a single query if the model's scores allow it.
    pub(super) fn last_context(&self, x: &Tensor, queries: i64, bias: &Tensor) -> Tensor {
        let block = &self.block;
        if queries == 1 && block.has_plain_scores() && !block.attention.is_disentangled() {
            return block.attention.first_context(&block.attention_norms.read(x), bias);
        }
        let unrecorded = Tensor::ones([1, 1], (x.kind(), x.device()));
        self.context(x, queries, bias, (&unrecorded).into(), &ModelDropout::OFF)
    }

    /// Returns the layer's output at some positions from the output of its attention there; all `[batch, queries, d_model]`.
    ///
    /// `gates`: may record the residual stream
    pub(super) fn finish(
        &self,
        x: &Tensor,
        merged: &Tensor,
        gates: Option<Gate<'_>>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let attended = self.block.attended(x, merged, dropout);
        let attended = match gates {
            Some(gate) => gate.passing(x, attended),
            None => attended,
        };
        self.block.fed(x, &attended, dropout)
    }

    /// Returns the multiply-adds of the layer for one row of the batch.
    pub(super) fn multiply_adds(&self, positions: u64, queries: u64) -> u64 {
        let Block { attention, feed_forward, .. } = &self.block;
        let seen = self.reach().map_or(positions, |reach| positions.min(2 * reach as u64 + 1));
        attention.key_value_multiply_adds(positions)
            + attention.distance_multiply_adds(positions, queries)
            + attention.attend_multiply_adds(queries, seen)
            + queries * feed_forward.multiply_adds()
    }
}
