//! Power of a test set: the probability that it shows a head set without any cost to be dispensable.

use crate::bootstrap::percentile;
use crate::family::FEW_CHANGES;
use crate::swaps::swapped_sizes;
use crate::testing::{ALPHA, Testing};
use crate::{Error, Segments};

/// Number of swaps drawn; the error of a share of 0.8 is then 0.013.
const DRAWS: usize = 1_000;

const ENOUGH: f64 = 0.8;

/// Number of changed segments up to which no effect is significant: seven in one direction have p = 2^-6.
const NEVER_SIGNIFICANT: usize = 7;

/// Power of a test set for one variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// Probability, 0 to 1, to show that a variant without any cost that changes equally many segments is dispensable.
    pub power: f64,
    /// Number of segments for a probability of 80%; `None` if fewer than 20 segments change.
    pub segments: Option<f64>,
    /// Largest loss of such a variant that is not significant: a share [`ALPHA`] of swaps exceeds it. If fewer than seven segments change,
    /// it is scaled up to seven: eight segments in one direction have p = 2^-7, seven 2^-6.
    pub critical: f64,
}

/// Computes the power of a test set by swaps of its segments (Fisher; Noreen 1989, *Computer-Intensive Methods for Testing Hypotheses*). If
/// each segment changes sides with probability 1/2, the differences are as for a change without any cost. A difference shows that the
/// variant is dispensable if the worse end of its interval, `reach` away, is above minus the margin.
///
/// If many segments change, spread and reach shrink with the root of the number of segments. With k times as many segments the probability
/// is 80% if sqrt(k) margin = reach + q, where q is the size that 60% of the differences do not exceed, so that 20% are a larger loss. If
/// fewer than 20 change, no number is given: the reach then covers segments that may change elsewhere and shrinks faster.
///
/// - `reach`: distance from the difference to the worse end of its interval, in the unit of the metric
/// - `margin`: largest loss that is accepted, above 0, in the unit of the metric
///
/// # Panics
/// If the variant covers other segments or has another metric.
pub fn power(
    base: &Segments,
    variant: &Segments,
    (reach, margin): (f64, f64),
    testing: Testing,
) -> Result<Power, Error> {
    let (counted, changes) = base.beside(&[variant])?;
    let sizes = swapped_sizes(&counted, &changes[0], DRAWS, testing);
    // Only the sizes of swaps are needed: both signs are equally likely.
    let room = margin - reach;
    let below = sizes.partition_point(|&size| size < room.abs()) as f64 / DRAWS as f64;
    let longer = (reach + percentile(&sizes, 2.0 * ENOUGH - 1.0)) / margin;
    let changed = changes[0].changed_units(testing.block);
    let largest = sizes.last().copied().unwrap_or(0.0);
    let critical = match changed {
        1..NEVER_SIGNIFICANT => largest * NEVER_SIGNIFICANT as f64 / changed as f64,
        _ => percentile(&sizes, 1.0 - ALPHA),
    };
    Ok(Power {
        power: if room > 0.0 { (1.0 + below) / 2.0 } else { (1.0 - below) / 2.0 },
        segments: (changed >= FEW_CHANGES).then(|| (counted.len() as f64 * longer * longer).ceil().max(1.0)),
        critical,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classification::{ClassificationMetric, Outcome};

    const TESTING: Testing = Testing { resamples: 1, seed: 1, block: 1 };

    /// Returns base and variant; `changed` of `examples` segments are wrong only in the variant.
    fn sides(changed: usize, examples: usize) -> [Segments; 2] {
        [0, changed].map(|wrong| {
            let outcome = |n| Outcome { gold: 1, predicted: usize::from(n >= wrong) };
            Segments::Classes((0..examples).map(outcome).collect(), ClassificationMetric::Accuracy)
        })
    }

    /// One of 100 segments changes: half of the swapped differences are +1 point, half -1. With a reach of 2 both satisfy a margin above 3,
    /// only the better one a margin above 1, and none a smaller margin. A single change tells nothing about larger test sets.
    ///
    /// 100 changes in 10,000 segments: the difference is normal with a standard deviation of 10 segments, 0.1 points. The share above
    /// -0.0842 points is 0.80, which needs the given number of segments.
    #[test]
    fn one_change_gives_all_half_or_nothing_and_many_the_normal_share() {
        let [base, variant] = sides(1, 100);
        let found = |margin| power(&base, &variant, (2.0, margin), TESTING).unwrap();
        assert_eq!((found(3.1).power, found(0.9).power), (1.0, 0.0));
        assert!((found(1.5).power - 0.5).abs() < 0.06, "{:?}", found(1.5));
        assert_eq!(found(1.5).segments, None);

        let [base, variant] = sides(100, 10_000);
        let found = power(&base, &variant, (0.2, 0.2842), TESTING).unwrap();
        assert!((found.power - 0.8).abs() < 0.05, "{found:?}");
        assert!((found.segments.unwrap() / 10_000.0 - 1.0).abs() < 0.15, "{found:?}");
        // blocks of 100: all changed segments are in one block, which is swapped as a whole
        let whole = power(&base, &variant, (0.2, 0.2842), Testing { block: 100, ..TESTING }).unwrap();
        assert!((whole.power - 0.5).abs() < 0.06, "{whole:?}");
        let nothing = power(&base, &base, (0.2, 0.1), TESTING).unwrap();
        assert_eq!(nothing, Power { power: 0.0, segments: None, critical: 0.0 });
        let [base, variant] = sides(4, 800);
        let few = power(&base, &variant, (2.0, 3.1), TESTING).unwrap();
        assert!((few.critical - 7.0 / 8.0).abs() < 1e-9, "seven of 800: {few:?}");
        // 2.576 standard deviations
        assert!((found.critical - 0.258).abs() < 0.025, "{found:?}");
    }
}
