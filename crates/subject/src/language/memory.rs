//! What rows take of the memory.
use std::collections::BTreeSet;

use core_masking::language_model::LOGITS_AT_ONCE;
use core_masking::{LanguageConfig, Measure};

use super::rows::BATCH_TOKENS;
use crate::evaluation::{Layers, Load, SegmentBytes, while_measuring};
use crate::precision::Bytes;

/// While rows of this many tokens are predicted.
pub(crate) fn load(config: &LanguageConfig, bytes: Bytes, lengths: Vec<usize>) -> Load<'static> {
    // Each layer on the way keeps its input, what its heads read and what they add together; in one of them stand query,
    // key, value, their products, the residual stream and the feed-forward block with its gate.
    let width = config.hidden_size as u64;
    let heads = heads_width(config).max(width);
    let token = (2 * width + heads) * config.num_hidden_layers as u64
        + 4 * (heads + width)
        + 3 * config.feed_forward_width() as u64;
    // A layer with a window has a bias for each pair of positions, and makes it of some others.
    let window = (0..config.num_hidden_layers).filter_map(|layer| config.window(layer)).min();
    let pairs = move |tokens: u64| {
        if window.is_some_and(|window| (window as u64) < tokens) { 4 * tokens * tokens } else { 0 }
    };
    let logits = (LOGITS_AT_ONCE as u64).max(config.vocab_size as u64);
    let numbers = move |tokens: u64| tokens * token + pairs(tokens);
    Load {
        lengths,
        batch_tokens: BATCH_TOKENS,
        longest_first: true,
        segment: Box::new(move |tokens| SegmentBytes::exactly(numbers(tokens as u64) * bytes.exact)),
        // logits of a part of the predictions, in single precision, their exponentials, and a copy of them
        thread_bytes: 3 * 4 * logits,
        trunk_bytes: width * bytes.quickest,
        model_bytes: bytes.model,
    }
}

/// While heads are measured; `lengths`: of documents' rows, or of all choices of a question together.
pub(crate) fn measuring_load(
    config: &LanguageConfig,
    bytes: Bytes,
    lengths: Vec<usize>,
    measures: &BTreeSet<Measure>,
) -> Load<'static> {
    let layers = Layers {
        count: config.num_hidden_layers as u64,
        width: config.hidden_size as u64,
        heads_width: heads_width(config),
        heads: config.num_attention_heads as u64,
        // before and after the nonlinearity, the gate, and their product
        feed_forward: 4 * config.feed_forward_width() as u64,
    };
    let segment = while_measuring(vec![layers], measures, bytes.quickest);
    Load { segment, trunk_bytes: 0, ..load(config, bytes, lengths) }
}

/// Of all heads of a layer together.
fn heads_width(config: &LanguageConfig) -> u64 {
    config.num_attention_heads as u64 * config.d_head() as u64
}
