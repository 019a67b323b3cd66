//! Significance tests and corpus scores on plain slices, without libtorch.
//!
//! A corpus score is computed from sufficient statistics: each segment of the test set is counted
//! once, and the score of any resample is a function of a sum of segments, so resampling never
//! looks at text again. What a score needs is a [`SegmentStatistics`]; [`bleu`] holds BLEU's.

use std::ops::AddAssign;

pub mod adjust;
pub mod bleu;
pub mod bootstrap;

/// Sufficient statistics of one segment, or the sum of several.
///
/// `Default` is the statistics of no segment at all.
pub trait SegmentStatistics: Copy + Default + Send + Sync + AddAssign {
    /// The corpus score of the segments summed up in `self`, in the unit of the metric.
    ///
    /// Where the metric is undefined (0/0), an implementation defines it; a score is never NaN.
    fn score(&self) -> f64;
}

/// The statistics of a corpus: the sum over its segments.
pub fn sum<S: SegmentStatistics>(segments: &[S]) -> S {
    segments.iter().fold(S::default(), |mut total, &segment| {
        total += segment;
        total
    })
}

/// Why a statistic could not be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to compare.
    #[error("no segments to compare: a test set needs at least one")]
    Empty,

    /// A score of the test set or of a resample is NaN or infinite.
    #[error("a score is not finite, so the difference cannot be tested")]
    NotFinite,
}
