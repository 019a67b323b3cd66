//! Significance tests and corpus scores on plain slices, without libtorch.
//!
//! A corpus score is computed from sufficient statistics: each segment of the test set is counted once, and the score of any
//! resample is a function of a sum of segments, so resampling never looks at text again. [`Segments`] are what is known of a
//! test set by any metric: [`bleu`], [`classification`], [`nats`], [`means`]; [`ratio`] has shares. [`family`] tests a base and its
//! variants, by [`swaps`] or t-tests, and [`pooled`] the mean over several tasks. Agreement of two lists of numbers is in
//! [`correlation`] and [`regression`], and the agreement that noise allows in [`reliability`], that of several trainings in
//! [`replicates`].

pub mod adjust;
pub mod areas;
pub mod bleu;
pub mod blocks;
pub mod bootstrap;
mod cell;
pub mod classification;
mod clustered;
pub mod control_variate;
pub mod correlation;
mod counted;
pub mod deciding;
pub mod entities;
pub mod estimates;
pub mod family;
pub mod mcnemar;
pub mod means;
pub mod metric;
pub mod nats;
pub mod overlap;
pub mod pooled;
pub mod power;
pub mod predictions;
pub mod proportion;
pub mod ratio;
pub mod regression;
pub mod reliability;
pub mod replicates;
mod segments;
pub mod sequential;
pub mod spread;
pub mod swaps;
pub mod t_test;
mod ter;
pub mod text;

pub use cell::Cell;
pub use metric::{Direction, Metric, MetricName};
pub use segments::{Cells, Segments};

/// Fault of a statistic that could not be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// All values of one side are equal.
    #[error("one side does not vary: a correlation or a slope needs two different values")]
    NoSpread,

    /// A test has no degree of freedom.
    #[error(
        "too few values to test: a paired t-test needs two pairs, one of two samples three values in all, \
         a correlation or a line three pairs"
    )]
    TooFew,

    /// A segment or a number is not what its metric or test takes, or there is none.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    fn empty() -> Self {
        Self::Invalid("no segments to compare: a test set needs at least one".to_owned())
    }

    /// A score of the test set or of a resample, or another value to be tested, is NaN or infinite.
    fn not_finite() -> Self {
        Self::Invalid("a score is not finite, so nothing can be tested".to_owned())
    }
}

/// Fails a test where two numbers differ.
#[cfg(test)]
#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64) {
    let gap = (found - expected).abs();
    assert!(gap < tolerance, "{found} instead of {expected}: {gap:e}");
}
