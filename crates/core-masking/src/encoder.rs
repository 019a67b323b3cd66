//! A layer of self-attention and feed-forward block with normalisation after each (Vaswani et al. 2017, Section 3.1): what
//! encoders of classifiers and of translators are stacks of.
use tch::Tensor;

use crate::attention::{MultiHeadAttention, Visible};
use crate::disentangled::Disentangled;
use crate::gates::Gate;
use crate::layers::{Activation, FeedForward, LayerNorm};
use crate::{Dropout, Error, ModelDropout, Projections, Weights};
use heads::ModuleHeads;

/// Names of a layer's tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerNames {
    /// Query, key, value and output projection.
    pub projections: Projections,
    /// Normalisation after attention.
    pub attention_norm: String,
    /// First map of the feed-forward block.
    pub inner: String,
    /// Its second map.
    pub outer: String,
    /// Normalisation after the feed-forward block.
    pub norm: String,
}

/// Settings that layers of a stack have in common besides their sizes.
#[derive(Debug, Clone, Copy)]
pub struct LayerSettings {
    /// Between the two maps of the feed-forward block.
    pub activation: Activation,
    /// Added to the variance in layer normalisation.
    pub epsilon: f64,
}

/// One layer of an encoder.
#[derive(Debug)]
pub struct EncoderLayer {
    pub(crate) attention: MultiHeadAttention,
    pub(crate) disentangled: Option<Disentangled>,
    pub(crate) attention_norm: LayerNorm,
    pub(crate) feed_forward: FeedForward,
    pub(crate) norm: LayerNorm,
}

impl EncoderLayer {
    /// Takes the tensors of these names.
    ///
    /// # Errors
    /// If one of them is missing.
    pub fn new(
        weights: &Weights,
        names: &LayerNames,
        heads: &ModuleHeads,
        LayerSettings { activation, epsilon }: LayerSettings,
    ) -> Result<Self, Error> {
        let maps: [&str; 2] = [&names.inner, &names.outer];
        Ok(Self {
            attention: MultiHeadAttention::new(weights, &names.projections, heads)?,
            disentangled: None,
            attention_norm: LayerNorm::new(weights, &names.attention_norm, epsilon)?,
            feed_forward: FeedForward::new(weights, &maps, activation)?,
            norm: LayerNorm::new(weights, &names.norm, epsilon)?,
        })
    }

    /// Context of each head at some positions, before its gate: `[batch, kept, queries, d_head]`.
    ///
    /// - `query`: `[batch, queries, d_model]`, positions of `x`
    /// - `x`: `[batch, position, d_model]`, all of which is attended to
    pub(crate) fn context(
        &self,
        query: &Tensor,
        x: &Tensor,
        bias: &Tensor,
        gates: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let (queries, memory) = (self.attention.queries(query), self.attention.keys_values(x));
        let bias = self.bias(bias, &queries, &memory.key, &dropout.hidden);
        self.attention.read(queries, &memory, &Visible::Under(&bias), gates, &dropout.attention)
    }

    /// `bias` with what scores of queries at the first positions, `[batch, kept, queries, d_head]`, owe to distances from keys,
    /// `[batch, kept, position, d_head]`; broadcasts to `[batch, kept, queries, position]`.
    pub(crate) fn bias(&self, bias: &Tensor, queries: &Tensor, keys: &Tensor, dropout: &Dropout) -> Tensor {
        if let Some(distances) = &self.disentangled {
            return bias + distances.scores(&self.attention, queries, keys, dropout);
        }
        let (bias, queries) = (self.attention.with_distances(bias), queries.size()[2]);
        if bias.size()[2] > queries { bias.narrow(2, 0, queries) } else { bias }
    }

    /// [`context`](Self::context) at the first position, by fewer products where scores allow it: `[batch, kept, 1, d_head]`.
    pub(crate) fn first_context(&self, x: &Tensor, bias: &Tensor) -> Tensor {
        if self.disentangled.is_none() {
            return self.attention.first_context(x, bias);
        }
        let unrecorded = Tensor::ones([1, 1], (x.kind(), x.device()));
        self.context(&x.narrow(1, 0, 1), x, bias, (&unrecorded).into(), &ModelDropout::OFF)
    }

    /// The residual stream behind attention, which adds `added` to it; all `[batch, queries, d_model]`.
    pub(crate) fn attended(&self, query: &Tensor, added: Tensor, dropout: &ModelDropout) -> Tensor {
        self.attention_norm.forward(&(query + dropout.hidden.apply(added)))
    }

    /// The layer's output from the residual stream behind attention.
    pub(crate) fn fed(&self, x: &Tensor, dropout: &ModelDropout) -> Tensor {
        let fed = self.feed_forward.forward(x);
        self.norm.forward(&(x + dropout.hidden.apply(fed)))
    }

    /// Multiply-adds of the layer for one row of the batch.
    pub(crate) fn multiply_adds(&self, positions: u64, queries: u64) -> u64 {
        let distances =
            |distances: &Disentangled| distances.multiply_adds(&self.attention, positions, queries);
        self.attention.key_value_multiply_adds(positions)
            + self.disentangled.as_ref().map_or(0, distances)
            + self.attention.attend_multiply_adds(queries, positions)
            + queries * self.feed_forward.multiply_adds()
    }
}
