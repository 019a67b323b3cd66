//! A layer of an encoder, with normalisation behind each sublayer, or before it as in language models.
use tch::{Kind, Tensor};

use crate::attention::{MultiHeadAttention, Visible};
use crate::encoder::EncoderLayer;
use crate::gates::Gate;
use crate::language_model::{DecoderLayer, LanguageConfig, Rotary};
use crate::{Error, ModelDropout, Weights};

/// A layer.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a model has few layers, all of one kind")]
pub(crate) enum Layer {
    /// Normalisation behind each sublayer.
    After(EncoderLayer),
    /// Normalisation before it, and rotary positions if there are any.
    Before(DecoderLayer, Option<Rotary>),
}

impl Layer {
    /// With normalisation before each sublayer.
    pub(super) fn before(config: &LanguageConfig, weights: &Weights, layer: usize) -> Result<Self, Error> {
        let layer = DecoderLayer::new(config, weights, layer)?;
        let rotary = layer.turning.map(|turning| Rotary::new(turning, weights.options().1));
        Ok(Self::Before(layer, rotary))
    }

    pub(super) fn attention(&self) -> &MultiHeadAttention {
        match self {
            Self::After(layer) => &layer.attention,
            Self::Before(layer, _) => &layer.attention,
        }
    }

    /// The layer, if its norms are behind each sublayer.
    pub(crate) fn as_after(&self) -> Option<&EncoderLayer> {
        match self {
            Self::After(layer) => Some(layer),
            Self::Before(..) => None,
        }
    }

    /// Positions on each side that a query sees; all if absent.
    fn reach(&self) -> Option<i64> {
        match self {
            Self::After(_) => None,
            Self::Before(layer, _) => layer.window.map(|window| window / 2),
        }
    }

    /// `bias`, `[batch, 1, 1, position]`, with that which hides what is beyond reach: `[batch, 1, 1 or position, position]`.
    pub(super) fn within_reach(&self, bias: &Tensor) -> Tensor {
        let Some(reach) = self.reach() else { return bias.shallow_clone() };
        let positions = Tensor::arange(bias.size()[3], (Kind::Int64, bias.device()));
        let distances = (&positions - positions.unsqueeze(1)).abs(); // [query, key]
        // a position sees itself, so that those amid padding see something
        bias.masked_fill(&distances.greater(reach), f64::NEG_INFINITY).masked_fill(&distances.eq(0), 0.0)
    }

    /// Context of each head at the first positions of `x`, before its gate: `[batch, kept, queries, d_head]`.
    ///
    /// - `x`: `[batch, position, d_model]`, all of which is attended to
    /// - `bias`: `[batch, 1, 1, position]`
    pub(super) fn context(
        &self,
        x: &Tensor,
        queries: i64,
        bias: &Tensor,
        gates: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        match self {
            Self::After(layer) => layer.context(&x.narrow(1, 0, queries), x, bias, gates, dropout),
            Self::Before(layer, rotary) => {
                let turns = rotary.as_ref().map(|rotary| rotary.turns(0, x.size()[1], x.kind()));
                let mut attending = layer.attending(x, turns.as_ref());
                attending.queries = attending.queries.narrow(2, 0, queries);
                let bias = self.within_reach(bias);
                let bias = if bias.size()[2] > queries { bias.narrow(2, 0, queries) } else { bias };
                layer.context(attending, &Visible::Under(&bias), gates, dropout)
            }
        }
    }

    /// [`context`](Self::context) under no gates, by fewer products where it is of the first position alone.
    pub(super) fn last_context(&self, x: &Tensor, queries: i64, bias: &Tensor) -> Tensor {
        if let (Self::After(layer), 1) = (self, queries) {
            return layer.first_context(x, bias);
        }
        let unrecorded = Tensor::ones([1, 1], (x.kind(), x.device()));
        self.context(x, queries, bias, (&unrecorded).into(), &ModelDropout::OFF)
    }

    /// The layer's output at some positions from what its attention adds there; all `[batch, queries, d_model]`.
    ///
    /// `gates`: under which something may be written down
    pub(super) fn finish(
        &self,
        x: &Tensor,
        added: Tensor,
        gates: Option<Gate<'_>>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let passing = |behind: Tensor| match gates {
            Some(gate) => gate.passing(x, behind),
            None => behind,
        };
        match self {
            Self::After(layer) => layer.fed(&passing(layer.attended(x, added, dropout)), dropout),
            Self::Before(layer, _) => layer.fed(x, &passing(layer.attended(x, added, dropout)), dropout),
        }
    }

    /// Multiply-adds of the layer for one row of the batch.
    pub(super) fn multiply_adds(&self, positions: u64, queries: u64) -> u64 {
        match self {
            Self::After(layer) => layer.multiply_adds(positions, queries),
            Self::Before(layer, _) => {
                let seen = self.reach().map_or(positions, |reach| positions.min(2 * reach as u64 + 1));
                layer.attention.key_value_multiply_adds(positions)
                    + layer.attention.attend_multiply_adds(queries, seen)
                    + queries * layer.feed_forward.multiply_adds()
            }
        }
    }
}
