//! Areas under pruning curves: the mean effect over the steps of a curve, to compare whole curves or single steps.

use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::bootstrap::{draw_blocks, percentile_interval, weighted};
use crate::counted::Counted;
use crate::interval::Interval;
use crate::swaps::swapped_mean;
use crate::testing::Testing;
use crate::{Direction, Error, Segments, t_test};

/// Minimum number of runs for intervals to cover other runs as well; fewer vary too little when drawn with replacement.
pub const ENOUGH_RUNS: usize = 5;

/// A pruning curve on a test set.
#[derive(Debug, Clone)]
pub struct Curve<'a> {
    /// Model that the steps are compared with; `None` for the full model.
    pub control: Option<&'a Segments>,
    /// Segments at each step.
    pub steps: Vec<&'a Segments>,
}

/// Areas under the curves of one or more runs, on a test set and on resamples of it that all curves share.
#[derive(Debug, Clone)]
pub struct Areas<'a> {
    runs: Vec<Run<'a>>,
    testing: Testing,
}

/// Curves and steps on one side of a difference.
#[derive(Debug, Clone)]
pub struct Side<'c> {
    /// Indices of the curves.
    pub curves: &'c [usize],
    /// Steps of these curves.
    pub steps: Range<usize>,
}

/// Curves of one run, in an order that all runs share.
#[derive(Debug, Clone)]
struct Run<'a> {
    curves: Vec<Curve<'a>>,
    /// Effect at each step of each curve, `[curve][step]`.
    measured: Vec<Vec<f64>>,
    /// Effect on each resample, `[curve][step][resample]`.
    drawn: Vec<Vec<Vec<f64>>>,
}

/// An area, or the difference between two, in the unit of the metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Area {
    /// Value on the test set, averaged over runs.
    pub value: f64,
    /// 95% interval over other segments, other draws of random curves and, with [`ENOUGH_RUNS`] runs, other runs.
    pub interval: Option<Interval>,
    /// Value of each run.
    pub of_runs: Vec<f64>,
    /// Two-sided p-value that a difference is 0; `None` for an area that is not compared.
    pub p_value: Option<f64>,
}

impl<'a> Areas<'a> {
    /// Computes the effect at each step of each curve, on the test set and on its resamples.
    ///
    /// - `runs`: the full model and the curves of each run
    ///
    /// # Panics
    /// If a step covers other segments or has another metric, or if the runs differ in their curves or numbers of steps.
    pub fn new(runs: Vec<(&'a Segments, Vec<Curve<'a>>)>, testing: Testing) -> Result<Self, Error> {
        let of = |(base, curves)| Run::new(base, curves, testing);
        let runs = runs.into_iter().map(of).collect::<Result<Vec<_>, _>>()?;
        let shape = |run: &Run<'_>| run.curves.iter().map(|curve| curve.steps.len()).collect::<Vec<_>>();
        let all_equal = runs.iter().all(|run| shape(run) == shape(&runs[0]));
        assert!(all_equal, "runs must have the same curves");
        Ok(Self { runs, testing })
    }

    /// Returns the mean area over `curves`, such as those of random rankings, minus the mean over `others`; the area if `others` is empty.
    ///
    /// Each resample draws runs with replacement if there are [`ENOUGH_RUNS`], and draws the curves of a side that has several. The
    /// p-value is from swaps in which a segment's statistics change sides at all steps and in all runs together. If one curve is compared
    /// with several, their statistics are averaged for each segment, and p is from Student's t because these curves vary too: the squared
    /// error is the mean square under swaps plus the variance of the curves divided by their number, with one degree of freedom fewer than
    /// curves. The p-value does not cover other runs.
    ///
    /// # Panics
    /// If `curves` is empty.
    pub fn difference(&self, curves: &[usize], others: &[usize], steps: Range<usize>) -> Area {
        self.between(Side { curves, steps: steps.clone() }, Side { curves: others, steps })
    }

    /// Returns [`Self::difference`] with separate steps for each side.
    ///
    /// # Panics
    /// If `own` has no curve, or the sides have different numbers of steps.
    pub fn between(&self, own: Side<'_>, others: Side<'_>) -> Area {
        assert!(!own.curves.is_empty(), "an area needs a curve");
        assert_eq!(own.steps.len(), others.steps.len(), "sides differ in number of steps");
        let measured = |run: &Run<'_>, side: &Side<'_>| {
            mean(side.curves.iter().map(|&curve| run.area(curve, &side.steps)))
        };
        let of_runs: Vec<f64> =
            self.runs.iter().map(|run| measured(run, &own) - measured(run, &others)).collect();
        let mut random = ChaCha8Rng::seed_from_u64(self.testing.seed);
        let mut pick = |number: usize| if number == 1 { 0 } else { random.random_range(0..number) };
        let mut drawn_on = |resample: usize| {
            let runs = self.runs.len();
            let mut one = |place: usize| {
                let place = if runs < ENOUGH_RUNS { place } else { pick(runs) };
                let run = &self.runs[place];
                let mut side = |Side { curves, steps }: &Side<'_>| {
                    mean((0..curves.len()).map(|_| run.on(curves[pick(curves.len())], steps, resample)))
                };
                side(&own) - side(&others)
            };
            mean((0..runs).map(&mut one).collect::<Vec<_>>().into_iter())
        };
        let drawn: Vec<f64> = (0..self.testing.of_bootstrap().resamples).map(&mut drawn_on).collect();
        Area {
            value: mean(of_runs.iter().copied()),
            interval: percentile_interval(&drawn),
            of_runs,
            p_value: (!others.curves.is_empty()).then(|| self.p_value(&own, &others)).flatten(),
        }
    }

    fn p_value(&self, own: &Side<'_>, others: &Side<'_>) -> Option<f64> {
        let pooled = |run: &Run<'_>, side: &Side<'_>, step: usize| {
            let counted = side.curves.iter().map(|&curve| run.curves[curve].steps[step].counted());
            Counted::mean(&counted.collect::<Result<Vec<_>, _>>().expect("they were counted before"))
        };
        let steps = || others.steps.clone().zip(own.steps.clone());
        let pair = |run, (other, step)| (pooled(run, others, other), pooled(run, own, step));
        let pairs: Vec<_> =
            self.runs.iter().flat_map(|run| steps().map(move |steps| pair(run, steps))).collect();
        let swapped = swapped_mean(&pairs, self.testing)?;
        let (one, several) = match (own.curves, others.curves) {
            ([one], [_, _, ..]) => (self.measured(*one, &own.steps), others),
            ([_, _, ..], [one]) => (self.measured(*one, &others.steps), own),
            _ => return Some(swapped.p_value),
        };
        let areas: Vec<f64> =
            several.curves.iter().map(|&curve| self.measured(curve, &several.steps)).collect();
        let (number, centre) = (areas.len() as f64, mean(areas.iter().copied()));
        let squares = areas.iter().map(|area| (area - centre).powi(2)).sum::<f64>();
        let error = (swapped.variance + squares / (number - 1.0) / number).sqrt();
        let difference = one - centre;
        Some(t_test::student(difference, error, number - 1.0).ok()?.0.p_value)
    }

    /// Returns the area under these steps, averaged over runs.
    pub fn measured(&self, curve: usize, steps: &Range<usize>) -> f64 {
        mean(self.runs.iter().map(|run| run.area(curve, steps)))
    }

    /// Returns the optimism of choosing the best of these curves on the segments that score it: its gain on a resample minus its gain on
    /// the test set, averaged over the resamples that choose it (Efron 1983, *Estimating the Error Rate of a Prediction Rule*).
    ///
    /// # Panics
    /// If `curves` is empty.
    pub fn optimism(&self, curves: &[usize], steps: Range<usize>, direction: Direction) -> f64 {
        let gain = |of: &dyn Fn(&Run<'_>) -> f64| direction.gain(mean(self.runs.iter().map(of)));
        let drawn = |curve: usize, resample| gain(&|run: &Run<'_>| run.on(curve, &steps, resample));
        let excess = |resample: usize| {
            let all = curves.iter().map(|&curve| (drawn(curve, resample), curve));
            let (best, curve) = all.max_by(|one, other| one.0.total_cmp(&other.0)).expect("there is a curve");
            best - direction.gain(self.measured(curve, &steps))
        };
        mean((0..self.testing.of_bootstrap().resamples).map(excess))
    }
}

impl<'a> Run<'a> {
    fn new(base: &'a Segments, curves: Vec<Curve<'a>>, testing: Testing) -> Result<Self, Error> {
        let all =
            curves.iter().flat_map(|curve| curve.control.into_iter().chain(curve.steps.iter().copied()));
        let (counted, changes) = base.beside(&all.collect::<Vec<_>>())?;
        let mut drawn = weighted(&counted, &changes, testing.of_bootstrap().resamples, |stream| {
            draw_blocks(base.len(), testing, stream)
        });
        let of_base = (counted.score(), std::mem::take(&mut drawn.base));
        let mut all = changes.iter().map(|change| change.score).zip(drawn.variants);
        let (mut measured, mut resampled) = (Vec::new(), Vec::new());
        for curve in &curves {
            let control = curve.control.and_then(|_| all.next());
            let (before, before_on) = control.as_ref().unwrap_or(&of_base);
            let less = |(score, mut on): (f64, Vec<f64>)| {
                on.iter_mut().zip(before_on).for_each(|(score, before)| *score -= before);
                (score - before, on)
            };
            let (own, own_on): (Vec<_>, Vec<_>) = all.by_ref().take(curve.steps.len()).map(less).unzip();
            measured.push(own);
            resampled.push(own_on);
        }
        Ok(Self { curves, measured, drawn: resampled })
    }

    fn area(&self, curve: usize, steps: &Range<usize>) -> f64 {
        mean(self.measured[curve][steps.clone()].iter().copied())
    }

    fn on(&self, curve: usize, steps: &Range<usize>, resample: usize) -> f64 {
        mean(self.drawn[curve][steps.clone()].iter().map(|drawn| drawn[resample]))
    }
}

/// Returns the mean; 0 without values.
fn mean(all: impl ExactSizeIterator<Item = f64>) -> f64 {
    let number = all.len().max(1);
    all.sum::<f64>() / number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classification::{ClassificationMetric, Outcome};
    use crate::nats::NatsStatistics;
    use crate::normal;

    const TESTING: Testing = Testing { resamples: 999, seed: 1, block: 1 };

    /// Returns 100 segments of which those in `wrong` are misclassified.
    fn without(wrong: Range<usize>) -> Segments {
        let outcome = |n| Outcome { gold: 1, predicted: usize::from(!wrong.contains(&n)) };
        Segments::Classes((0..100).map(outcome).collect(), ClassificationMetric::Accuracy)
    }

    fn curve<'a>(steps: impl IntoIterator<Item = &'a Segments>) -> Curve<'a> {
        Curve { control: None, steps: steps.into_iter().collect() }
    }

    /// Losses of 0 and 20 points average 10. A resample loses Binomial(100, 0.2) / 2, whose standard deviation is 2, so the interval
    /// extends 1.96 · 2 to either side. Compared with a control that loses 5 points, the loss is 5.
    #[test]
    fn an_area_is_the_mean_over_the_steps() {
        let [none, twenty, ten, five] = [0, 20, 10, 5].map(|wrong| without(0..wrong));
        let controlled = Curve { control: Some(&five), ..curve([&none, &twenty]) };
        let curves = vec![curve([&none, &twenty]), curve([&ten, &ten]), curve([&none, &none]), controlled];
        let areas = Areas::new(vec![(&none, curves)], TESTING).unwrap();
        let first = areas.difference(&[0], &[], 0..2);
        let Interval { low, high } = first.interval.unwrap();
        assert!((first.value + 10.0).abs() < 1e-9 && (low + 13.9).abs() < 0.6 && (high + 6.1).abs() < 0.6);
        assert_eq!((first.p_value, first.of_runs.len()), (None, 1));
        assert!((areas.difference(&[3], &[], 0..2).value + 5.0).abs() < 1e-9);
        assert!((areas.difference(&[0], &[1], 1..2).value + 10.0).abs() < 1e-9, "the second step alone");
        // half of the resamples draw one of the two curves twice: -10 or 0, minus -10
        let pooled = areas.difference(&[0, 2], &[1], 0..2);
        let Interval { low, high } = pooled.interval.unwrap();
        assert!((pooled.value - 5.0).abs() < 1e-9 && low < 0.0 && high > 10.0, "{pooled:?}");
    }

    /// Three segments lose 1/2, 1/2 and 1 point averaged over two steps: in 2 of 8 swaps all signs agree. If every segment gains at one
    /// step what it loses at the other, no swap makes a difference.
    #[test]
    fn a_segment_changes_sides_in_all_steps_together() {
        let [base, two, one, all] = [0..0, 0..2, 2..3, 0..3].map(without);
        let steps = [[&base, &base], [&all, &one], [&two, &base], [&base, &two]];
        let curves = Vec::from(steps.map(curve));
        let areas = Areas::new(vec![(&base, curves)], TESTING).unwrap();
        assert_eq!(areas.difference(&[1], &[0], 0..2).p_value, Some(0.25));
        assert_eq!(areas.difference(&[2], &[3], 0..2).p_value, Some(1.0));
        assert_eq!(areas.difference(&[0], &[0], 0..2).p_value, Some(1.0));
        // one step each: two segments compared with none, then with the one that the other curve loses at its second step
        let at = |curve, step| Side { curves: std::slice::from_ref(curve), steps: step..step + 1 };
        let [loss, gain] = [areas.between(at(&2, 0), at(&0, 1)), areas.between(at(&2, 0), at(&1, 1))];
        assert!((loss.value + 2.0).abs() < 1e-9 && (gain.value + 1.0).abs() < 1e-9, "{loss:?}, {gain:?}");
        // three segments, two of which change one way
        assert_eq!((loss.p_value, gain.p_value), (Some(0.5), Some(1.0)));
    }

    /// With runs that lose 10 and 20, segments lose 0.15 on average with variance 0.1025: 1.96 · √10.25 = 6.3 to either side. Six runs,
    /// three of each kind, are drawn too, which adds a variance of 109 / 4 / 6, since 10 segments with variance 9 distinguish them: 7.5.
    #[test]
    fn runs_are_resampled_with_the_segments_if_there_are_enough() {
        let (base, ten, twenty) = (without(0..0), without(0..10), without(0..20));
        let of = |step| (&base, vec![curve([step])]);
        let half = |runs| {
            let found = Areas::new(runs, TESTING).unwrap().difference(&[0], &[], 0..1);
            let areas: Vec<f64> = found.of_runs.iter().map(|area| area.round()).collect();
            assert!((found.value + 15.0).abs() < 1e-9 && areas[..2] == [-10.0, -20.0], "{found:?}");
            let Interval { low, high } = found.interval.unwrap();
            (high - low) / 2.0
        };
        let few = half(vec![of(&ten), of(&twenty)]);
        let many = half([&ten, &twenty].repeat(3).into_iter().map(of).collect());
        assert!((few - 6.3).abs() < 0.6 && (many - 7.5).abs() < 0.6 && few < many, "{few} {many}");
    }

    /// Twenty equal methods on segments of unit noise: the maximum of 20 standard normal numbers is 1.87 on average, in units of the
    /// standard error of a mean of 400, 0.05. A single method is not chosen, so its optimism is 0.
    #[test]
    fn the_best_of_equals_is_optimistic() {
        let mut lots = ChaCha8Rng::seed_from_u64(2);
        let base = documents(400, || 20.0);
        let all: Vec<Segments> = (0..20).map(|_| documents(400, || 20.0 + normal(&mut lots))).collect();
        let areas = Areas::new(vec![(&base, all.iter().map(|own| curve([own])).collect())], TESTING).unwrap();
        let places: Vec<usize> = (0..20).collect();
        let of = |places: &[usize]| areas.optimism(places, 0..1, Direction::LowerIsBetter);
        // curves that are better on the test set are chosen more often, which makes the optimism smaller
        assert!((0.03..0.1).contains(&of(&places)) && of(&[3]).abs() < 0.005, "{} {}", of(&places), of(&[3]));
    }

    /// Documents of one token.
    fn documents(number: usize, mut nats: impl FnMut() -> f64) -> Segments {
        Segments::Nats((0..number).map(|_| NatsStatistics::new(nats(), 1, 1).unwrap()).collect())
    }

    /// Without an effect at most 5% of the tests find one, plus two standard errors of 400 simulations, 0.022. A method, whose two
    /// steps share their noise, is compared with another one and with ten draws, whose areas vary at least as much as the segments' mean. A
    /// method that is worse by 1.5, about five standard errors, is nearly always found.
    #[test]
    fn swaps_of_areas_keep_their_level() {
        let testing = Testing { resamples: 499, ..TESTING };
        let (mut alarms, mut of_draws, mut shifted) = (0, 0, 0);
        for seed in 0..400 {
            let mut lots = ChaCha8Rng::seed_from_u64(seed);
            let base = documents(40, || 20.0);
            let mut shifts = [&[0.0; 2][..], &[0.5; 10], &[1.5]].concat();
            shifts[2..12].iter_mut().for_each(|shift| *shift *= normal(&mut lots));
            let mut steps = Vec::new();
            for shift in shifts {
                let noise: Vec<f64> = (0..40).map(|_| shift + normal(&mut lots)).collect();
                for size in [1.0, 2.0] {
                    let mut own = noise.iter().map(|noise| 20.0 + size * noise);
                    steps.push(documents(40, || own.next().unwrap() + 0.3 * normal(&mut lots)));
                }
            }
            let curves = steps.chunks(2).map(curve).collect();
            let areas = Areas::new(vec![(&base, curves)], testing).unwrap();
            let p = |own, others: &[usize]| areas.difference(&[own], others, 0..2).p_value.unwrap();
            let draws: Vec<usize> = (2..12).collect();
            alarms += usize::from(p(0, &[1]) < 0.05);
            of_draws += usize::from(p(0, &draws) < 0.05);
            shifted += usize::from(p(12, &draws) < 0.05);
        }
        let most = 400.0 * 0.05 + 2.0 * f64::sqrt(400.0 * 0.05 * 0.95);
        assert!(alarms.max(of_draws) as f64 <= most, "{alarms}, {of_draws} of 400");
        assert!(alarms > 8 && of_draws > 0 && shifted > 360, "{alarms}, {of_draws}, {shifted} of 400");
    }
}
