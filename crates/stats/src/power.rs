//! Power to show that heads are dispensable: the chance that a test set says so of a set that costs nothing.

use crate::bootstrap::percentile;
use crate::family::{ALPHA, FEW_CHANGES, Testing};
use crate::swaps::swapped_sizes;
use crate::{Error, Segments};

/// Draws of the swaps; the error of a share of 0.8 is then 0.013.
const DRAWS: usize = 1_000;

/// The power that a test set should have.
const ENOUGH: f64 = 0.8;

/// So many changed segments can never be significant: all to one side have p = 2^-6.
const NEVER_SIGNIFICANT: usize = 7;

/// Power of a test set beside one variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// The chance, 0 to 1, to show that a variant is dispensable which costs nothing, but changes as many segments.
    pub power: f64,
    /// Number of segments that gives a chance of 80 %; absent where few change.
    pub segments: Option<f64>,
    /// The greatest loss of such a variant that is not significant: swaps exceed it in a share of [`ALPHA`]. Where fewer than
    /// eight segments change, it is that of seven such: of eight to one side p is 2^-7, of seven 2^-6.
    pub critical: f64,
}

/// Computes the power of a test set by swaps of its segments (Fisher; Noreen 1989, *Computer-Intensive Methods for Testing
/// Hypotheses*): where each segment changes sides with probability 1/2, the differences are those that a change without a cost
/// would show. It is shown to be dispensable where the worse end of its interval, `reach` away, lies above minus the margin.
///
/// Where many segments change, spread and reach shrink with the root of the number of segments, so with k times as many segments the
/// chance is 80 % where sqrt(k) margin = reach + q, q being the size that 60 % of the differences do not exceed: 20 % are a greater loss.
/// Where fewer than 20 change, no number is given: the reach is then that of segments that may change elsewhere, which shrinks faster.
///
/// - `reach`: distance from the difference to the worse end of its interval, in the unit of the metric
/// - `margin`: the loss that is tolerated, above 0, likewise
///
/// # Errors
/// If there are no segments, or a metric of two classes meets a class above 1.
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
    // Swaps are drawn by their sizes: either side is as likely as the other.
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

    /// `changed` of `examples` are wrong in the variant alone.
    fn sides(changed: usize, examples: usize) -> [Segments; 2] {
        [0, changed].map(|wrong| {
            let outcome = |n| Outcome { gold: 1, predicted: usize::from(n >= wrong) };
            Segments::Classes((0..examples).map(outcome).collect(), ClassificationMetric::Accuracy)
        })
    }

    /// Of 100 examples one changes: the swapped differences are +1 and -1 point, half each. With a reach of 2 a margin above 3
    /// is met by both, one above 1 by the better, a smaller one by none. A single change says nothing of larger test sets.
    #[test]
    fn one_change_gives_all_half_or_nothing() {
        let [base, variant] = sides(1, 100);
        let found = |margin| power(&base, &variant, (2.0, margin), TESTING).unwrap();
        assert_eq!((found(3.1).power, found(0.9).power), (1.0, 0.0));
        assert!((found(1.5).power - 0.5).abs() < 0.06, "{:?}", found(1.5));
        assert_eq!(found(1.5).segments, None);
    }

    /// 100 changes of 1 point in 10,000 examples: the difference in sums is normal with a deviation of 10 examples, 0.1 points. The
    /// share above -0.0842 points is the normal distribution's 0.80; and as many segments as there are give it.
    #[test]
    fn many_changes_give_the_normal_share() {
        let [base, variant] = sides(100, 10_000);
        let found = power(&base, &variant, (0.2, 0.2842), TESTING).unwrap();
        assert!((found.power - 0.8).abs() < 0.05, "{found:?}");
        assert!((found.segments.unwrap() / 10_000.0 - 1.0).abs() < 0.15, "{found:?}");
        // blocks of 100: the examples that change are one, which is swapped as a whole
        let whole = power(&base, &variant, (0.2, 0.2842), Testing { block: 100, ..TESTING }).unwrap();
        assert!((whole.power - 0.5).abs() < 0.06, "{whole:?}");
        let nothing = power(&base, &base, (0.2, 0.1), TESTING).unwrap();
        assert_eq!(nothing, Power { power: 0.0, segments: None, critical: 0.0 });
        let [base, variant] = sides(4, 800);
        let few = power(&base, &variant, (2.0, 3.1), TESTING).unwrap();
        assert!((few.critical - 7.0 / 8.0).abs() < 1e-9, "seven of 800: {few:?}");
        // 2.576 deviations
        assert!((found.critical - 0.258).abs() < 0.025, "{found:?}");
    }
}
