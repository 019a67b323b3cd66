//! One block of a Transformer: self-attention, cross-attention in a translator's decoder, and a feed-forward network, each added to the
//! residual stream. Every model here is a stack of blocks; families differ in where their norms are.
use families::parts::{self, FeedForwardInput};
use families::rotary::RotaryConfig;
use tch::Tensor;

use crate::attention::{KeyValue, MultiHeadAttention, Visible};
use crate::experts::FeedForwards;
use crate::gates::Gate;
use crate::head_norms::HeadNorms;
use crate::layers::{FeedForward, LayerNorm, Norm, normalised};
use crate::rotary::RotaryAngles;
use crate::{Dropout, ModelDropout};

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) attention: MultiHeadAttention,
    pub(crate) attention_norms: Norms,
    pub(crate) head_norms: Option<HeadNorms>,
    pub(crate) cross: Option<(MultiHeadAttention, Norms)>,
    pub(crate) feed_forward: FeedForwards,
    pub(crate) feed_forward_norms: Norms,
    pub(crate) feed_forward_input: FeedForwardInput,
    /// Factor by which each sublayer's output is multiplied before it is added.
    pub(crate) residual: Option<f64>,
    /// Sliding attention window, in keys: the last ones in a decoder, half of them on each side in an encoder.
    pub(crate) window: Option<i64>,
    /// Rotary positions; `None` if the block has none.
    pub(crate) rotary: Option<RotaryConfig>,
}

/// Norms of a sublayer, as in [`parts::Norms`].
#[derive(Debug)]
pub(crate) struct Norms {
    pub(crate) before: Option<Norm>,
    pub(crate) inside: Option<Norm>,
    pub(crate) after: Option<Norm>,
}

impl From<parts::Norms<Tensor>> for Norms {
    fn from(parts::Norms { before, inside, after }: parts::Norms<Tensor>) -> Self {
        let [before, inside, after] = [before, inside, after].map(|norm| norm.map(Norm::from));
        Self { before, inside, after }
    }
}

impl Norms {
    /// Returns the sublayer's input, from the residual stream `x`, `[.., d_model]`.
    pub(crate) fn read(&self, x: &Tensor) -> Tensor {
        normalised(self.before.as_ref(), x)
    }

    /// Adds the sublayer's output to the residual stream `x`; all `[.., d_model]`.
    pub(crate) fn add(&self, x: &Tensor, output: &Tensor, factor: Option<f64>, dropout: &Dropout) -> Tensor {
        let added = dropout.apply(normalised(self.inside.as_ref(), output));
        let sum = x + factor.map_or_else(|| added.shallow_clone(), |factor| &added * factor);
        normalised(self.after.as_ref(), &sum)
    }

    /// Returns the post-norm if it is a layer norm and the sublayer's only norm.
    fn as_post_norm(&self) -> Option<&LayerNorm> {
        match self {
            Self { before: None, inside: None, after: Some(Norm::Layer(norm)) } => Some(norm),
            _ => None,
        }
    }
}

/// Queries, keys and values, with rotary positions applied.
pub(crate) struct Attending {
    pub(crate) queries: Tensor, // [batch, kept, query, d_head]
    pub(crate) memory: KeyValue,
}

/// The parts of a post-norm block, the only kind that relevance propagation has rules for.
pub(crate) struct PostNorm<'a> {
    pub(crate) attention: (&'a MultiHeadAttention, &'a LayerNorm),
    pub(crate) cross: Option<(&'a MultiHeadAttention, &'a LayerNorm)>,
    pub(crate) feed_forward: (&'a FeedForward, &'a LayerNorm),
}

impl From<parts::Block<Tensor>> for Block {
    fn from(parts: parts::Block<Tensor>) -> Self {
        let module = |parts: parts::Module<Tensor>| {
            let scores = (parts.divisor, parts.distances.into(), parts.cap);
            let attention = MultiHeadAttention::new(parts.maps, &parts.heads, scores);
            let device = attention.output.weight().device();
            let head_norms = parts.head_norms;
            let head_norms =
                head_norms.map(|(norms, kind)| HeadNorms::new(norms, kind, &parts.heads, device));
            (attention, Norms::from(parts.norms), head_norms)
        };
        let (attention, attention_norms, head_norms) = module(parts.attention);
        Self {
            attention,
            attention_norms,
            head_norms,
            cross: parts.cross.map(module).map(|(attention, norms, _)| (attention, norms)),
            feed_forward: parts.feed_forward.into(),
            feed_forward_norms: parts.feed_forward_norms.into(),
            feed_forward_input: parts.feed_forward_input,
            residual: parts.residual,
            window: parts.window,
            rotary: parts.rotary,
        }
    }
}

impl Block {
    /// Selects the rotary angles of this block from `all`.
    pub(crate) fn angles<'a>(&self, all: &'a [(RotaryConfig, RotaryAngles)]) -> Option<&'a RotaryAngles> {
        all.iter().find(|(config, _)| Some(*config) == self.rotary).map(|(_, angles)| angles)
    }

    /// Computes keys and values of all positions, and queries of the first `queries` positions of `x`, `[batch, position, d_model]`.
    pub(crate) fn attending(&self, x: &Tensor, queries: i64, angles: Option<&RotaryAngles>) -> Attending {
        let x = self.attention_norms.read(x);
        // queries first: the order of the maps is the order in which gradients are summed, and training must be reproducible to the bit
        let mut queries = self.attention.queries(&x.narrow(1, 0, queries));
        let mut memory = self.attention.keys_values(&x);
        if let Some(norms) = &self.head_norms {
            (queries, memory.key) = (norms.of_queries(&queries), norms.of_keys(&memory.key));
        }
        if let Some(angles) = angles {
            (queries, memory.key) = (angles.apply(&queries), angles.apply(&memory.key));
        }
        Attending { queries, memory }
    }

    /// Returns the head outputs before gating: `[batch, kept, query, d_head]`.
    pub(crate) fn context(
        &self,
        attending: Attending,
        visible: &Visible<'_>,
        gates: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        self.attention.read(attending.queries, &attending.memory, visible, gates, &dropout.attention)
    }

    /// Adds `merged`, the output of self-attention, to the residual stream; all `[.., d_model]`.
    pub(crate) fn attended(&self, x: &Tensor, merged: &Tensor, dropout: &ModelDropout) -> Tensor {
        self.attention_norms.add(x, merged, self.residual, &dropout.hidden)
    }

    /// Applies the feed-forward sublayer. `x` is the block's input, `attended` the residual stream after attention; all
    /// `[batch, query, d_model]`.
    pub(crate) fn fed(&self, x: &Tensor, attended: &Tensor, dropout: &ModelDropout) -> Tensor {
        let entering = match self.feed_forward_input {
            FeedForwardInput::AfterAttention => self.feed_forward_norms.read(attended),
            FeedForwardInput::BlockInput => self.feed_forward_norms.read(x),
            FeedForwardInput::AttentionInput => self.attention_norms.read(x),
        };
        let output = self.feed_forward.forward(&entering);
        self.feed_forward_norms.add(attended, &output, self.residual, &dropout.hidden)
    }

    /// Returns the block's output from `merged`, the output of its self-attention; all `[batch, query, d_model]`.
    pub(crate) fn finish(&self, x: &Tensor, merged: &Tensor, dropout: &ModelDropout) -> Tensor {
        self.fed(x, &self.attended(x, merged, dropout), dropout)
    }

    /// Applies [`Norm::frozen`] to `merged`, the output of W_o, as it is added to the residual stream.
    pub(crate) fn frozen(&self, merged: &Tensor, direction: &Tensor) -> (Tensor, Tensor) {
        let direction = self.residual.map_or_else(|| direction.shallow_clone(), |factor| direction * factor);
        match &self.attention_norms.inside {
            Some(norm) => norm.frozen(merged, &direction),
            None => {
                let none = direction.select(-1, 0).zeros_like();
                (direction, none)
            }
        }
    }

    /// Returns true if queries and keys are plain linear maps: no norms, rotary positions or sliding window.
    pub(crate) fn has_plain_scores(&self) -> bool {
        self.head_norms.is_none() && self.rotary.is_none() && self.window.is_none()
    }

    /// Returns the block's parts if it is a plain post-norm block.
    pub(crate) fn as_post_norm(&self) -> Option<PostNorm<'_>> {
        let FeedForwards::One(feed_forward) = &self.feed_forward else { return None };
        let is_plain = self.has_plain_scores() && self.residual.is_none() && !feed_forward.is_gated();
        let cross = match &self.cross {
            Some((attention, norms)) => Some((attention, norms.as_post_norm()?)),
            None => None,
        };
        Some(PostNorm {
            attention: (&self.attention, self.attention_norms.as_post_norm()?),
            cross,
            feed_forward: (feed_forward, self.feed_forward_norms.as_post_norm()?),
        })
        .filter(|_| is_plain)
    }
}
