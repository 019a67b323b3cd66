//! Significance tests and corpus scores on plain slices, without libtorch.
//!
//! A corpus score is computed from sufficient statistics: each segment of the test set is counted
//! once, and the score of any resample is a function of a sum of segments, so resampling never
//! looks at text again. What a score needs is a [`SegmentStatistics`]; [`bleu`] holds BLEU's, [`classification`] those of
//! classifiers, [`nats`] those of language models, [`ratio`] those of shares, and [`Segments`] any of them. [`family`] tests a base and its variants. How two lists of numbers go together
//! is in [`correlation`] and [`regression`], and how far noise lets them in [`reliability`].

pub mod adjust;
pub mod bleu;
pub mod bootstrap;
mod cell;
pub mod classification;
mod confusion;
pub mod correlation;
mod direction;
pub mod family;
pub mod max_t;
pub mod mcnemar;
mod metric;
pub mod nats;
pub mod proportion;
pub mod ratio;
pub mod regression;
pub mod reliability;
mod segments;
pub mod t_test;

pub use cell::Cell;
pub use direction::Direction;
pub use metric::{Metric, MetricName};
pub use segments::{Cells, Segments};

/// Sufficient statistics of one segment: a few numbers, whose sums over a test set make its score.
pub trait SegmentStatistics: Copy + PartialEq + Send + Sync {
    /// How many numbers there are.
    const COUNTS: usize;

    /// The numbers: an array of that many.
    type Counts: AsRef<[f64]>;

    /// The numbers of this segment.
    fn counts(&self) -> Self::Counts;

    /// The corpus score of segments whose counts add up to `sums`, in the unit of the metric.
    ///
    /// Where the metric is undefined (0/0), an implementation defines it; a score is never NaN.
    fn score(sums: &[f64]) -> f64;
}

/// The score of a corpus.
pub fn score<S: SegmentStatistics>(segments: &[S]) -> f64 {
    let mut sums = vec![0.0; S::COUNTS];
    for segment in segments {
        sums.iter_mut().zip(segment.counts().as_ref()).for_each(|(sum, count)| *sum += count);
    }
    S::score(&sums)
}

/// Why a statistic could not be computed.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A stored segment is not one of its metric.
    #[error("a segment of {metric} has {columns} numbers")]
    Cells {
        /// Of which metric.
        metric: MetricName,
        /// How many numbers it stores of a segment.
        columns: usize,
    },

    /// A metric of two classes met an example of another class.
    #[error("class {class} is not one of two: {metric} knows classes 0 and 1")]
    Class {
        /// Index of the class.
        class: usize,
        /// Of which metric.
        metric: MetricName,
    },

    /// A document of a language model cannot be.
    #[error("{nats} nats for {tokens} tokens: nats must be finite and 0 or more, and 0 without a token")]
    Nats {
        /// What its tokens cost.
        nats: f64,
        /// How many there are.
        tokens: u32,
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
