//! t-tests of the difference between two means, two-sided.
//!
//! Student (1908), *The Probable Error of a Mean*, Biometrika 6, 1-25, for pairs; Fisher (1925), *Applications of "Student's"
//! Distribution*, Metron 5, 90-104, for two samples.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Error;
use crate::interval::Interval;

/// Share of the t distribution below the upper end of a 95% interval.
pub(crate) const UPPER: f64 = 0.975;

/// A two-sided t-test of whether two means differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TTest {
    /// Difference of the means, variant minus base, in standard errors; infinite for a difference without spread.
    pub statistic: f64,
    /// Degrees of freedom of the t distribution.
    pub degrees_of_freedom: f64,
    /// Probability, 0 to 1, of a statistic at least this far from 0 if the means are equal.
    pub p_value: f64,
}

/// A paired t-test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedTTest {
    /// Test of whether the mean difference is 0.
    pub test: TTest,
    /// 95% t interval of the mean difference, variant minus base.
    pub interval: Interval,
}

/// Tests whether the mean difference of pairs is 0: t = mean / (s / sqrt(n)) with n - 1 degrees of freedom, where s² is the variance of the
/// differences with divisor n - 1 (Student 1908).
///
/// Assumes that pairs are independent and their mean difference is normally distributed, as it is for many pairs of any distribution.
///
/// If all differences are 0, the statistic is 0 and p is 1. If all are equal but not 0, the statistic is infinite and p is 0, the limit for
/// a vanishing spread and SciPy's result. In both cases the interval is this one difference.
///
/// # Errors
/// [`Error::TooFew`] with fewer than two pairs, [`Error::Invalid`] if the differences are not finite.
///
/// # Panics
/// If `base` and `variant` differ in length.
pub fn paired(base: &[f64], variant: &[f64]) -> Result<PairedTTest, Error> {
    assert_eq!(base.len(), variant.len(), "paired samples must have the same length");
    let differences: Vec<f64> = base.iter().zip(variant).map(|(base, variant)| variant - base).collect();
    let Moments { mean, squares } = Moments::of(&differences)?;
    let degrees_of_freedom = differences.len() as f64 - 1.0;
    let error = (squares / degrees_of_freedom / differences.len() as f64).sqrt();
    let (test, distribution) = student(mean, error, degrees_of_freedom)?;
    let reach = distribution.inverse_cdf(UPPER) * error;
    Ok(PairedTTest { test, interval: Interval { low: mean - reach, high: mean + reach } })
}

/// Returns the 95% interval of a mean by Student's t from the sum, the sum of squares and the number of independent values; `None` with
/// fewer than two values.
pub fn mean_interval(sum: f64, squares: f64, count: f64) -> Option<Interval> {
    let distribution = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    let mean = sum / count;
    let variance = (squares - mean * sum).max(0.0) / (count - 1.0);
    let reach = distribution.inverse_cdf(UPPER) * (variance / count).sqrt();
    Some(Interval { low: mean - reach, high: mean + reach })
}

/// Tests whether two independent samples have equal means: t = difference / (s sqrt(1/m + 1/n)) with m + n - 2 degrees of freedom, where s²
/// is the pooled variance (Fisher 1925).
///
/// Assumes that all values are independent and both samples have equal variances (Welch's test would not; this is SciPy's `ttest_ind` by
/// default). Two systems on one test set are not independent, so this test misses differences that [`paired`] finds.
///
/// Without any spread, the statistic is 0 and p is 1 for equal means; otherwise the statistic is infinite and p is 0, the limit for a
/// vanishing spread.
///
/// # Errors
/// [`Error::TooFew`] if a sample is empty or both have only one value, [`Error::Invalid`] if the values are not finite.
pub fn unpaired(base: &[f64], variant: &[f64]) -> Result<TTest, Error> {
    let (base_moments, variant_moments) = (Moments::of(base)?, Moments::of(variant)?);
    let degrees_of_freedom = (base.len() + variant.len()) as f64 - 2.0;
    let pooled = (base_moments.squares + variant_moments.squares) / degrees_of_freedom;
    let error = (pooled * (1.0 / base.len() as f64 + 1.0 / variant.len() as f64)).sqrt();
    Ok(student(variant_moments.mean - base_moments.mean, error, degrees_of_freedom)?.0)
}

struct Moments {
    mean: f64,
    squares: f64,
}

impl Moments {
    fn of(values: &[f64]) -> Result<Self, Error> {
        let &first = values.first().ok_or(Error::TooFew)?;
        // Rounding errors of the mean must not count as spread.
        let mean = if values.iter().all(|&value| value == first) {
            first
        } else {
            values.iter().sum::<f64>() / values.len() as f64
        };
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        if squares.is_finite() { Ok(Self { mean, squares }) } else { Err(Error::not_finite()) }
    }
}

/// Returns the test of a `difference` with this standard `error`, and its distribution.
pub(crate) fn student(
    difference: f64,
    error: f64,
    degrees_of_freedom: f64,
) -> Result<(TTest, StudentsT), Error> {
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).map_err(|_| Error::TooFew)?;
    let statistic = match (difference, error) {
        (0.0, _) => 0.0,
        (_, 0.0) => difference.signum() * f64::INFINITY,
        _ => difference / error,
    };
    // An infinite statistic would be ∞/∞ inside the distribution.
    let p_value = if statistic.is_infinite() { 0.0 } else { 2.0 * distribution.sf(statistic.abs()) };
    Ok((TTest { statistic, degrees_of_freedom, p_value: p_value.clamp(0.0, 1.0) }, distribution))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Differences 1, 2, 3: mean 2, variance 1, standard error 1/sqrt(3), with 2 degrees of freedom, where P(T > t) = 1/2 - t / (2 sqrt(2 +
    /// t²)). P(T > t) = 0.025 gives t = 0.95 sqrt(2 / (1 - 0.95²)).
    #[test]
    fn intervals_of_pairs_and_of_sums_are_students() {
        let reach = 0.95 * (2.0 / (1.0 - 0.95_f64.powi(2))).sqrt() / 3.0_f64.sqrt();
        let of_pairs = paired(&[1.0, 1.0, 1.0], &[2.0, 3.0, 4.0]).unwrap().interval;
        for found in [of_pairs, mean_interval(6.0, 14.0, 3.0).unwrap()] {
            assert_close(found.low, 2.0 - reach, 1e-12);
            assert_close(found.high, 2.0 + reach, 1e-12);
        }
        assert_eq!((mean_interval(1.0, 1.0, 1.0), mean_interval(0.0, 0.0, 0.0)), (None, None));
    }

    /// Squares 2 and 0, pooled over 3 + 1 - 2 = 2 degrees of freedom: s = 1. The error is sqrt(1/3 + 1/1), so t = 3 / sqrt(4/3) and t² =
    /// 27/4: p = 1 - sqrt((27/4) / (2 + 27/4)), as for pairs.
    #[test]
    fn unpaired_samples_share_one_variance_and_may_differ_in_size() {
        let found = unpaired(&[0.0, 1.0, 2.0], &[4.0]).unwrap();
        assert_close(found.statistic, 3.0 / (4.0_f64 / 3.0).sqrt(), 1e-12);
        assert_eq!(found.degrees_of_freedom, 2.0);
        assert_close(found.p_value, 1.0 - (27.0_f64 / 35.0).sqrt(), 1e-12);
    }

    /// mpmath 1.3 with 40 digits: `betainc(df/2, 1/2, 0, df/(df + t²), regularized=True)` and its root for 0.05.
    #[test]
    fn large_test_sets_keep_their_digits() {
        let (_, distribution) = student(1.0, 0.5, 9814.0).unwrap();
        assert_close(distribution.inverse_cdf(UPPER), 1.960_205_737_021_819_4, 1e-10);
        for (statistic, p) in [(2.0, 0.045_527_772_342_824_46), (10.0, 1.972_664_902_916_247e-23)] {
            let (test, _) = student(statistic, 1.0, 9814.0).unwrap();
            assert_close(test.p_value / p, 1.0, 1e-9);
        }
    }

    /// 0.1 has no exact sum: the sum of seven divided by seven is not 0.1.
    #[test]
    fn differences_without_spread_are_none_or_certain() {
        let base = [0.0; 7];
        for (value, statistic, p) in
            [(0.0, 0.0, 1.0), (0.1, f64::INFINITY, 0.0), (-0.1, f64::NEG_INFINITY, 0.0)]
        {
            let found = paired(&base, &[value; 7]).unwrap();
            assert_eq!((found.test.statistic, found.test.p_value), (statistic, p));
            assert_eq!(found.interval, Interval { low: value, high: value });
            assert_eq!(unpaired(&base, &[value; 7]).unwrap().p_value, p);
        }
    }

    #[test]
    fn what_cannot_be_tested_is_an_error() {
        assert_eq!(paired(&[1.0], &[2.0]), Err(Error::TooFew));
        assert_eq!(unpaired(&[1.0], &[2.0]), Err(Error::TooFew));
        assert_eq!(unpaired(&[1.0, 2.0], &[]), Err(Error::TooFew));
        assert_eq!(paired(&[1.0, 2.0], &[f64::NAN, 3.0]), Err(Error::not_finite()));
        assert_eq!(unpaired(&[1.0, f64::INFINITY], &[2.0]), Err(Error::not_finite()));
    }

    /// Right and wrong predictions of two models on one test set, and numbers without ties.
    fn samples() -> impl Strategy<Value = Vec<(f64, f64)>> {
        let correctness = vec((0..=1_u8, 0..=1_u8), 2..60)
            .prop_map(|pairs| pairs.into_iter().map(|(left, right)| (left.into(), right.into())).collect());
        prop_oneof![correctness, vec((-1e3..1e3_f64, -1e3..1e3_f64), 2..60)]
    }

    proptest! {
        /// The test at 5% and the 95% interval agree, except for rounding at the edge.
        #[test]
        fn the_interval_excludes_zero_where_p_is_below_five_percent(pairs in samples()) {
            let (base, variant): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let PairedTTest { test, interval: Interval { low, high } } = paired(&base, &variant).unwrap();
            prop_assert!((0.0..=1.0).contains(&test.p_value));
            let excludes = low > 0.0 || high < 0.0;
            prop_assert!(excludes == (test.p_value < 0.05) || (test.p_value - 0.05).abs() < 1e-8);
        }
    }
}
