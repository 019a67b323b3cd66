//! Relevance of each head for the model's predictions.
use std::collections::BTreeMap;

use core_masking::{HeadId, Relevance};

use crate::error::Error;

/// Relevance of heads for the prediction on one segment, summed over its target positions.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentRelevance {
    /// Number of target positions: the tokens of a translation, or 1 for a class.
    pub targets: usize,
    /// Relevance lost or added between the largest logit, which starts with 1, and the embeddings: `|1 - sum|`.
    pub lost: f64,
    /// Relevance of each head.
    pub heads: BTreeMap<HeadId, HeadRelevance>,
}

/// The relevance of a head, summed over target positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadRelevance {
    /// Relevance divided, at each position, by the sum of absolute values over the layer's heads.
    pub share: f64,
    /// Relevance as it arrives at the head.
    pub undivided: f64,
}

impl SegmentRelevance {
    /// Returns the mean per target position over all segments; `sum` returns a segment's sum over target positions.
    pub fn mean(segments: &[Self], sum: impl Fn(&Self) -> f64) -> f64 {
        let targets: usize = segments.iter().map(|segment| segment.targets).sum();
        segments.iter().map(sum).sum::<f64>() / targets.max(1) as f64
    }

    pub(crate) fn new(found: &Relevance) -> Result<Self, Error> {
        let of = |(&id, shares): (&HeadId, &Vec<f64>)| {
            (id, HeadRelevance { share: shares.iter().sum(), undivided: found.heads[&id].iter().sum() })
        };
        let heads: BTreeMap<HeadId, HeadRelevance> = found.shares.iter().map(of).collect();
        let (targets, lost) =
            (found.left.len(), found.left.iter().map(|left| (1.0 - left).abs()).sum::<f64>());
        let is_finite = |head: &HeadRelevance| head.share.is_finite() && head.undivided.is_finite();
        let is_sound = lost.is_finite() && heads.values().all(is_finite);
        if is_sound { Ok(Self { targets, lost, heads }) } else { Err(Error::not_finite()) }
    }
}
