//! The blocks of a language model: which norms they have, and what a causal pass through them costs.
use super::config::LanguageConfig;
use super::family::{Around, HeadNorm, Normalisation};
use crate::attention::{MultiHeadAttention, Scores};
use crate::block::{Block, FeedForwardInput, Norms};
use crate::experts::{Experts, FeedForwards};
use crate::head_norms::HeadNorms;
use crate::layers::{FeedForward, LayerNorm, Linear, Norm, RmsNorm};
use crate::model::ModelConfig;
use crate::{Attention, Error, Weights};

/// The norm of this name, of the kind that the family has.
pub(crate) fn norm(config: &LanguageConfig, weights: &Weights, name: &str) -> Result<Norm, Error> {
    let epsilon = config.rms_norm_eps;
    Ok(match config.family.norm {
        Normalisation::Layer => Norm::Layer(LayerNorm::new(weights, name, epsilon)?),
        Normalisation::LayerWithoutBias => Norm::Layer(LayerNorm::without_bias(weights, name, epsilon)?),
        Normalisation::RootMeanSquare => Norm::RootMeanSquare(RmsNorm::new(weights, name, epsilon)?),
        Normalisation::ShiftedRootMeanSquare => {
            Norm::RootMeanSquare(RmsNorm::new(weights, name, epsilon)?.shifted())
        }
    })
}

/// Layer `layer` of the model, counted from 0.
pub(crate) fn block(config: &LanguageConfig, weights: &Weights, layer: usize) -> Result<Block, Error> {
    let names = config.layer_names(layer);
    let heads = config.layout().module(Attention::SelfAttention, layer);
    let norms = |Around { before, after }: &Around<String>| {
        let made =
            |name: &Option<String>| name.as_deref().map(|name| norm(config, weights, name)).transpose();
        Ok::<_, Error>(Norms { before: made(before)?, inside: made(after)?, after: None })
    };
    let head_norms = names.head_norms.as_ref().map(|[query, key]| {
        let norms = [norm(config, weights, query)?, norm(config, weights, key)?];
        Ok::<_, Error>(if config.queries_stay() {
            let is_joined = config.family.names.head_norm == HeadNorm::Joined;
            HeadNorms::of_all_heads(norms, is_joined, &heads, weights.options().1)
        } else {
            HeadNorms::shared(norms)
        })
    });
    let options = &config.options;
    let attention = MultiHeadAttention::new(weights, &names.projections, &heads)?
        .with_scores(config.divisor(), Scores::Plain)
        .with_cap(options.attn_logit_softcapping);
    let feed_forward = feed_forward(config, weights, layer)?;
    Ok(Block {
        head_norms: head_norms.transpose()?,
        feed_forward_input: match options.use_parallel_residual {
            _ if config.family.shared_norm => FeedForwardInput::AttentionInput,
            Some(true) => FeedForwardInput::BlockInput,
            _ => FeedForwardInput::AfterAttention,
        },
        residual: options.residual_multiplier.filter(|&factor| factor != 1.0),
        window: config.window(layer),
        turning: config.turning(layer),
        ..Block::new(
            (attention, norms(&names.attention_norm)?),
            (feed_forward, norms(&names.feed_forward_norm)?),
        )
    })
}

fn feed_forward(config: &LanguageConfig, weights: &Weights, layer: usize) -> Result<FeedForwards, Error> {
    let names = config.family.names.layer(layer);
    let network = |names: Vec<String>| {
        let maps: Vec<&str> = names.iter().map(String::as_str).collect();
        FeedForward::new(weights, &maps, config.hidden_act)
    };
    let (Some([router, _]), count @ 1..) = (&names.experts, config.experts(layer)) else {
        return Ok(FeedForwards::One(network(names.feed_forward)?));
    };
    Ok(FeedForwards::Experts(Experts {
        router: Linear::new(weights, router)?,
        experts: (0..count).map(|number| network(names.expert(number))).collect::<Result<_, _>>()?,
        chosen: config.options.num_experts_per_tok.unwrap_or(1) as i64,
        is_normalised: config.options.norm_topk_prob == Some(true),
    }))
}

impl Block {
    /// Multiply-adds of one row of the batch: of `positions`, each of which sees itself and those before it.
    pub(super) fn causal_multiply_adds(&self, positions: u64) -> u64 {
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
