//! Memory estimate for translators.
use core_masking::language_model::LOGITS_AT_ONCE;
use core_masking::loss::MAX_LOGITS;
use core_masking::{BeamSearch, TranslatorConfig};

use crate::evaluation::{Layers, Need, Purpose};
use crate::models::Bytes;

/// Source tokens per batch of translations: large enough for efficient matrix products, small enough that no thread waits long for the last
/// batch.
const TRANSLATED_TOKENS: usize = 2_560;

/// Tokens per batch of pairs on which heads are measured.
const MEASURED_TOKENS: usize = 1_024;

/// Returns the memory that a translator needs if its numbers have this many `bytes`: per source token while sentences are translated,
/// otherwise per token of the longer side of a pair.
pub(crate) fn need<'a>(
    search: &'a BeamSearch,
    config: &'a TranslatorConfig,
    bytes: Bytes,
    purpose: Purpose<'a>,
) -> Need<'a> {
    let model_bytes = bytes.model;
    if matches!(purpose, Purpose::Scoring) {
        return Need {
            batch_tokens: TRANSLATED_TOKENS,
            longest_first: false, // a decoding step of many hypotheses takes longer, and long sources need not have long translations
            segment: Box::new(move |tokens| search.sentence_bytes(config, bytes.number, tokens)),
            thread_bytes: 0,
            cache_bytes: config.d_model as u64 * bytes.number,
            model_bytes,
        };
    }
    let vocabulary = config.target_vocabulary();
    // The logits of a batch, their exponentials and derivatives: all at once, or for a part of the tokens.
    let logits = match vocabulary * MEASURED_TOKENS as i64 {
        all if all <= MAX_LOGITS => all,
        _ => MAX_LOGITS.max(LOGITS_AT_ONCE.max(vocabulary)),
    };
    let stacks = stacks(config);
    let segment = move |tokens: usize| {
        let tokens = tokens as u64;
        // Relevance is propagated from each target token, through one stack at a time.
        let targets = [tokens, 0, 0];
        let numbers =
            stacks.iter().zip(targets).map(|(layers, targets)| layers.numbers(tokens, targets, purpose));
        numbers.sum::<u64>() * bytes.number
    };
    Need {
        batch_tokens: if matches!(purpose, Purpose::Relevance) { 1 } else { MEASURED_TOKENS },
        longest_first: true,
        segment: Box::new(segment),
        thread_bytes: 3 * logits as u64 * bytes.number.max(4),
        cache_bytes: 0,
        model_bytes,
    }
}

fn stacks(config: &TranslatorConfig) -> [Layers; 3] {
    let layers = |count: usize, heads: usize, feed_forward: i64| Layers {
        count: count as u64,
        width: config.d_model as u64,
        heads_width: config.d_model as u64,
        heads: heads as u64,
        feed_forward: 2 * feed_forward as u64,
    };
    [
        layers(config.encoder_layers, config.encoder_attention_heads, config.encoder_ffn_dim),
        layers(config.decoder_layers, config.decoder_attention_heads, config.decoder_ffn_dim),
        layers(config.decoder_layers, config.decoder_attention_heads, 0), // attention to the encoder
    ]
}
