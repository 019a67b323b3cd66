//! Uncertainty of the share of heads that can be masked: how far a pruning curve stays acceptable on bootstrap resamples.

use crate::bootstrap::{draw_blocks, weighted};
use crate::swaps::ROUNDING;
use crate::testing::Testing;
use crate::{Error, Segments};

const RESAMPLES: usize = 1_000;

/// A step of a pruning curve, and the loss allowed there on a resample.
#[derive(Debug)]
pub struct Step<'a> {
    /// The model at this step.
    pub variant: &'a Segments,
    /// Distance from the effect to the worse end of its interval, in the unit of the metric.
    pub reach: f64,
    /// Largest loss that is not significant, in the unit of the metric: [`Power::critical`](crate::power::Power::critical).
    pub critical: f64,
}

/// Shares of the resamples, 0 to 1, on which all steps of a curve up to one are acceptable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// Each step up to this one is shown to be dispensable.
    pub dispensable: f64,
    /// No step up to this one is a significant loss (the paper's rule).
    pub without_loss: f64,
}

/// Follows a curve on each of 1,000 resamples of the test set, up to the first step that a rule does not accept. Scores are from the
/// resample; the widths of intervals and the significant losses are from the test set, because they vary little.
///
/// - `steps`: in order, without the full model
/// - `margin`: loss that is accepted for this score of the full model, in the unit of the metric
///
/// # Panics
/// If a step covers different segments or has a different metric.
pub fn reached(
    base: &Segments,
    steps: &[Step<'_>],
    margin: impl Fn(f64) -> f64,
    testing: Testing,
) -> Result<Vec<Reached>, Error> {
    let variants: Vec<&Segments> = steps.iter().map(|step| step.variant).collect();
    let (counted, changes) = base.beside(&variants)?;
    let scores = weighted(&counted, &changes, RESAMPLES, |stream| draw_blocks(base.len(), testing, stream));
    let direction = base.metric().name().direction();
    let mut walks = vec![[0; 2]; steps.len()];
    for (resample, &base) in scores.base.iter().enumerate() {
        let mut goes_on = [true; 2];
        for ((step, scores), walks) in steps.iter().zip(&scores.variants).zip(&mut walks) {
            let loss = -direction.gain(scores[resample] - base);
            goes_on[0] &= loss + step.reach < margin(base);
            goes_on[1] &= loss <= step.critical + ROUNDING * base.abs();
            walks.iter_mut().zip(goes_on).for_each(|(walks, goes_on)| *walks += usize::from(goes_on));
        }
    }
    let share = |walks: usize| walks as f64 / RESAMPLES as f64;
    let of = |[dispensable, without_loss]: [usize; 2]| Reached {
        dispensable: share(dispensable),
        without_loss: share(without_loss),
    };
    Ok(walks.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classification::{ClassificationMetric, Outcome};

    const TESTING: Testing = Testing { resamples: 1, seed: 1, block: 1 };

    /// Returns 100 segments of which the first `wrong` are misclassified.
    fn without(wrong: usize) -> Segments {
        let outcome = |n| Outcome { gold: 1, predicted: usize::from(n >= wrong) };
        Segments::Classes((0..100).map(outcome).collect(), ClassificationMetric::Accuracy)
    }

    /// A step that loses 10 of 100 segments loses at most 9 on a share of 0.451 of the resamples, and at most 8 on 0.321 (binomial).
    #[test]
    fn a_walk_ends_at_its_first_loss() {
        let (base, steps) = (without(0), [without(0), without(10), without(0)]);
        let step = |variant| Step { variant, reach: 1.5, critical: 8.0 };
        let found = reached(&base, &steps.each_ref().map(step), |score| score / 8.7, TESTING).unwrap();
        let close = |found: Reached, dispensable: f64, without_loss: f64| {
            (found.dispensable - dispensable).abs() < 0.05 && (found.without_loss - without_loss).abs() < 0.05
        };
        assert_eq!(found[0], Reached { dispensable: 1.0, without_loss: 1.0 });
        assert!(close(found[1], 0.451, 0.321), "{found:?}"); // 100 / 8.7 - 1.5 = 9.99: at most 9
        assert_eq!(found[2], found[1]);
    }
}
