//! Memory estimate for classifiers.
use core_masking::ClassifierConfig;
use core_masking::classifier::DistanceNames;

use super::inputs::BATCH_TOKENS;
use crate::evaluation::{Layers, Need, Purpose};
use crate::models::Bytes;

/// Returns the memory need of a classifier whose numbers and weights take `bytes`.
pub(crate) fn need<'a>(config: &ClassifierConfig, bytes: Bytes, purpose: Purpose<'a>) -> Need<'a> {
    let width = config.hidden_size as u64;
    let layers = Layers {
        count: config.num_hidden_layers as u64,
        width,
        heads_width: width,
        heads: config.num_attention_heads as u64,
        feed_forward: 2 * config.intermediate_size as u64,
    };
    let has_embeddings = matches!(config.family.names.distances, Some(DistanceNames::Embeddings { .. }));
    let kept = if matches!(purpose, Purpose::Scoring) { 1 } else { layers.count };
    // Products of queries and of keys with distances (two per key), the gathered products, and their sums with the bias.
    let of_distances = if has_embeddings { 8 * layers.heads * kept } else { 0 };
    // An image as it is read, and its patches.
    let of_pixels = config.image().map_or(0, |shape| 2 * shape.values() as u64);
    let segment = move |tokens: usize| {
        let tokens = tokens as u64;
        (layers.numbers(tokens, 1, purpose) + of_distances * tokens * tokens + of_pixels) * bytes.number
    };
    Need {
        batch_tokens: if matches!(purpose, Purpose::Relevance) { 1 } else { BATCH_TOKENS },
        longest_first: true,
        segment: Box::new(segment),
        thread_bytes: 0,
        cache_bytes: if matches!(purpose, Purpose::Scoring) { width * bytes.number } else { 0 },
        model_bytes: bytes.model,
    }
}
