//! Significance tests and corpus scores on plain slices, without libtorch.
//!
//! A corpus score is computed from sufficient statistics: each segment of the test set is counted
//! once, and the score of any resample is a function of a sum of segments, so resampling never
//! looks at text again. What a score needs is a [`SegmentStatistics`]; [`bleu`] holds BLEU's.
//! Classifiers are scored and compared in [`classification`]. How two lists of numbers go together is in
//! [`correlation`] and [`regression`].

use std::ops::AddAssign;

pub mod adjust;
pub mod bleu;
pub mod bootstrap;
pub mod classification;
mod comparison;
mod confusion;
pub mod correlation;
pub mod mcnemar;
pub mod regression;
pub mod t_test;

pub use comparison::Comparison;

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
    /// A metric of two classes met an example of another class.
    #[error("class {class} is not one of two: {metric} knows classes 0 and 1")]
    Class {
        /// Index of the class.
        class: usize,
        /// Name of the metric.
        metric: &'static str,
    },

    /// There is nothing to compare.
    #[error("no segments to compare: a test set needs at least one")]
    Empty,

    /// All values of one side are equal.
    #[error("one side does not vary: a correlation or a slope needs two different values")]
    NoSpread,

    /// A score of the test set or of a resample, or another value to be tested, is NaN or infinite.
    #[error("a score is not finite, so nothing can be tested")]
    NotFinite,

    /// A test has no degree of freedom.
    #[error(
        "too few values to test: a paired t-test needs two pairs, one of two samples three values in all, \
         a correlation or a line three pairs"
    )]
    TooFew,
}
