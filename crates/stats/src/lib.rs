//! Significance tests and corpus scores on plain slices, without libtorch.
//!
//! A corpus score is a function of sufficient statistics: each segment of the test set is counted once, and the score of any resample
//! follows from a sum over segments, so resampling never reads text again. [`Segments`] contains these statistics for any metric: [`bleu`],
//! [`classification`], [`nats`], [`means`]; [`ratio`] for shares. [`family`] tests variants against a base, by [`swaps`] or t-tests, and
//! [`pooled`] tests the mean over several tasks. [`correlation`] and [`regression`] measure the agreement of two lists of numbers,
//! [`reliability`] the agreement that noise allows, and [`replicates`] the agreement of several runs.

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
mod interval;
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
mod testing;
pub mod text;

pub use cell::Cell;
pub use metric::{Direction, Metric, MetricName};
pub use segments::{Cells, Segments};

/// Reason why a statistic could not be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// All values of one side are equal.
    #[error("one side does not vary: a correlation or a slope needs two different values")]
    NoSpread,

    /// A test has no degree of freedom.
    #[error(
        "too few values to test: a paired t-test needs two pairs, an unpaired one three values in all, \
         a correlation or a line three pairs"
    )]
    TooFew,

    /// A segment or a number does not fit its metric or test, or there are no segments.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    fn empty() -> Self {
        Self::Invalid("no segments to compare: a test set needs at least one".to_owned())
    }

    /// A score of the test set or of a resample, or another value to test, is NaN or infinite.
    fn not_finite() -> Self {
        Self::Invalid("a score is not finite, so nothing can be tested".to_owned())
    }
}

#[cfg(test)]
#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64) {
    let gap = (found - expected).abs();
    assert!(gap < tolerance, "{found} instead of {expected}: {gap:e}");
}

/// Returns a number with mean 0, variance 1 and nearly a normal distribution.
#[cfg(test)]
fn normal(lots: &mut rand_chacha::ChaCha8Rng) -> f64 {
    (0..12).map(|_| rand::Rng::random::<f64>(lots)).sum::<f64>() - 6.0
}
