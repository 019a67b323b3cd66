//! What sentences take of the memory.
use std::collections::BTreeSet;

use core_masking::language_model::LOGITS_AT_ONCE;
use core_masking::loss::MOST_LOGITS;
use core_masking::{BeamSearch, Measure, SentenceBytes, TranslatorConfig};

use crate::evaluation::{Layers, Load, SegmentBytes, while_following, while_measuring};
use crate::precision::Bytes;

/// Source tokens that are translated together: enough rows for whole matrix products, few enough that no thread
/// waits long for the last batch.
const TRANSLATED_TOKENS: usize = 2_560;

/// Tokens of pairs that heads are measured on together.
const MEASURED_TOKENS: usize = 1_024;

/// While sentences with this many source tokens are translated.
pub(crate) fn load(
    search: &BeamSearch,
    config: &TranslatorConfig,
    bytes: Bytes,
    lengths: Vec<usize>,
) -> Load<'static> {
    let (search, of_sentences) = (search.clone(), config.clone());
    Load {
        lengths,
        batch_tokens: TRANSLATED_TOKENS,
        longest_first: false, // a step of many hypotheses takes longer, and translations need not be longer than others
        thread_bytes: 0,
        trunk_bytes: config.d_model as u64 * bytes.quickest,
        model_bytes: bytes.model,
        segment: Box::new(move |tokens| {
            let SentenceBytes { likely, most } = search.sentence_bytes(&of_sentences, bytes.quickest, tokens);
            SegmentBytes { likely, most }
        }),
    }
}

/// While heads are measured on pairs, by the tokens of their longer sides.
pub(crate) fn measuring_load(
    config: &TranslatorConfig,
    bytes: Bytes,
    lengths: Vec<usize>,
    measures: &BTreeSet<Measure>,
) -> Load<'static> {
    let vocabulary = config.target_vocabulary();
    // The logits of a batch, their exponentials and what derivatives are made of: all at once, or of a part of the tokens.
    let logits = match vocabulary * MEASURED_TOKENS as i64 {
        all if all <= MOST_LOGITS => all,
        _ => MOST_LOGITS.max(LOGITS_AT_ONCE.max(vocabulary)),
    };
    Load {
        lengths,
        batch_tokens: MEASURED_TOKENS,
        longest_first: true,
        segment: while_measuring(stacks(config), measures, bytes.quickest),
        thread_bytes: 3 * logits as u64 * bytes.quickest.max(4),
        trunk_bytes: 0,
        model_bytes: bytes.model,
    }
}

/// While relevance is followed through one pair after another, from each token of the target to all of both sides.
pub(crate) fn relevance_load(config: &TranslatorConfig, bytes: Bytes, lengths: Vec<usize>) -> Load<'static> {
    let segment = while_following(stacks(config), |tokens| tokens, bytes.quickest);
    Load { batch_tokens: 1, segment, ..measuring_load(config, bytes, lengths, &BTreeSet::new()) }
}

fn stacks(config: &TranslatorConfig) -> Vec<Layers> {
    let layers = |count: usize, heads: usize, feed_forward: i64| Layers {
        count: count as u64,
        width: config.d_model as u64,
        heads_width: config.d_model as u64,
        heads: heads as u64,
        feed_forward: 2 * feed_forward as u64,
    };
    vec![
        layers(config.encoder_layers, config.encoder_attention_heads, config.encoder_ffn_dim),
        layers(config.decoder_layers, config.decoder_attention_heads, config.decoder_ffn_dim),
        layers(config.decoder_layers, config.decoder_attention_heads, 0), // attention to the encoder
    ]
}
