//! A layer of a decoder with normalisation before each sublayer, Xiong et al. (2020), <https://arxiv.org/abs/2002.04745>.
use tch::Tensor;

use super::config::LanguageConfig;
use super::family::Normalisation;
use super::rotary::Turns;
use crate::attention::{KeyValue, MultiHeadAttention, Visible};
use crate::gates::Gate;
use crate::layers::{FeedForward, LayerNorm, RmsNorm};
use crate::model::ModelConfig;
use crate::{Attention, Error, ModelDropout, Weights};

/// One layer.
#[derive(Debug)]
pub(super) struct DecoderLayer {
    pub(super) attention: MultiHeadAttention,
    attention_norm: Norm,
    head_norms: Option<HeadNorms>,
    feed_forward: FeedForward,
    feed_forward_norm: Norm,
    /// Keys that a query sees at most.
    pub(super) window: Option<i64>,
}

#[derive(Debug)]
struct HeadNorms {
    query: Norm,
    key: Norm,
}

/// Queries, keys and values of some positions, turned to their places.
pub(super) struct Attending {
    pub(super) queries: Tensor, // [batch, kept, position, d_head]
    pub(super) memory: KeyValue,
}

/// Kind of normalisation.
#[derive(Debug)]
pub(super) enum Norm {
    Layer(LayerNorm),
    RootMeanSquare(RmsNorm),
}

impl Norm {
    pub(super) fn new(config: &LanguageConfig, weights: &Weights, name: &str) -> Result<Self, Error> {
        let epsilon = config.rms_norm_eps;
        Ok(match config.family.norm {
            Normalisation::Layer => Self::Layer(LayerNorm::new(weights, name, epsilon)?),
            Normalisation::RootMeanSquare => Self::RootMeanSquare(RmsNorm::new(weights, name, epsilon)?),
        })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Tensor {
        match self {
            Self::Layer(norm) => norm.forward(x),
            Self::RootMeanSquare(norm) => norm.forward(x),
        }
    }
}

impl DecoderLayer {
    pub(super) fn new(config: &LanguageConfig, weights: &Weights, layer: usize) -> Result<Self, Error> {
        let names = config.family.names.layer(layer);
        let heads = config.layout().module(Attention::SelfAttention, layer);
        let norm = |name: &str| Norm::new(config, weights, name);
        let head_norms = names
            .head_norms
            .as_ref()
            .map(|[query, key]| Ok::<_, Error>(HeadNorms { query: norm(query)?, key: norm(key)? }));
        let maps: Vec<&str> = names.feed_forward.iter().map(String::as_str).collect();
        Ok(Self {
            attention: MultiHeadAttention::new(weights, &names.projections, &heads)?,
            attention_norm: norm(&names.attention_norm)?,
            head_norms: head_norms.transpose()?,
            feed_forward: FeedForward::new(weights, &maps, config.hidden_act)?,
            feed_forward_norm: norm(&names.feed_forward_norm)?,
            window: config.window(layer),
        })
    }

    /// `x`: `[batch, position, d_model]`, what enters the layer.
    pub(super) fn attending(&self, x: &Tensor, turns: Option<&Turns>) -> Attending {
        let x = self.attention_norm.forward(x);
        let (mut queries, mut memory) = (self.attention.queries(&x), self.attention.keys_values(&x));
        if let Some(HeadNorms { query, key }) = &self.head_norms {
            queries = query.forward(&queries);
            memory.key = key.forward(&memory.key);
        }
        if let Some(turns) = turns {
            queries = turns.apply(&queries);
            memory.key = turns.apply(&memory.key);
        }
        Attending { queries, memory }
    }

    /// Context of each head, before its gate: `[batch, kept, position, d_head]`.
    pub(super) fn context(
        &self,
        attending: Attending,
        visible: &Visible<'_>,
        gates: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        self.attention.read(attending.queries, &attending.memory, visible, gates, &dropout.attention)
    }

    /// Output of the layer from what its attention adds to `x`; all `[batch, position, d_model]`.
    pub(super) fn finish(&self, x: &Tensor, attended: Tensor, dropout: &ModelDropout) -> Tensor {
        let x = x + dropout.hidden.apply(attended);
        let normalised = self.feed_forward_norm.forward(&x);
        x + dropout.hidden.apply(self.feed_forward.forward(&normalised))
    }

    /// Multiply-adds of one row of the batch: of `positions`, each of which sees itself and those before it.
    pub(super) fn multiply_adds(&self, positions: u64) -> u64 {
        let seen: u64 = (1..=positions).map(|place| self.seen(place)).sum();
        self.attention.key_value_multiply_adds(positions)
            + self.attention.attend_multiply_adds(positions, 0)
            + seen * self.pair_multiply_adds()
            + positions * self.feed_forward.multiply_adds()
    }

    /// Multiply-adds of one more position, the `place`-th, whose predecessors are cached.
    pub(super) fn step_multiply_adds(&self, place: u64) -> u64 {
        self.attention.key_value_multiply_adds(1)
            + self.attention.attend_multiply_adds(1, 0)
            + self.seen(place) * self.pair_multiply_adds()
            + self.feed_forward.multiply_adds()
    }

    /// Keys that the `place`-th position sees.
    fn seen(&self, place: u64) -> u64 {
        self.window.map_or(place, |window| place.min(window as u64))
    }

    /// Multiply-adds of a query and a key.
    fn pair_multiply_adds(&self) -> u64 {
        self.attention.attend_multiply_adds(1, 1) - self.attention.attend_multiply_adds(1, 0)
    }
}
