//! Intervals of a share, and of the difference of two shares.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::Interval;

/// The 0.975 quantile of the standard normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Returns the 95% score interval of the share of `successes` among `trials`, each end 0 to 1; 0 to 1 without trials.
///
/// Wilson (1927), *Probable Inference, the Law of Succession, and Statistical Inference*, Journal of the American Statistical Association
/// 22, 209-212: the shares p that are at most z standard errors sqrt(p (1 - p) / n) away from the observed one.
///
/// Assumes that trials are independent.
pub fn wilson(successes: usize, trials: usize) -> Interval {
    simultaneous_wilson(successes, trials, 1)
}

/// Returns [`wilson`]'s interval for each of `family` shares, so that all hold at once with at least 95% probability (Bonferroni).
pub(crate) fn simultaneous_wilson(successes: usize, trials: usize, family: usize) -> Interval {
    let z = within_family(family);
    if trials == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let n = trials as f64;
    let share = successes as f64 / n;
    let middle = share + z * z / (2.0 * n);
    let reach = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + z * z / n;
    Interval { low: ((middle - reach) / whole).max(0.0), high: ((middle + reach) / whole).min(1.0) }
}

/// Returns the 95% score interval of the difference of two shares of one test set, each end -1 to 1: `gained` segments have a property only
/// in the second of two systems, `lost` only in the first.
///
/// Tango (1998), *Equivalence Test and Confidence Interval for the Difference in Proportions for the Paired-Sample Design*, Statistics in
/// Medicine 17, 891-908: the differences d that are at most z standard errors away from the observed one. The error depends on the
/// probability q of a loss, for which the maximum likelihood estimate given d is used. At d = 0 this is McNemar's test.
///
/// Assumes that segments are independent. Unlike a t interval, it does not shrink to nothing if few segments change: if none does, it
/// extends to either side as far as [`wilson`]'s interval of a share of 0.
///
/// # Panics
/// If there are no segments, or more of them changed than there are.
pub fn tango(lost: usize, gained: usize, examples: usize) -> Interval {
    tango_within(Z, [lost, gained], examples)
}

/// Returns [`tango`]'s interval for each of `family` differences, so that all hold at once in at least 95% of test sets: each misses with
/// 5% / `family` (Bonferroni). The maximum deviation in resamples, used for other metrics, would exploit the correlation of the variants,
/// but is no better than a t interval if few segments change.
pub fn simultaneous_tango(lost: usize, gained: usize, examples: usize, family: usize) -> Interval {
    tango_within(within_family(family), [lost, gained], examples)
}

fn within_family(family: usize) -> f64 {
    Normal::standard().inverse_cdf(1.0 - 0.025 / family.max(1) as f64).max(Z)
}

pub(crate) fn tango_within(z: f64, [lost, gained]: [usize; 2], examples: usize) -> Interval {
    assert!(lost + gained <= examples && examples > 0, "{lost} + {gained} of {examples} examples changed");
    let end = |lost: usize, gained: usize| upper_end(z, lost as f64, gained as f64, examples as f64);
    Interval { low: -end(gained, lost), high: end(lost, gained) }
}

/// Returns the largest difference within z standard errors, by bisection: the distance grows with the difference.
fn upper_end(z: f64, lost: f64, gained: f64, examples: f64) -> f64 {
    let is_within = |difference: f64| {
        let b = (2.0 * examples - gained + lost) * difference - lost - gained;
        let c = -lost * difference * (1.0 - difference);
        let q = ((b * b - 8.0 * examples * c).max(0.0).sqrt() - b) / (4.0 * examples);
        let variance = examples * (2.0 * q + difference * (1.0 - difference));
        examples * difference - (gained - lost) <= z * variance.max(0.0).sqrt()
    };
    let (mut low, mut high) = ((gained - lost) / examples, 1.0);
    // each step halves the distance, until no number is between the ends
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        *(if is_within(middle) { &mut low } else { &mut high }) = middle;
    }
    if is_within(1.0) { 1.0 } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use proptest::prelude::*;

    /// The ends p are z standard errors of p from the observed share: |x / n - p| = z sqrt(p (1 - p) / n). Without a failure the upper end
    /// is 1 and the lower one n / (n + z²).
    #[test]
    fn the_observed_share_is_z_standard_errors_from_both_ends() {
        for (successes, trials) in [(8, 10), (1, 7), (66, 1000)] {
            let Interval { low, high } = wilson(successes, trials);
            let share = successes as f64 / trials as f64;
            assert!(low < share && share < high);
            for end in [low, high] {
                let error = (end * (1.0 - end) / trials as f64).sqrt();
                assert_close((share - end).abs(), Z * error, 1e-12);
            }
        }
        let (all, none) = (wilson(10, 10), wilson(0, 10));
        let outer = Z * Z / (10.0 + Z * Z);
        for (end, expected) in [(all.low, 1.0 - outer), (none.high, outer), (all.high, 1.0), (none.low, 0.0)]
        {
            assert_close(end, expected, 1e-12);
        }
        assert_eq!(wilson(0, 0), Interval { low: 0.0, high: 1.0 });
    }

    /// 1 of 21 children responds only before a transplantation, 7 only after it: Fagerland, Lydersen and Laake (2014), *Recommended Tests
    /// and Confidence Intervals for Paired Binomial Proportions*, Statistics in Medicine 33, 2850-2875, Table VI. Without a change, q = 0
    /// at the upper end and d at the lower one, so d is z standard errors sqrt(d (1 - d) / n) from 0. 0 is inside if McNemar's
    /// test does not reject: 25 and 12 differ by 2.137 errors, 25 and 13 by 1.947, for any number of segments.
    #[test]
    fn differences_have_the_published_interval_with_wilsons_and_mcnemars_as_limits() {
        let Interval { low, high } = tango(7, 1, 21);
        assert!((low + 0.517).abs() < 5e-4 && (high + 0.026).abs() < 5e-4, "{low} to {high}");
        for examples in [1, 6, 408, 9815] {
            let Interval { low, high } = tango(0, 0, examples);
            assert_close(high, wilson(0, examples).high, 1e-12);
            assert_eq!(low, -high);
        }
        for examples in [38, 100, 5000] {
            assert!(tango(12, 25, examples).low > 0.0 && tango(13, 25, examples).low < 0.0);
        }
    }

    /// Returns the probability that a loss looks smaller than it is, summed over all outcomes of segments that are lost or gained.
    fn error(examples: usize, [lost, gained]: [f64; 2]) -> f64 {
        let same = 1.0 - lost - gained;
        let (mut error, mut of_losses) = (0.0, same.powi(examples as i32));
        for losses in 0..=examples {
            let mut of_both = of_losses;
            for gains in 0..=examples - losses {
                if tango(losses, gains, examples).low > gained - lost {
                    error += of_both;
                }
                of_both *= (examples - losses - gains) as f64 / (gains + 1) as f64 * gained / same;
            }
            of_losses *= (examples - losses) as f64 / (losses + 1) as f64 * lost / same;
        }
        error
    }

    /// The t interval would miss in 8.9%, 6.2%, 3.2% and 2.6% of test sets.
    #[test]
    fn a_loss_is_found_to_be_smaller_than_it_is_in_about_a_fortieth_of_test_sets_at_most() {
        for gained in [0.0, 0.005, 0.02, 0.1] {
            let found = error(200, [gained + 0.02, gained]);
            assert!((0.015..0.0256).contains(&found), "{gained}: {found}");
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_difference_and_turns_with_it(
            (lost, gained, both) in (0..60_usize, 0..60_usize, 1..500_usize)
        ) {
            let examples = lost + gained + both;
            let (there, back) = (tango(lost, gained, examples), tango(gained, lost, examples));
            prop_assert_eq!((there.low, there.high), (-back.high, -back.low));
            let difference = (gained as f64 - lost as f64) / examples as f64;
            prop_assert!(-1.0 <= there.low && there.low < difference && difference < there.high && there.high <= 1.0);
        }
    }
}
