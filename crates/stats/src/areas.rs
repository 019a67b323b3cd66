//! Areas under curves: the mean change of a score over the steps of a curve, so that curves can be compared as a whole.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::bootstrap::{Interval, draw_blocks, percentile_interval, weighted};
use crate::family::Testing;
use crate::{Error, Segments};

/// Areas under curves on a test set, and on resamples of it that all curves share.
#[derive(Debug, Clone)]
pub struct Areas {
    measured: Vec<f64>,   // of each curve
    drawn: Vec<Vec<f64>>, // of each curve, on each resample
    seed: u64,
}

/// An area, or the difference of two, in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    /// As measured.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// Two-sided p-value that it is 0: twice the smaller share of resamples on a side of 0, of one more than there are.
    pub p_value: f64,
}

impl Areas {
    /// Mean changes from the base over the steps of each curve.
    ///
    /// # Errors
    /// If there are no segments, or a metric of two classes meets a class above 1.
    ///
    /// # Panics
    /// If a step covers other segments or has another metric, or a curve has no step.
    pub fn new(base: &Segments, curves: &[Vec<&Segments>], testing: Testing) -> Result<Self, Error> {
        let steps: Vec<&Segments> = curves.iter().flatten().copied().collect();
        let (counted, changes) = base.beside(&steps)?;
        let draw = |stream| draw_blocks(base.len(), testing, stream);
        let scores = weighted(&counted, &changes, testing.resamples, draw);
        let base = base.score()?;
        let (mut measured, mut drawn, mut place) = (Vec::new(), Vec::new(), 0);
        for curve in curves {
            let own = &scores.variants[place..place + curve.len()];
            place += curve.len();
            let number = curve.len() as f64;
            let sum = curve.iter().map(|step| step.score()).sum::<Result<f64, Error>>()?;
            measured.push(sum / number - base);
            let on = |(resample, base): (usize, &f64)| {
                own.iter().map(|scores| scores[resample]).sum::<f64>() / number - base
            };
            drawn.push(scores.base.iter().enumerate().map(on).collect());
        }
        Ok(Self { measured, drawn, seed: testing.seed })
    }

    /// The mean over some curves, such as those of random orders, less that over others, or less the base where there are none. Where
    /// there are several, each resample draws as many of them with replacement: they are draws as well.
    ///
    /// # Panics
    /// If the first are none.
    pub fn difference(&self, curves: &[usize], others: &[usize]) -> Area {
        let mean =
            |all: &mut dyn Iterator<Item = f64>, number: usize| all.sum::<f64>() / number.max(1) as f64;
        let measured = |all: &[usize]| mean(&mut all.iter().map(|&curve| self.measured[curve]), all.len());
        assert!(!curves.is_empty(), "an area needs a curve");
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut drawn_of = |all: &[usize], resample: usize| {
            let mut pick = || all[random.random_range(0..all.len())];
            mean(&mut (0..all.len()).map(|_| self.drawn[pick()][resample]), all.len())
        };
        let resamples = 0..self.drawn[curves[0]].len();
        let drawn: Vec<f64> = resamples.map(|on| drawn_of(curves, on) - drawn_of(others, on)).collect();
        let beyond = |is_beyond: fn(&&f64) -> bool| drawn.iter().filter(is_beyond).count() + 1;
        let side = beyond(|area| **area <= 0.0).min(beyond(|area| **area >= 0.0));
        Area {
            value: measured(curves) - measured(others),
            interval: percentile_interval(&drawn),
            p_value: (2.0 * side as f64 / (drawn.len() + 1) as f64).min(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classification::{ClassificationMetric, Outcome};

    const TESTING: Testing = Testing { resamples: 999, seed: 1, block: 1 };

    /// The first `wrong` of 100 examples.
    fn without(wrong: usize) -> Segments {
        let outcome = |n| Outcome { gold: 1, predicted: usize::from(n >= wrong) };
        Segments::Classes((0..100).map(outcome).collect(), ClassificationMetric::Accuracy)
    }

    /// Losses of 0 and 20 of 100 are 10 on average. A resample loses Binomial(100, 0.2) / 2, whose deviation is 2: the interval reaches
    /// 1.96 · 2 to either side. Curves of equal areas cannot be told apart, though other segments change.
    #[test]
    fn an_area_is_the_mean_over_the_steps() {
        let (base, steps) = (without(0), [without(0), without(20), without(10)]);
        let [none, twenty, ten] = steps.each_ref();
        let areas = Areas::new(&base, &[vec![none, twenty], vec![ten, ten], vec![none]], TESTING).unwrap();
        let first = areas.difference(&[0], &[]);
        let Interval { low, high } = first.interval.unwrap();
        assert!((first.value + 10.0).abs() < 1e-9 && (low + 13.9).abs() < 0.6 && (high + 6.1).abs() < 0.6);
        assert!((first.p_value - 0.002).abs() < 1e-12, "twice 1 of 1,000");
        let none = areas.difference(&[0], &[1]);
        assert!(none.value.abs() < 1e-9 && none.p_value > 0.5, "{none:?}");
        // a half of the time one of the two curves is drawn twice: -10 or 0, less -10
        let pooled = areas.difference(&[0, 2], &[1]);
        let Interval { low, high } = pooled.interval.unwrap();
        assert!((pooled.value - 5.0).abs() < 1e-9 && low < 0.0 && high > 10.0, "{pooled:?}");
    }
}
