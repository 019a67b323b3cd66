//! Intervals of a share.

use crate::bootstrap::Interval;

/// Of the standard normal distribution, the quantile 0.975.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % score interval of the share of `successes` among `trials`, each end 0 to 1; all of that without a trial.
///
/// Wilson (1927), *Probable Inference, the Law of Succession, and Statistical Inference*, Journal of the American Statistical
/// Association 22, 209-212: the shares p from which the observed one lies no more than z standard errors sqrt(p (1 - p) / n)
/// away.
///
/// Assumes that trials are independent.
pub fn wilson(successes: usize, trials: usize) -> Interval {
    if trials == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let n = trials as f64;
    let share = successes as f64 / n;
    let middle = share + Z * Z / (2.0 * n);
    let reach = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + Z * Z / n;
    Interval { low: ((middle - reach) / whole).max(0.0), high: ((middle + reach) / whole).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    }

    /// At the ends, the share p itself is z standard errors from the observed one: |x / n - p| = z sqrt(p (1 - p) / n).
    #[test]
    fn the_observed_share_is_z_standard_errors_from_both_ends() {
        for (successes, trials) in [(8, 10), (1, 7), (66, 1000)] {
            let Interval { low, high } = wilson(successes, trials);
            let share = successes as f64 / trials as f64;
            assert!(low < share && share < high);
            for end in [low, high] {
                let error = (end * (1.0 - end) / trials as f64).sqrt();
                assert_close((share - end).abs(), Z * error);
            }
        }
    }

    /// Without a failure the upper end is 1 and the lower one n / (n + z²).
    #[test]
    fn all_or_none_reach_the_ends() {
        let (all, none) = (wilson(10, 10), wilson(0, 10));
        assert_close(all.low, 10.0 / (10.0 + Z * Z));
        assert_close(none.high, Z * Z / (10.0 + Z * Z));
        assert_close(all.high, 1.0);
        assert_close(none.low, 0.0);
        assert_eq!(wilson(0, 0), Interval { low: 0.0, high: 1.0 });
    }
}
