//! What texts take of the memory.
use std::collections::BTreeSet;

use core_masking::{ClassifierConfig, Measure};

use super::texts::BATCH_TOKENS;
use crate::evaluation::{Layers, Load, SegmentBytes, while_following, while_measuring};
use crate::precision::Bytes;

/// What texts of these lengths take of the memory while they are scored by a model whose numbers have this many `bytes`.
pub(crate) fn load(config: &ClassifierConfig, bytes: Bytes, lengths: Vec<usize>) -> Load<'static> {
    let feed_forward = (config.intermediate_size as u64).div_ceil(config.hidden_size as u64);
    // Each layer on the way keeps its input, what its heads read and what they add together; in one of them stand query,
    // key, value, their products, the residual stream and the feed-forward block before and after its nonlinearity.
    let tensors = 3 * config.num_hidden_layers as u64 + 8 + 2 * feed_forward;
    let width = config.hidden_size as u64;
    Load {
        lengths,
        batch_tokens: BATCH_TOKENS,
        longest_first: true,
        segment: Box::new(move |tokens| SegmentBytes::exactly(tokens as u64 * width * tensors * bytes.exact)),
        thread_bytes: 0,
        trunk_bytes: width * bytes.quickest,
        model_bytes: bytes.model,
    }
}

/// What texts take of the memory while heads are measured.
pub(crate) fn measuring_load(
    config: &ClassifierConfig,
    bytes: Bytes,
    lengths: Vec<usize>,
    measures: &BTreeSet<Measure>,
) -> Load<'static> {
    let segment = while_measuring(vec![layers(config)], measures, bytes.quickest);
    Load { segment, trunk_bytes: 0, ..load(config, bytes, lengths) }
}

/// While relevance is followed through one text after another, from its class.
pub(crate) fn relevance_load(config: &ClassifierConfig, bytes: Bytes, lengths: Vec<usize>) -> Load<'static> {
    let segment = while_following(vec![layers(config)], |_| 1, bytes.quickest);
    Load { batch_tokens: 1, segment, trunk_bytes: 0, ..load(config, bytes, lengths) }
}

fn layers(config: &ClassifierConfig) -> Layers {
    Layers {
        count: config.num_hidden_layers as u64,
        width: config.hidden_size as u64,
        heads_width: config.hidden_size as u64,
        heads: config.num_attention_heads as u64,
        feed_forward: 2 * config.intermediate_size as u64,
    }
}
