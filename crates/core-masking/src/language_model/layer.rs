//! A layer of a decoder with normalisation before each sublayer, Xiong et al. (2020), <https://arxiv.org/abs/2002.04745>.
use tch::{Kind, Tensor};

use super::config::LanguageConfig;
use super::experts::Blocks;
use super::family::{Around, HeadNorm, Normalisation};
use super::rotary::{Turning, Turns};
use crate::attention::{KeyValue, MultiHeadAttention, Visible};
use crate::gates::Gate;
use crate::layers::{LayerNorm, RmsNorm};
use crate::model::ModelConfig;
use crate::{Attention, Error, ModelDropout, Weights};

/// One layer.
#[derive(Debug)]
pub(crate) struct DecoderLayer {
    pub(crate) attention: MultiHeadAttention,
    attention_norm: Around<Norm>,
    head_norms: Option<HeadNorms>,
    pub(crate) feed_forward: Blocks,
    feed_forward_norm: Around<Norm>,
    /// True if the feed-forward block reads what attention reads.
    is_parallel: bool,
    /// True if the feed-forward block reads the normalised input of attention.
    shared_norm: bool,
    /// Factor of what each sublayer adds.
    residual: Option<f64>,
    /// Keys that a query sees at most.
    pub(crate) window: Option<i64>,
    /// Rotary positions, if the layer has any.
    pub(crate) turning: Option<Turning>,
}

#[derive(Debug)]
struct HeadNorms {
    query: Norm,
    key: Norm,
    joined: Option<Joined>,
}

/// Normalisation of all heads, including removed ones, whose queries and keys are still computed.
#[derive(Debug)]
struct Joined {
    over: HeadNorm,
    queries: Option<Tensor>, // [kept]; absent if all are
    keys: Option<Tensor>,
}

impl Joined {
    /// `x`: `[batch, heads, position, d_head]`; returns the heads that are `kept`.
    fn normalise(&self, x: &Tensor, norm: &Norm, kept: Option<&Tensor>) -> Tensor {
        let size = x.size();
        if size[1] == 0 {
            return x.shallow_clone();
        }
        let rows = x.transpose(1, 2); // [batch, position, heads, d_head]
        let rows = match self.over {
            HeadNorm::Joined => norm.forward(&rows.flatten(2, 3)).unflatten(2, [size[1], size[3]]),
            _ => norm.forward(&rows),
        };
        let x = rows.transpose(1, 2);
        kept.map_or_else(|| x.shallow_clone(), |kept| x.index_select(1, kept))
    }
}

/// What a sublayer reads of the residual stream.
fn read(x: &Tensor, norm: &Around<Norm>) -> Tensor {
    norm.before.as_ref().map_or_else(|| x.shallow_clone(), |norm| norm.forward(x))
}

/// Queries, keys and values of some positions, turned to their places.
pub(crate) struct Attending {
    pub(crate) queries: Tensor, // [batch, kept, position, d_head]
    pub(crate) memory: KeyValue,
}

/// Kind of normalisation.
#[derive(Debug)]
pub(crate) enum Norm {
    Layer(LayerNorm),
    RootMeanSquare(RmsNorm),
}

impl Norm {
    pub(crate) fn new(config: &LanguageConfig, weights: &Weights, name: &str) -> Result<Self, Error> {
        let epsilon = config.rms_norm_eps;
        Ok(match config.family.norm {
            Normalisation::Layer => Self::Layer(LayerNorm::new(weights, name, epsilon)?),
            Normalisation::LayerWithoutBias => Self::Layer(LayerNorm::without_bias(weights, name, epsilon)?),
            Normalisation::RootMeanSquare => Self::RootMeanSquare(RmsNorm::new(weights, name, epsilon)?),
            Normalisation::ShiftedRootMeanSquare => {
                Self::RootMeanSquare(RmsNorm::new(weights, name, epsilon)?.shifted())
            }
        })
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Tensor {
        match self {
            Self::Layer(norm) => norm.forward(x),
            Self::RootMeanSquare(norm) => norm.forward(x),
        }
    }

    /// The part of `direction · norm(x)` that is linear in `x` with the scale held as it is, as a direction of `x`, and the part of the
    /// bias, `[rows]`; all others are `[rows, d_model]`, what is returned in double precision.
    pub(super) fn frozen(&self, x: &Tensor, direction: &Tensor) -> (Tensor, Tensor) {
        let (x, along) =
            (x.to_kind(Kind::Double), |bias: &Tensor| direction.matmul(&bias.to_kind(Kind::Double)));
        match self {
            Self::Layer(norm) => {
                let (factors, bias, epsilon) = norm.parts();
                let scale = (x.var_dim([-1].as_slice(), false, true) + epsilon).rsqrt(); // [rows, 1]
                let inner = direction * factors * scale;
                (&inner - inner.mean_dim([-1].as_slice(), true, None), along(bias))
            }
            Self::RootMeanSquare(norm) => {
                let (factors, epsilon) = norm.parts();
                let scale = (x.square().mean_dim([-1].as_slice(), true, None) + epsilon).rsqrt();
                (direction * &factors * scale, along(&factors.zeros_like()))
            }
        }
    }
}

impl DecoderLayer {
    pub(crate) fn new(config: &LanguageConfig, weights: &Weights, layer: usize) -> Result<Self, Error> {
        let names = config.layer_names(layer);
        let heads = config.layout().module(Attention::SelfAttention, layer);
        let norm = |name: &str| Norm::new(config, weights, name);
        let around = |Around { before, after }: &Around<String>| {
            let made = |name: &Option<String>| name.as_deref().map(norm).transpose();
            Ok::<_, Error>(Around { before: made(before)?, after: made(after)? })
        };
        let options = &config.options;
        let head_norms = names.head_norms.as_ref().map(|[query, key]| {
            let joined = config.queries_stay().then(|| {
                let device = weights.options().1;
                let kept = |kept: &[i64], all: usize| {
                    (kept.len() < all).then(|| Tensor::from_slice(kept).to_device(device))
                };
                let shape = heads.shape;
                Joined {
                    over: config.family.names.head_norm,
                    queries: kept(&heads.kept, shape.heads),
                    keys: kept(&heads.kept_key_values(), shape.key_value_heads),
                }
            });
            Ok::<_, Error>(HeadNorms { query: norm(query)?, key: norm(key)?, joined })
        });
        Ok(Self {
            attention: MultiHeadAttention::new(weights, &names.projections, &heads)?
                .with_scores(config.divisor(), None)
                .with_cap(options.attn_logit_softcapping),
            attention_norm: around(&names.attention_norm)?,
            head_norms: head_norms.transpose()?,
            feed_forward: Blocks::new(config, weights, layer)?,
            feed_forward_norm: around(&names.feed_forward_norm)?,
            is_parallel: options.use_parallel_residual == Some(true),
            shared_norm: config.family.shared_norm,
            residual: options.residual_multiplier.filter(|&factor| factor != 1.0),
            window: config.window(layer),
            turning: config.turning(layer),
        })
    }

    /// The turns of this layer among those of the model.
    pub(super) fn turns<'a>(&self, all: &'a [(Turning, Turns)]) -> Option<&'a Turns> {
        all.iter().find(|(turning, _)| Some(*turning) == self.turning).map(|(_, turns)| turns)
    }

    /// `x`: `[batch, position, d_model]`, what enters the layer.
    pub(crate) fn attending(&self, x: &Tensor, turns: Option<&Turns>) -> Attending {
        let x = read(x, &self.attention_norm);
        let (mut queries, mut memory) = (self.attention.queries(&x), self.attention.keys_values(&x));
        match &self.head_norms {
            Some(HeadNorms { query, key, joined: None }) => {
                queries = query.forward(&queries);
                memory.key = key.forward(&memory.key);
            }
            Some(HeadNorms { query, key, joined: Some(joined) }) => {
                queries = joined.normalise(&queries, query, joined.queries.as_ref());
                memory.key = joined.normalise(&memory.key, key, joined.keys.as_ref());
            }
            None => {}
        }
        if let Some(turns) = turns {
            queries = turns.apply(&queries);
            memory.key = turns.apply(&memory.key);
        }
        Attending { queries, memory }
    }

    /// Context of each head, before its gate: `[batch, kept, position, d_head]`.
    pub(crate) fn context(
        &self,
        attending: Attending,
        visible: &Visible<'_>,
        gates: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        self.attention.read(attending.queries, &attending.memory, visible, gates, &dropout.attention)
    }

    /// [`Norm::frozen`] of what attention adds to the residual stream: `merged` by W_o.
    pub(super) fn frozen(&self, merged: &Tensor, direction: &Tensor) -> (Tensor, Tensor) {
        let direction = self.residual.map_or_else(|| direction.shallow_clone(), |factor| direction * factor);
        match &self.attention_norm.after {
            Some(norm) => norm.frozen(merged, &direction),
            None => {
                let none = direction.select(-1, 0).zeros_like();
                (direction, none)
            }
        }
    }

    /// The residual stream behind attention, whose output is `merged`; all `[.., d_model]`.
    pub(crate) fn attended(&self, x: &Tensor, merged: Tensor, dropout: &ModelDropout) -> Tensor {
        self.sum(x, merged, &self.attention_norm, dropout)
    }

    /// Output of the layer from what its attention adds to `x`; all `[batch, position, d_model]`.
    pub(crate) fn finish(&self, x: &Tensor, attended: Tensor, dropout: &ModelDropout) -> Tensor {
        self.fed(x, &self.attended(x, attended, dropout), dropout)
    }

    /// Output of the layer from what enters it and the residual stream behind attention.
    pub(crate) fn fed(&self, x: &Tensor, attended: &Tensor, dropout: &ModelDropout) -> Tensor {
        let entering = if self.shared_norm {
            read(x, &self.attention_norm)
        } else {
            read(if self.is_parallel { x } else { attended }, &self.feed_forward_norm)
        };
        self.sum(attended, self.feed_forward.forward(&entering), &self.feed_forward_norm, dropout)
    }

    /// The residual stream and what a sublayer adds to it.
    fn sum(&self, x: &Tensor, added: Tensor, norm: &Around<Norm>, dropout: &ModelDropout) -> Tensor {
        let added = norm.after.as_ref().map_or_else(|| added.shallow_clone(), |norm| norm.forward(&added));
        let added = dropout.hidden.apply(added);
        x + self.residual.map_or_else(|| added.shallow_clone(), |factor| &added * factor)
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
