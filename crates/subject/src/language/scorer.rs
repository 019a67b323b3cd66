//! Texts that are predicted under many head sets.
use std::ops::Range;

use core_masking::language_model::LOGITS_AT_ONCE;
use core_masking::{GatedModel, HeadSet, LanguageModel, Trunk, to_vec};
use tch::{Kind, no_grad};

use super::rows::{BATCH_TOKENS, Rows};
use crate::error::Error;
use crate::evaluation::{BySet, Load, Request, Scorer, by_lowest_layer};

/// A split that is predicted.
pub(crate) struct Predictions<'a> {
    pub(super) rows: &'a Rows,
}

/// What is known of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowNats {
    /// Its place.
    pub row: usize,
    /// Summed over its predictions.
    pub nats: f64,
}

impl Scorer for Predictions<'_> {
    type Model = LanguageModel;
    type Segment = RowNats;

    fn groups(sets: &[HeadSet], _: usize) -> Vec<Range<usize>> {
        by_lowest_layer(sets)
    }

    /// The nats of the rows of a batch under each set.
    fn score(
        &self,
        model: &LanguageModel,
        request: &Request<'_>,
        left: Option<Trunk>,
    ) -> Result<(BySet<RowNats>, Trunk), Error> {
        let variants = model.variants(request.sets, request.rescale)?;
        let batch = self.rows.batch(model, request.rows)?;
        let (found, trunk) = no_grad(|| model.sweep(&batch, &variants, request.sets_per_batch, left));
        let of_set = |nats: &tch::Tensor| {
            let nats = to_vec::<f64>(&batch.by_row(&nats.to_kind(Kind::Double)));
            if nats.iter().any(|nats| !nats.is_finite()) {
                return Err(Error::NotFinite);
            }
            Ok(request.rows.iter().zip(nats).map(|(&row, nats)| RowNats { row, nats }).collect())
        };
        Ok((found.iter().map(of_set).collect::<Result<_, _>>()?, trunk))
    }
}

/// What rows take of the memory.
pub(super) fn load<'a>(model: &LanguageModel, rows: &Rows) -> Load<'a> {
    let config = model.config();
    let bytes = model.options().0.elt_size_in_bytes() as u64;
    // Each layer on the way keeps its input, what its heads read and what they add together; in one of them stand query,
    // key, value, their products, the residual stream and the feed-forward block with its gate.
    let width = config.hidden_size as u64;
    let heads = width.max(config.num_attention_heads as u64 * config.d_head() as u64);
    let token = (2 * width + heads) * config.num_hidden_layers as u64
        + 4 * (heads + width)
        + 3 * config.feed_forward_width() as u64;
    // A layer with a window has a bias for each pair of positions, and makes it of some others.
    let window = (0..config.num_hidden_layers).filter_map(|layer| config.window(layer)).min();
    let pairs = move |tokens: u64| {
        if window.is_some_and(|window| (window as u64) < tokens) { 4 * tokens * tokens } else { 0 }
    };
    let logits = (LOGITS_AT_ONCE as u64).max(config.vocab_size as u64);
    Load {
        lengths: rows.lengths().collect(),
        batch_tokens: BATCH_TOKENS,
        segment_bytes: Box::new(move |tokens| (tokens as u64 * token + pairs(tokens as u64)) * bytes),
        // logits of a part of the predictions, in single precision, their exponentials, and a copy of them
        thread_bytes: 3 * 4 * logits,
        trunk_bytes: width * bytes,
    }
}
