//! Memory estimate for language models.
use core_masking::LanguageConfig;
use core_masking::language_model::LOGITS_AT_ONCE;

use super::rows::BATCH_TOKENS;
use crate::evaluation::{Layers, Need, Purpose};
use crate::models::Bytes;

/// Returns the memory that a language model needs if its numbers have this many `bytes`. A question counts with the tokens of all its
/// choices.
pub(crate) fn need<'a>(config: &LanguageConfig, bytes: Bytes, purpose: Purpose<'a>) -> Need<'a> {
    let width = config.hidden_size as u64;
    let layers = Layers {
        count: config.num_hidden_layers as u64,
        width,
        heads_width: config.num_attention_heads as u64 * config.d_head() as u64,
        heads: config.num_attention_heads as u64,
        // before and after the nonlinearity, the gate, and their product
        feed_forward: 4 * config.feed_forward_width() as u64,
    };
    // A layer with a window has a bias for each pair of positions, and needs further such tensors to compute it.
    let window = (0..config.num_hidden_layers).filter_map(|layer| config.window(layer)).min();
    let biases = move |tokens: u64| {
        if window.is_some_and(|window| (window as u64) < tokens) { 4 * tokens * tokens } else { 0 }
    };
    let segment = move |tokens: usize| {
        let tokens = tokens as u64;
        (layers.numbers(tokens, 1, purpose) + biases(tokens)) * bytes.number
    };
    Need {
        batch_tokens: BATCH_TOKENS,
        longest_first: true,
        segment: Box::new(segment),
        // logits of a part of the predictions in single precision, their exponentials, and a copy of the logits
        thread_bytes: 3 * 4 * (LOGITS_AT_ONCE as u64).max(config.vocab_size as u64),
        cache_bytes: if matches!(purpose, Purpose::Scoring) { width * bytes.number } else { 0 },
        model_bytes: bytes.model,
    }
}
