//! One block of a Transformer: self-attention, in a translator's decoder attention to the source, and a feed-forward network, each
//! added to the residual stream. Every model here is a stack of these; families differ in the places of their norms.
use families::parts::{self, FeedForwardInput};
use families::rotary::Turning;
use tch::Tensor;

use crate::attention::{KeyValue, MultiHeadAttention, Visible};
use crate::experts::FeedForwards;
use crate::gates::Gate;
use crate::head_norms::HeadNorms;
use crate::layers::{FeedForward, LayerNorm, Norm, normalised};
use crate::rotary::Turns;
use crate::{Dropout, ModelDropout};

/// One block.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) attention: MultiHeadAttention,
    pub(crate) attention_norms: Norms,
    /// Of queries and keys.
    pub(crate) head_norms: Option<HeadNorms>,
    /// Attention to the source.
    pub(crate) cross: Option<(MultiHeadAttention, Norms)>,
    pub(crate) feed_forward: FeedForwards,
    pub(crate) feed_forward_norms: Norms,
    pub(crate) feed_forward_input: FeedForwardInput,
    /// Factor of what each sublayer adds.
    pub(crate) residual: Option<f64>,
    /// Keys that a query sees at most.
    pub(crate) window: Option<i64>,
    /// Rotary positions, if the block has any.
    pub(crate) turning: Option<Turning>,
}

/// Norms of a sublayer: [`parts::Norms`].
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
    /// What the sublayer reads of the residual stream `x`, `[.., d_model]`.
    pub(crate) fn read(&self, x: &Tensor) -> Tensor {
        normalised(self.before.as_ref(), x)
    }

    /// The residual stream after the sublayer's output was added to `x`; all `[.., d_model]`.
    pub(crate) fn add(&self, x: &Tensor, output: &Tensor, factor: Option<f64>, dropout: &Dropout) -> Tensor {
        let added = dropout.apply(normalised(self.inside.as_ref(), output));
        let sum = x + factor.map_or_else(|| added.shallow_clone(), |factor| &added * factor);
        normalised(self.after.as_ref(), &sum)
    }

    /// The norm after the sum, if it is layer normalisation and there is no other.
    fn as_post_norm(&self) -> Option<&LayerNorm> {
        match self {
            Self { before: None, inside: None, after: Some(Norm::Layer(norm)) } => Some(norm),
            _ => None,
        }
    }
}

/// Queries, keys and values of some positions, with their rotary positions.
pub(crate) struct Attending {
    pub(crate) queries: Tensor, // [batch, kept, query, d_head]
    pub(crate) memory: KeyValue,
}

/// The parts of a block whose sublayers are each followed by layer normalisation: those that relevance has rules for.
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
            turning: parts.turning,
        }
    }
}

impl Block {
    /// The rotary positions of this block among those of the model.
    pub(crate) fn turns<'a>(&self, all: &'a [(Turning, Turns)]) -> Option<&'a Turns> {
        all.iter().find(|(turning, _)| Some(*turning) == self.turning).map(|(_, turns)| turns)
    }

    /// Keys and values of all positions, and queries of the first ones.
    ///
    /// - `x`: the block's input, `[batch, position, d_model]`
    /// - `queries`: number of positions with a query
    pub(crate) fn attending(&self, x: &Tensor, queries: i64, turns: Option<&Turns>) -> Attending {
        let x = self.attention_norms.read(x);
        // queries first: gradients are summed up in the order of these maps, and training is to repeat to the last bit
        let mut queries = self.attention.queries(&x.narrow(1, 0, queries));
        let mut memory = self.attention.keys_values(&x);
        if let Some(norms) = &self.head_norms {
            (queries, memory.key) = (norms.of_queries(&queries), norms.of_keys(&memory.key));
        }
        if let Some(turns) = turns {
            (queries, memory.key) = (turns.apply(&queries), turns.apply(&memory.key));
        }
        Attending { queries, memory }
    }

    /// Context of each head, before its gate: `[batch, kept, query, d_head]`.
    pub(crate) fn context(
        &self,
        attending: Attending,
        visible: &Visible<'_>,
        gates: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        self.attention.read(attending.queries, &attending.memory, visible, gates, &dropout.attention)
    }

    /// The residual stream after self-attention, whose output is `merged`; all `[.., d_model]`.
    pub(crate) fn attended(&self, x: &Tensor, merged: &Tensor, dropout: &ModelDropout) -> Tensor {
        self.attention_norms.add(x, merged, self.residual, &dropout.hidden)
    }

    /// Output of the block.
    ///
    /// - `x`: the block's input; `attended`: the residual stream after attention; all `[batch, query, d_model]`
    pub(crate) fn fed(&self, x: &Tensor, attended: &Tensor, dropout: &ModelDropout) -> Tensor {
        let entering = match self.feed_forward_input {
            FeedForwardInput::AfterAttention => self.feed_forward_norms.read(attended),
            FeedForwardInput::BlockInput => self.feed_forward_norms.read(x),
            FeedForwardInput::AttentionInput => self.attention_norms.read(x),
        };
        let output = self.feed_forward.forward(&entering);
        self.feed_forward_norms.add(attended, &output, self.residual, &dropout.hidden)
    }

    /// Output of the block from the output of its self-attention; all `[batch, query, d_model]`.
    pub(crate) fn finish(&self, x: &Tensor, merged: &Tensor, dropout: &ModelDropout) -> Tensor {
        self.fed(x, &self.attended(x, merged, dropout), dropout)
    }

    /// [`Norm::frozen`] of what attention adds to the residual stream: `merged`, the output of W_o.
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

    /// `true` if queries and keys come from the linear maps unchanged: without norms, rotary positions and windows.
    pub(crate) fn has_plain_scores(&self) -> bool {
        self.head_norms.is_none() && self.turning.is_none() && self.window.is_none()
    }

    /// Its parts, if all norms follow a sum, and nothing else is special about it.
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
