//! How much of what a model says goes back to each head.
use std::collections::BTreeMap;

use core_masking::{HeadId, Relevance};

use crate::error::Error;

/// The relevance of heads for what the model says of one segment: sums over its target positions.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentRelevance {
    /// Number of target positions: of a translation its tokens, of a class one.
    pub targets: usize,
    /// Of each head.
    pub heads: BTreeMap<HeadId, HeadRelevance>,
}

/// The relevance of a head, summed over target positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadRelevance {
    /// Divided at each position by the sum of the absolute values of the layer's heads.
    pub share: f64,
    /// As it reaches the head.
    pub undivided: f64,
}

impl SegmentRelevance {
    /// # Errors
    /// If a number is none.
    pub(crate) fn new(found: &Relevance) -> Result<Self, Error> {
        let (shares, whole) = (found.shares(), found.by_head());
        let of = |(id, shares): (HeadId, Vec<f64>)| {
            let undivided = whole[&id].iter().sum();
            (id, HeadRelevance { share: shares.iter().sum(), undivided })
        };
        let targets = whole.values().next().map_or(0, Vec::len);
        let heads: BTreeMap<HeadId, HeadRelevance> = shares.into_iter().map(of).collect();
        let is_finite = |head: &HeadRelevance| head.share.is_finite() && head.undivided.is_finite();
        if heads.values().all(is_finite) { Ok(Self { targets, heads }) } else { Err(Error::NotFinite) }
    }
}
