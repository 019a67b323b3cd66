//! Tests of a family of variants against their base.
//!
//! BLEU, F1, Matthews correlation and nats per token, which are not means over segments, are tested by swaps; accuracies by a paired
//! t-test, as in Michel et al. (2019), Section 3.2. Intervals are Student's t for nats and other means of real numbers, Tango's for
//! accuracies, and from the paired bootstrap for all others. The bootstrap's p-values are given in addition. P-values are two-sided unless
//! stated otherwise.

use crate::adjust::{benjamini_hochberg, holm};
use crate::bootstrap::{
    MAX_RESAMPLES, RESAMPLES, Resampled, differences, draw_blocks, paired_bootstrap, simultaneous,
};
use crate::classification::{ClassificationMetric, Outcome};
use crate::clustered::ClusteredMean;
use crate::counted::{Counted, Variant};
use crate::interval::Interval;
use crate::proportion::{simultaneous_tango, simultaneous_wilson, tango};
use crate::swaps::{Swapped, swap_tests};
pub use crate::testing::{ALPHA, Testing};
use crate::{Error, Segments, mcnemar, t_test};

/// Minimum number of segments, or blocks of them, in a test set that is tested.
pub const MIN_SEGMENTS: usize = 3;

/// If fewer segments change, an interval of a discrete outcome is at least as wide as if none changed.
pub(crate) const FEW_CHANGES: usize = 20;

impl Testing {
    pub(crate) fn of_bootstrap(self) -> Self {
        Self { resamples: self.resamples.min(RESAMPLES), ..self }
    }

    fn units(self, segments: &Segments) -> usize {
        segments.len().div_ceil(self.block)
    }
}

/// A variant compared with its base on one test set, in the unit of the metric.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Comparison {
    /// Score of the base system.
    pub base: f64,
    /// Score of the variant.
    pub variant: f64,
    /// `variant` minus `base`; [`MetricName::direction`](crate::MetricName::direction) tells which sign is a loss.
    pub delta: f64,
    /// 95% interval of `delta`; `None` if it was not tested, or with too few resamples. Outcomes of 0 and 1, such as accuracies, have
    /// [`tango`]'s interval. Nats and other means have Student's t (`ClusteredMean`) with at least five segments of which at least 20 or
    /// half change. All others have percentiles of the bootstrap; if fewer than 20 segments change, these are too narrow and are widened:
    /// neither end is closer to `delta` than without any change, which is about as far as the segments that may change elsewhere can move
    /// the score.
    pub interval: Option<Interval>,
    /// Interval that holds for all variants of the family at once: [`simultaneous`] or, for outcomes of 0 and 1, [`simultaneous_tango`].
    pub simultaneous: Option<Interval>,
    /// Two-sided p-value of `delta`, 0 to 1: by swaps ([`crate::swaps`]), for accuracies [`t_test::paired`], and for means of 0 and 1
    /// [`mcnemar::exact`]; `None` if it was not tested, or with fewer than [`MIN_SEGMENTS`].
    pub p_value: Option<f64>,
    /// The bootstrap's two-sided p-value, [`Resampled::p_value`].
    pub p_bootstrap: Option<f64>,
    /// The paper's one-sided p-value, [`Resampled::p_koehn`]; only from a bootstrap.
    pub p_koehn: Option<f64>,
    /// `p_value` adjusted for the family-wise error rate: step-down max-T on the family's shared swaps, never below `p_value`; [`holm`] for
    /// t-tests.
    pub p_adjusted: Option<f64>,
    /// `p_value` adjusted by [`benjamini_hochberg`].
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of [`t_test::unpaired`]; only for accuracies.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided p-value of [`mcnemar::mid_p`]; only for outcomes of 0 and 1.
    pub p_mcnemar: Option<f64>,
    /// Probability, 0 to 1, that a variant without any cost that changes equally many segments is shown to be dispensable; `None` if not
    /// tested. [`test_family`] knows no margin and leaves it out.
    pub power: Option<f64>,
    /// Number of segments for a probability of 80%; `None` if few segments change, or not tested.
    pub segments_for_power: Option<f64>,
}

impl Comparison {
    /// Returns a comparison that contains only the scores.
    pub fn untested(base: f64, variant: f64) -> Self {
        Self { base, variant, delta: variant - base, ..Self::default() }
    }
}

/// Tests each of `variants` against `base`, and all of them as one family.
///
/// - `margin`: the loss that intervals are compared with, in the unit of the metric; 0 for no margin. Percentile intervals with an end
///   within three Monte Carlo errors of the margin are computed again with [`MAX_RESAMPLES`], so that few verdicts depend on the draw;
///   simultaneous intervals are not.
///
/// # Errors
/// If there are no segments, or a two-class metric meets a class above 1.
///
/// # Panics
/// If a variant covers different segments from the base or has a different metric.
pub fn test_family(
    base: &Segments,
    variants: &[&Segments],
    testing: Testing,
    margin: f64,
) -> Result<Vec<Comparison>, Error> {
    let mut compared: Vec<Comparison> = match base {
        Segments::Classes(_, ClassificationMetric::Accuracy) => {
            let compare = |variant: &&Segments| compare_accuracies(base, variant, testing, variants.len());
            let mut compared = variants.iter().map(compare).collect::<Result<Vec<_>, _>>()?;
            let adjusted = holm(&p_values(&compared));
            for (comparison, adjusted) in compared.iter_mut().zip(adjusted) {
                comparison.p_adjusted = comparison.p_value.and(Some(adjusted));
            }
            compared
        }
        _ => compare_by_swaps(base, variants, (testing, margin))?,
    };
    let controlled = benjamini_hochberg(&p_values(&compared));
    for (comparison, adjusted) in compared.iter_mut().zip(controlled) {
        comparison.p_benjamini_hochberg = comparison.p_value.and(Some(adjusted));
    }
    Ok(compared)
}

fn compare_by_swaps(
    base: &Segments,
    variants: &[&Segments],
    (testing, margin): (Testing, f64),
) -> Result<Vec<Comparison>, Error> {
    let (counted, changes) = base.beside(variants)?;
    let resampled = paired_bootstrap(&counted, &changes, testing.of_bootstrap())?;
    let untested = |test: &Resampled| Comparison::untested(test.base, test.variant);
    if testing.units(base) < MIN_SEGMENTS {
        return Ok(resampled.iter().map(untested).collect());
    }
    let Some(swapped) = swap_tests(&counted, &changes, testing) else {
        return Ok(resampled.iter().map(untested).collect());
    };
    let side = Side { segments: base, counted: &counted, testing };
    let mut compared = Vec::with_capacity(variants.len());
    let all = resampled.iter().zip(&changes).zip(swapped).zip(simultaneous(&resampled));
    for (((test, change), swapped), of_family) in all {
        let mean = side.clustered_mean(change);
        let comparison = side.compare((test, change, mean), swapped, margin)?;
        let widened = match comparison.interval.zip(of_family) {
            Some((own, ends)) => {
                Some(side.with_least(own.joined(ends), (test, change, mean), variants.len())?)
            }
            None => None,
        };
        compared.push(Comparison { simultaneous: widened, ..comparison });
    }
    Ok(compared)
}

/// A variant on resamples, its changes, and its mean over tokens.
type Tested<'a> = (&'a Resampled, &'a Variant, Option<ClusteredMean>);

struct Side<'a> {
    segments: &'a Segments,
    counted: &'a Counted,
    testing: Testing,
}

impl Side<'_> {
    fn compare(
        &self,
        (test, change, mean): Tested<'_>,
        swapped: Swapped,
        margin: f64,
    ) -> Result<Comparison, Error> {
        let interval = match (test.interval(), mean.and_then(|mean| mean.interval(0.05))) {
            (None, _) => None,
            (Some(_), Some(of_mean)) => Some(of_mean),
            (Some(own), None) => {
                let own = self.refined(own, (test, change), margin)?;
                Some(self.with_least(own, (test, change, mean), 1)?)
            }
        };
        Ok(Comparison {
            interval,
            p_value: Some(swapped.p_value),
            p_adjusted: Some(swapped.p_adjusted),
            p_bootstrap: test.p_value(),
            p_koehn: test.p_koehn(),
            ..Comparison::untested(test.base, test.variant)
        })
    }

    /// Returns percentiles of more resamples if an end is so close to the margin that the draw may decide the verdict.
    fn refined(
        &self,
        own: Interval,
        (test, change): (&Resampled, &Variant),
        margin: f64,
    ) -> Result<Interval, Error> {
        let is_near = margin > 0.0 && [-margin, margin].iter().any(|&limit| test.ends_near(limit));
        if !is_near || self.testing.resamples < RESAMPLES {
            return Ok(own);
        }
        let testing = Testing { resamples: MAX_RESAMPLES, ..self.testing };
        let again = paired_bootstrap(self.counted, std::slice::from_ref(change), testing)?;
        Ok(again[0].interval().unwrap_or(own))
    }

    /// Returns the mean change in nats per token, log-odds or scores, with its standard error over segments, or blocks of them. `None` for
    /// other metrics, with fewer than five segments, and if fewer than 20 and less than half of them change: such changes are as rare as
    /// changed decisions of a classifier.
    fn clustered_mean(&self, change: &Variant) -> Option<ClusteredMean> {
        let sizes = self.segments.sizes()?;
        let units = self.testing.units(self.segments);
        let changed = change.changed_units(self.testing.block);
        if changed < FEW_CHANGES && 2 * changed < units {
            return None;
        }
        let mut units = vec![(0.0, 0.0); units];
        for (place, size) in sizes.iter().enumerate() {
            units[place / self.testing.block].1 += size;
        }
        for (&segment, difference) in
            change.changed.iter().zip(change.differences.chunks_exact(self.counted.width()))
        {
            units[segment / self.testing.block].0 += difference[0];
        }
        ClusteredMean::new(&units)
    }

    /// Widens the interval if few segments change, since resamples cannot contain changes that only happen elsewhere: for nats to Student's
    /// t with Bonferroni's correction (also if a few long documents leave few degrees of freedom), for discrete outcomes to the interval of
    /// a variant without any change.
    ///
    /// - `family`: number of variants for which the interval holds at once
    fn with_least(
        &self,
        own: Interval,
        (test, change, mean): Tested<'_>,
        family: usize,
    ) -> Result<Interval, Error> {
        let units = change.changed_units(self.testing.block) as f64;
        let effective = mean.map_or(units, |mean| units.min(mean.degrees_of_freedom()));
        if effective >= FEW_CHANGES as f64 {
            return Ok(own);
        }
        let of_mean = mean.and_then(|mean| mean.interval(0.05 / family as f64));
        let least = match of_mean {
            Some(of_mean) => of_mean,
            None => {
                let share = simultaneous_wilson(0, self.testing.units(self.segments), family).high;
                let reach = self.segments.reach(share)?;
                Interval { low: test.delta() + reach.low, high: test.delta() + reach.high }
            }
        };
        Ok(own.joined(least))
    }
}

/// Two of several systems, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The system used as [`Comparison::base`].
    pub base: usize,
    /// The system that is compared with it.
    pub variant: usize,
}

/// Tests each pair separately, like a family of one in [`test_family`], but draws the resamples only once. Nothing is adjusted, and no
/// interval is simultaneous.
///
/// # Panics
/// If systems cover different segments or have different metrics, or if an index is out of range.
pub fn test_pairs(systems: &[&Segments], pairs: &[Pair], testing: Testing) -> Result<Vec<Comparison>, Error> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let first = systems[0];
    if matches!(first, Segments::Classes(_, ClassificationMetric::Accuracy)) {
        let compare = |pair: &Pair| {
            let comparison = compare_accuracies(systems[pair.base], systems[pair.variant], testing, 1)?;
            Ok(Comparison { simultaneous: None, ..comparison })
        };
        return pairs.iter().map(compare).collect();
    }
    let drawn = |stream| draw_blocks(first.len(), testing, stream);
    let scores = first.weighted(systems, testing.of_bootstrap().resamples, drawn)?.variants;
    let compare = |&Pair { base, variant }: &Pair| {
        let deltas = differences(&scores[variant], &scores[base]);
        let (base, variant) = (systems[base], systems[variant]);
        let resampled = Resampled::new(base.score()?, variant.score()?, deltas)?;
        let (counted, changes) = base.beside(&[variant])?;
        match swap_tests(&counted, &changes, testing).as_deref() {
            Some(&[swapped]) if testing.units(base) >= MIN_SEGMENTS => {
                let side = Side { segments: base, counted: &counted, testing };
                let mean = side.clustered_mean(&changes[0]);
                let comparison = side.compare((&resampled, &changes[0], mean), swapped, 0.0)?;
                Ok(Comparison { p_adjusted: None, ..comparison })
            }
            _ => Ok(Comparison::untested(resampled.base, resampled.variant)),
        }
    };
    pairs.iter().map(compare).collect()
}

/// Returns the p-values; NaN if not tested.
fn p_values(compared: &[Comparison]) -> Vec<f64> {
    compared.iter().map(|comparison| comparison.p_value.unwrap_or(f64::NAN)).collect()
}

/// Compares accuracies by the paired t-test on whether each segment is right, the unpaired one and McNemar's.
///
/// - `family`: number of variants for which the simultaneous interval holds
fn compare_accuracies(
    base: &Segments,
    variant: &Segments,
    testing: Testing,
    family: usize,
) -> Result<Comparison, Error> {
    base.assert_paired(variant);
    let (Segments::Classes(base_outcomes, _), Segments::Classes(outcomes, _)) = (base, variant) else {
        unreachable!("accuracies are of classes")
    };
    let untested = Comparison::untested(base.score()?, variant.score()?);
    if testing.resamples == 0 || outcomes.len() < MIN_SEGMENTS {
        return Ok(untested);
    }
    let only = |left: &[Outcome], right: &[Outcome]| {
        left.iter().zip(right).filter(|(left, right)| left.is_right() && !right.is_right()).count()
    };
    let (lost, gained) = (only(base_outcomes, outcomes), only(outcomes, base_outcomes));
    let in_points = |Interval { low, high }| Interval { low: 100.0 * low, high: 100.0 * high };
    let (base, variant) = (points(base_outcomes), points(outcomes));
    Ok(Comparison {
        interval: Some(in_points(tango(lost, gained, outcomes.len()))),
        simultaneous: Some(in_points(simultaneous_tango(lost, gained, outcomes.len(), family))),
        p_value: Some(match lost.max(gained) {
            // without spread t would be infinite: all segments changed in one direction, so use the sign test
            all if all == outcomes.len() => 0.5_f64.powi(all as i32 - 1),
            _ => t_test::paired(&base, &variant)?.test.p_value,
        }),
        p_unpaired_t: Some(t_test::unpaired(&base, &variant)?.p_value),
        p_mcnemar: Some(mcnemar::mid_p(lost, gained)),
        ..untested
    })
}

/// Returns 100 for a right and 0 for a wrong prediction, whose mean is the accuracy.
fn points(outcomes: &[Outcome]) -> Vec<f64> {
    outcomes.iter().map(|outcome| if outcome.is_right() { 100.0 } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use crate::bleu::BleuStatistics;
    use crate::nats::NatsStatistics;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const METRICS: [ClassificationMetric; 4] = [
        ClassificationMetric::Accuracy,
        ClassificationMetric::F1 { positive: 0 },
        ClassificationMetric::F1 { positive: 1 },
        ClassificationMetric::Matthews,
    ];

    fn outcomes(pairs: &[(usize, usize)]) -> Vec<Outcome> {
        pairs.iter().map(|&(gold, predicted)| Outcome { gold, predicted }).collect()
    }

    const TESTING: Testing = Testing { resamples: 999, seed: 1, block: 1 };

    fn compare(
        base: &[Outcome],
        own: &[Outcome],
        metric: ClassificationMetric,
        resamples: usize,
    ) -> Comparison {
        let [base, own] = [base, own].map(|side| Segments::Classes(side.to_vec(), metric));
        test_family(&base, &[&own], Testing { resamples, ..TESTING }, 0.0).unwrap()[0]
    }

    /// The first variant loses two of four. The differences 0, 0, -100, -100 have the mean -50, the variance 10,000/3 and the standard
    /// error 100/sqrt(12), so t = -sqrt(3), and with 3 degrees of freedom P(|T| > sqrt(3)) = 1 - (2/π) (π/4 + 1/2) = 1/2 - 1/π. McNemar: 2
    /// of 2 on one side, 2 * (1/4) / 2. The second loses none, p = 1. Holm doubles the smaller p, and so do Benjamini and Hochberg.
    #[test]
    fn accuracies_are_tested_by_t_and_adjusted_by_holm() {
        let of_last = |last: [(usize, usize); 2]| {
            Segments::Classes(outcomes(&[&[(0, 0), (2, 2)][..], &last].concat()), METRICS[0])
        };
        let (base, worse) = (of_last([(1, 1), (1, 1)]), of_last([(1, 0), (1, 2)]));
        let found = test_family(&base, &[&worse, &base], TESTING, 0.0).unwrap();
        let (found, same) = (found[0], found[1]);
        assert_eq!((found.base, found.variant, found.delta), (100.0, 50.0, -50.0));
        let p = 0.5 - std::f64::consts::FRAC_1_PI;
        assert_close(found.p_value.unwrap(), p, 1e-12);
        assert_close(found.p_adjusted.unwrap(), 2.0 * p, 1e-12);
        assert_close(found.p_benjamini_hochberg.unwrap(), 2.0 * p, 1e-12);
        assert_close(found.p_mcnemar.unwrap(), 0.25, 1e-12);
        let Interval { low, high } = tango(2, 0, 4);
        assert_eq!(found.interval, Some(Interval { low: 100.0 * low, high: 100.0 * high }));
        assert_eq!((same.p_adjusted, same.p_benjamini_hochberg), (Some(1.0), Some(1.0)));
    }

    fn bleu(correct: u32, count: usize) -> Segments {
        Segments::Bleu(vec![BleuStatistics::new(4, 4, [correct, 1, 1, 1]); count])
    }

    /// With five equal segments, only swapping none or all of them gives the observed difference: 2 of 32, also for each of a family of
    /// three clear differences. No resample has the opposite sign: 2 / 10, and Koehn's 1 / 10.
    #[test]
    fn bleu_is_tested_by_swaps_and_by_the_bootstrap() {
        let (base, variants) = (bleu(4, 5), [3, 2, 1].map(|correct| bleu(correct, 5)));
        let testing = Testing { resamples: 9, ..TESTING };
        for found in test_family(&base, &variants.each_ref(), testing, 0.0).unwrap() {
            assert_eq!((found.p_bootstrap, found.p_koehn), (Some(0.2), Some(0.1)));
            assert_eq!((found.p_value, found.p_benjamini_hochberg), (Some(0.0625), Some(0.0625)));
            assert!(found.p_adjusted.is_some_and(|p| p >= 0.1), "the smallest of nine swaps");
        }
    }

    /// With two segments there are only two distinct swaps, and a t-test has no spread, so nothing is tested.
    #[test]
    fn two_segments_are_not_tested() {
        let classes = |predicted, metric| Segments::Classes(outcomes(&[(1, predicted); 2]), metric);
        let mut pairs = vec![(bleu(4, 1), bleu(3, 1)), (bleu(4, 2), bleu(3, 2))];
        pairs.extend(METRICS.map(|metric| (classes(1, metric), classes(0, metric))));
        for (base, variant) in &pairs {
            let found = test_family(base, &[variant], TESTING, 0.0).unwrap()[0];
            assert_eq!(found, Comparison::untested(found.base, found.variant));
            let pair = [Pair { base: 0, variant: 1 }];
            assert_eq!(test_pairs(&[base, variant], &pair, TESTING), Ok(vec![found]));
        }
        let two_blocks = Testing { block: 20, ..TESTING };
        let found = test_family(&bleu(4, 40), &[&bleu(3, 40)], two_blocks, 0.0).unwrap()[0];
        assert_eq!(found.p_value, None);
    }

    /// Tests how often a loss looks smaller than it is if 1 to 5 of 200 segments are expected to lose: documents cost up to three times as
    /// much, or true positives are missed. Without the minimum width this happened in up to a third of the sets.
    #[test]
    fn few_changes_rarely_make_a_loss_look_smaller_than_it_is() {
        const SETS: u64 = 400;
        let testing = |seed| Testing { resamples: 199, seed, block: 1 };
        let documents = |lost: &[f64]| {
            let document = |&lost: &f64| NatsStatistics::new(30.0 * (1.0 + lost), 10, 10).unwrap();
            Segments::Nats(lost.iter().map(document).collect())
        };
        let positives = |lost: &[f64]| {
            let outcome = |(n, &lost): (usize, &f64)| {
                let gold = usize::from(n < 100);
                Outcome { gold, predicted: if lost > 0.0 { 0 } else { gold } }
            };
            let outcomes = lost.iter().enumerate().map(outcome);
            Segments::Classes(outcomes.collect(), ClassificationMetric::F1 { positive: 1 })
        };
        for expected in [1.0, 2.0, 3.0, 5.0] {
            let share = expected / 200.0;
            // 3 nats per token, and a document that loses costs twice as much on average; F1 of 100 positives of which a share is missed
            let true_nats = 3.0 * share;
            let true_f1 = 200.0 * (1.0 - share) / (2.0 - share) - 100.0;
            let is_missed = |seed: u64| {
                let mut lot = ChaCha8Rng::seed_from_u64(seed);
                let lost: Vec<f64> = (0..200)
                    .map(|_| if lot.random::<f64>() < share { lot.random_range(0.0..2.0) } else { 0.0 })
                    .collect();
                let interval = |base: Segments, variant: Segments| {
                    test_family(&base, &[&variant], testing(seed), 0.0).unwrap()[0].interval.unwrap()
                };
                let none = [0.0; 200];
                let nats = interval(documents(&none), documents(&lost)).high < true_nats;
                let f1 = interval(positives(&none), positives(&lost)).low > true_f1;
                [usize::from(nats), usize::from(f1)]
            };
            let add = |left: [usize; 2], right: [usize; 2]| [left[0] + right[0], left[1] + right[1]];
            let missed = (0..SETS).map(is_missed).fold([0; 2], add).map(|missed| missed as f64 / SETS as f64);
            assert!(missed.iter().all(|&missed| missed <= 0.05), "{expected} expected: {missed:?}");
        }
    }

    /// The interval of ten changes of about 0.01 nats per token is Student's t, not ±16% of the score as for discrete outcomes.
    #[test]
    fn ten_paragraphs_can_decide_a_head() {
        let documents = |cost: fn(usize) -> f64| {
            let document = |place| NatsStatistics::new(450.0 + cost(place), 150, 100).unwrap();
            Segments::Nats((0..10).map(document).collect())
        };
        let (base, worse) = (documents(|_| 0.0), documents(|place| 1.5 + 0.3 * (place as f64 - 4.5)));
        let found = test_family(&base, &[&worse, &base], TESTING, 0.0198).unwrap();
        let interval = found[0].interval.unwrap();
        // the effects 0.15 to 2.85 nats have the standard deviation 0.9083, and t with 9 degrees of freedom has the quantile 2.262157
        let reach = 2.262_157 * 0.908_295 / 10.0_f64.sqrt() / 150.0;
        assert_close(interval.low, 0.01 - reach, 1e-6);
        assert_close(interval.high, 0.01 + reach, 1e-6);
        assert!(interval.high < 0.0198);
        // two variants at once: Bonferroni's 0.9875 quantile of t is 2.685011
        assert!(found[0].simultaneous.unwrap().high >= 0.01 + reach * 2.685_011 / 2.262_157 - 1e-6);
    }

    /// F1 of 400 segments: with the margin at an end of the interval, the ends come from 100,000 resamples, otherwise from 10,000.
    #[test]
    fn an_end_near_the_margin_gets_more_resamples() {
        let side = |step: usize| {
            let pairs = (0..400).map(|n| (usize::from(n % 2 == 0), usize::from(n % step != 0 && n % 2 == 0)));
            Segments::Classes(outcomes(&pairs.collect::<Vec<_>>()), ClassificationMetric::F1 { positive: 1 })
        };
        let (base, worse) = (side(14), side(6));
        let interval = |resamples, margin| {
            let testing = Testing { resamples, seed: 1, block: 1 };
            test_family(&base, &[&worse], testing, margin).unwrap()[0].interval.unwrap()
        };
        let plain = interval(RESAMPLES, 0.0);
        assert_eq!(interval(RESAMPLES, 50.0), plain);
        let testing = Testing { resamples: MAX_RESAMPLES, seed: 1, block: 1 };
        let of_most = base.resampled(&[&worse], testing).unwrap()[0].interval().unwrap();
        assert_ne!(of_most, plain);
        assert_eq!(interval(RESAMPLES, -plain.high), of_most);
        assert_eq!(interval(RESAMPLES, -plain.low), of_most);
    }

    #[test]
    fn simultaneous_intervals_contain_the_separate_ones() {
        let mut lot = ChaCha8Rng::seed_from_u64(5);
        let mut documents = || {
            let document = |_| NatsStatistics::new(lot.random_range(20.0..40.0), 10, 10).unwrap();
            Segments::Nats((0..60).map(document).collect())
        };
        let (base, variants) = (documents(), [documents(), documents(), documents()]);
        let variants: Vec<&Segments> = variants.iter().collect();
        let width = |ends: Interval| ends.high - ends.low;
        let three = test_family(&base, &variants, TESTING, 0.0).unwrap();
        let one = test_family(&base, &variants[..1], TESTING, 0.0).unwrap();
        for found in three.iter().chain(&one) {
            let (own, all) = (found.interval.unwrap(), found.simultaneous.unwrap());
            assert!(all.low <= own.low && own.high <= all.high);
        }
        let [of_three, of_one] = [&three, &one].map(|found| width(found[0].simultaneous.unwrap()));
        // about 2.39 instead of 1.96 standard errors, minus the effect of the shared base
        assert!((1.05..1.3).contains(&(of_three / of_one)), "{of_three} {of_one}");
    }

    /// No change in 20 segments still allows changes in up to z² / (20 + z²) = 16.1%, which is 3.2225 segments. Accuracy: 16.1 points, also
    /// if a wrong class becomes another wrong one. F1 with 15 true positives and 5 missed ones falls to 2 * 11.7775 / (2 * 11.7775 +
    /// 8.2225) if 3.2225 more are missed, and rises if 3.2225 fewer are. Matthews correlation with 4 true positives in 20 falls from 1 to
    /// its value with 0.7775 true positives and 3.2225 missed ones.
    #[test]
    fn no_change_on_a_few_examples_shows_little() {
        let twenty = outcomes(&[&[(1, 1); 15][..], &[(1, 0); 5]].concat());
        let wrong_otherwise = outcomes(&[&[(1, 1); 15][..], &[(1, 2); 5]].concat());
        let accuracy = compare(&twenty, &wrong_otherwise, ClassificationMetric::Accuracy, 1);
        let f1 = compare(&twenty, &twenty, ClassificationMetric::F1 { positive: 1 }, 40);
        let rare = outcomes(&[&[(1, 1); 4][..], &[(0, 0); 16]].concat());
        let matthews = compare(&rare, &rare, ClassificationMetric::Matthews, 40);
        let f1_of = |right: f64| 200.0 * right / (2.0 * right + 20.0 - right);
        // 0.7775 * 16 / sqrt(0.7775 * 19.2225 * 4 * 16)
        let least = 100.0 * (0.7775 * 16.0 / (19.2225 * 4.0_f64)).sqrt();
        for (found, low, high) in [
            (accuracy, -16.112, 16.112),
            (f1, f1_of(11.7775) - f1_of(15.0), f1_of(18.2225) - f1_of(15.0)),
            (matthews, least - 100.0, 0.0),
        ] {
            let interval = found.interval.unwrap();
            assert_close(interval.low, low, 0.01);
            assert_close(interval.high, high, 0.01);
        }
    }

    /// True classes with the predictions of two systems.
    fn two_systems() -> impl Strategy<Value = (Vec<Outcome>, Vec<Outcome>)> {
        let outcome = |gold, predicted| Outcome { gold, predicted };
        vec((0..2_usize, 0..2_usize, 0..2_usize), 3..24).prop_map(move |examples| {
            let both = examples.into_iter().map(|(gold, one, two)| (outcome(gold, one), outcome(gold, two)));
            both.unzip()
        })
    }

    proptest! {
        #[test]
        fn swapping_the_systems_keeps_every_p_and_only_accuracies_have_tests_of_correctness(
            (base, variant) in two_systems()
        ) {
            for metric in METRICS {
                let there = compare(&base, &variant, metric, 40);
                let back = compare(&variant, &base, metric, 40);
                prop_assert_eq!((there.delta, there.delta), (-back.delta, there.variant - there.base));
                let interval = there.interval.unwrap();
                prop_assert!(interval.low <= interval.high);
                let all = |found: Comparison| {
                    [found.p_value, found.p_bootstrap, found.p_koehn, found.p_unpaired_t, found.p_mcnemar]
                };
                prop_assert_eq!(all(there), all(back));
                prop_assert!(all(there).iter().flatten().all(|p| (0.0..=1.0).contains(p)));
                let is_accuracy = metric == ClassificationMetric::Accuracy;
                let is_there = [true, !is_accuracy, !is_accuracy, is_accuracy, is_accuracy];
                prop_assert_eq!(all(there).map(|p| p.is_some()), is_there);
                let untested = compare(&base, &variant, metric, 0);
                prop_assert_eq!(untested, Comparison::untested(there.base, there.variant));
            }
        }

        /// Also for pairs without the system that all resamples are compared with.
        #[test]
        fn a_pair_is_a_family_of_one((first, second) in two_systems()) {
            let testing = Testing { resamples: 40, seed: 1, block: 1 };
            for metric in METRICS {
                let right = first.iter().map(|outcome| Outcome { predicted: outcome.gold, ..*outcome }).collect();
                let systems = [right, first.clone(), second.clone()].map(|side| Segments::Classes(side, metric));
                let systems: Vec<&Segments> = systems.iter().collect();
                let pairs = [(1, 2), (2, 1), (0, 2)].map(|(base, variant)| Pair { base, variant });
                let found = test_pairs(&systems, &pairs, testing).unwrap();
                for (Pair { base, variant }, found) in pairs.into_iter().zip(found) {
                    let alone = test_family(systems[base], &[systems[variant]], testing, 0.0).unwrap()[0];
                    let unadjusted =
                        Comparison { p_adjusted: None, p_benjamini_hochberg: None, simultaneous: None, ..alone };
                    prop_assert_eq!(found, unadjusted);
                }
            }
        }
    }
}
