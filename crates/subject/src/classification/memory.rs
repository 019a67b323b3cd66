//! Memory that texts take.
use core_masking::ClassifierConfig;

use super::texts::BATCH_TOKENS;
use crate::evaluation::{Layers, Need, Purpose, SegmentBytes};
use crate::models::Bytes;

/// Memory that a classifier needs whose numbers have this many `bytes`.
pub(crate) fn need<'a>(config: &ClassifierConfig, bytes: Bytes, purpose: Purpose<'a>) -> Need<'a> {
    let width = config.hidden_size as u64;
    let layers = Layers {
        count: config.num_hidden_layers as u64,
        width,
        heads_width: width,
        heads: config.num_attention_heads as u64,
        feed_forward: 2 * config.intermediate_size as u64,
    };
    let segment =
        move |tokens| SegmentBytes::exactly(layers.numbers(tokens as u64, 1, purpose) * bytes.of(purpose));
    Need {
        batch_tokens: if matches!(purpose, Purpose::Relevance) { 1 } else { BATCH_TOKENS },
        longest_first: true,
        segment: Box::new(segment),
        thread_bytes: 0,
        cache_bytes: if matches!(purpose, Purpose::Scoring) { width * bytes.quickest } else { 0 },
        model_bytes: bytes.model,
    }
}
