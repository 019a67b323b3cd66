//! A base and its variants, tested one by one and as a family.
//!
//! BLEU, F1, Matthews correlation and nats per token, which are no means over segments, by paired bootstrap; accuracies by a paired t-test,
//! as in Michel et al. (2019), Section 3.2. All p-values are two-sided unless they say otherwise.

use std::collections::BTreeMap;

use crate::adjust::{benjamini_hochberg, holm};
use crate::bootstrap::{Interval, Resampled, differences, draw};
use crate::classification::{ClassificationMetric, Outcome};
use crate::max_t::max_t;
use crate::proportion::{tango, wilson};
use crate::{Error, Segments, mcnemar, t_test};

/// A p-value below this is significant, as in Michel et al. (2019).
pub const ALPHA: f64 = 0.01;

/// Resamples unless something else is asked for.
pub const RESAMPLES: usize = 100_000;

/// Resamples of a p-value that [`RESAMPLES`] leave too close to [`ALPHA`]; more say nothing new, and take long.
pub const MOST_RESAMPLES: usize = 1_000_000;

/// Settings of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Testing {
    /// Resamples of the bootstrap; with 0 nothing is tested, accuracies neither. From [`RESAMPLES`] on, variants within three
    /// Monte-Carlo errors of [`ALPHA`] get [`MOST_RESAMPLES`]; smaller numbers are used as they are.
    pub resamples: usize,
    /// Seed that draws them.
    pub seed: u64,
}

/// A variant beside its base on one test set, in the unit of the metric.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Comparison {
    /// Score of the base system.
    pub base: f64,
    /// Score of the variant.
    pub variant: f64,
    /// `variant` minus `base`; whether the variant is worse below 0 is in [`MetricName::direction`](crate::MetricName::direction).
    pub delta: f64,
    /// 95 % interval of `delta`: percentiles of the bootstrap or, of accuracies, [`tango`]'s; absent if it was not tested, or with
    /// too few resamples for one. If no segment changed, it is about as far as the score moves with the share of segments that may
    /// change elsewhere, by [`wilson`]; with only a few changed segments, percentiles are still too narrow.
    pub interval: Option<Interval>,
    /// Two-sided p-value of `delta`, 0 to 1; absent if it was not tested, or of one segment.
    pub p_value: Option<f64>,
    /// The paper's one-sided p-value, [`Resampled::p_koehn`]; of bootstraps alone.
    pub p_koehn: Option<f64>,
    /// `p_value` adjusted for the family-wise error rate: [`max_t`] for bootstraps, on the resamples that the family shares, also
    /// where `p_value` has more; [`holm`] for t-tests.
    pub p_adjusted: Option<f64>,
    /// `p_value` adjusted by [`benjamini_hochberg`].
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of [`t_test::unpaired`]; of accuracies alone.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided p-value of [`mcnemar::mid_p`]; of accuracies alone.
    pub p_mcnemar: Option<f64>,
    /// Chance, 0 to 1, that a variant that costs nothing, but changes as many segments, is shown to be dispensable; absent if it was
    /// not tested. [`test_family`] knows no margin, and leaves it out.
    pub power: Option<f64>,
    /// Number of segments that would give a chance of 80 %, likewise.
    pub segments_for_power: Option<f64>,
}

impl Comparison {
    /// The scores alone.
    pub fn untested(base: f64, variant: f64) -> Self {
        Self { base, variant, delta: variant - base, ..Self::default() }
    }
}

/// Tests each of `variants` against `base`, and all of them as one family.
///
/// # Errors
/// If there are no segments, or a metric of two classes meets a class above 1.
///
/// # Panics
/// If a variant covers other segments than the base or has another metric.
pub fn test_family(
    base: &Segments,
    variants: &[&Segments],
    testing: Testing,
) -> Result<Vec<Comparison>, Error> {
    let mut compared: Vec<Comparison> = match base {
        Segments::Classes(_, ClassificationMetric::Accuracy) => {
            let compare = |variant: &&Segments| compare_accuracies(base, variant, testing.resamples > 0);
            let mut compared = variants.iter().map(compare).collect::<Result<Vec<_>, _>>()?;
            let adjusted = holm(&p_values(&compared));
            for (comparison, adjusted) in compared.iter_mut().zip(adjusted) {
                comparison.p_adjusted = comparison.p_value.and(Some(adjusted));
            }
            compared
        }
        _ => {
            let shared = base.resampled(variants, testing.resamples, testing.seed)?;
            let close = close_calls(&shared, base, variants, testing)?;
            let tests = || (0..).zip(&shared).map(|(place, shared)| close.get(&place).unwrap_or(shared));
            let adjusted = max_t(&shared, &tests().map(Resampled::p_value).collect::<Vec<_>>());
            let of = |((test, variant), adjusted): ((_, &&Segments), _)| {
                of_bootstrap(test, [base, variant], adjusted)
            };
            tests().zip(variants).zip(adjusted).map(of).collect::<Result<_, _>>()?
        }
    };
    let controlled = benjamini_hochberg(&p_values(&compared));
    for (comparison, adjusted) in compared.iter_mut().zip(controlled) {
        comparison.p_benjamini_hochberg = comparison.p_value.and(Some(adjusted));
    }
    Ok(compared)
}

/// Variants whose p-value is too close to [`ALPHA`] to call, by their places, with more resamples. They begin with the shared ones.
fn close_calls(
    shared: &[Resampled],
    base: &Segments,
    variants: &[&Segments],
    testing: Testing,
) -> Result<BTreeMap<usize, Resampled>, Error> {
    let is_close = |&place: &usize| shared[place].is_close_to(ALPHA);
    let close: Vec<usize> = (0..shared.len()).filter(is_close).collect();
    if close.is_empty() || !(RESAMPLES..MOST_RESAMPLES).contains(&testing.resamples) {
        return Ok(BTreeMap::new());
    }
    let of_close: Vec<&Segments> = close.iter().map(|&place| variants[place]).collect();
    let more = base.resampled(&of_close, MOST_RESAMPLES, testing.seed)?;
    Ok(close.into_iter().zip(more).collect())
}

/// Two of several systems, by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The system that stands for [`Comparison::base`].
    pub base: usize,
    /// The system that is compared with it.
    pub variant: usize,
}

/// Tests each pair by itself, as [`test_family`] tests a family of one, but draws the resamples once for all, and no more for close
/// calls. Nothing is adjusted.
///
/// # Errors
/// As for [`test_family`].
///
/// # Panics
/// If systems cover other segments or have other metrics, or there is no system of that place.
pub fn test_pairs(systems: &[&Segments], pairs: &[Pair], testing: Testing) -> Result<Vec<Comparison>, Error> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let first = systems[0];
    if matches!(first, Segments::Classes(_, ClassificationMetric::Accuracy)) {
        let compare = |pair: &Pair| {
            compare_accuracies(systems[pair.base], systems[pair.variant], testing.resamples > 0)
        };
        return pairs.iter().map(compare).collect();
    }
    let drawn = |stream| draw(first.len(), testing.seed, stream);
    let scores = first.weighted(systems, testing.resamples, drawn)?.variants;
    let compare = |&Pair { base, variant }: &Pair| {
        let deltas = differences(&scores[variant], &scores[base]);
        let resampled = Resampled::new(systems[base].score()?, systems[variant].score()?, deltas)?;
        of_bootstrap(&resampled, [systems[base], systems[variant]], None)
    };
    pairs.iter().map(compare).collect()
}

/// NaN where nothing was tested.
fn p_values(compared: &[Comparison]) -> Vec<f64> {
    compared.iter().map(|comparison| comparison.p_value.unwrap_or(f64::NAN)).collect()
}

fn of_bootstrap(
    test: &Resampled,
    [base, variant]: [&Segments; 2],
    p_adjusted: Option<f64>,
) -> Result<Comparison, Error> {
    // Resamples of one segment are all the same.
    if base.len() < 2 {
        return Ok(Comparison::untested(test.base, test.variant));
    }
    let interval = test.interval();
    // Where no segment changed, resamples know nothing of those that may change elsewhere.
    let may_change = || base.reach(wilson(0, base.len()).high);
    Ok(Comparison {
        interval: if interval.is_some() && base == variant { Some(may_change()?) } else { interval },
        p_value: test.p_value(),
        p_koehn: test.p_koehn(),
        p_adjusted,
        ..Comparison::untested(test.base, test.variant)
    })
}

/// By the paired t-test on whether each example is right, the unpaired one and McNemar's; a test set of one example has no
/// t-tests.
fn compare_accuracies(base: &Segments, variant: &Segments, is_tested: bool) -> Result<Comparison, Error> {
    base.assert_paired(variant);
    let (Segments::Classes(base_outcomes, _), Segments::Classes(outcomes, _)) = (base, variant) else {
        unreachable!("accuracies are of classes")
    };
    let untested = Comparison::untested(base.score()?, variant.score()?);
    if !is_tested {
        return Ok(untested);
    }
    let only = |left: &[Outcome], right: &[Outcome]| {
        left.iter().zip(right).filter(|(left, right)| left.is_right() && !right.is_right()).count()
    };
    let (lost, gained) = (only(base_outcomes, outcomes), only(outcomes, base_outcomes));
    let Interval { low, high } = tango(lost, gained, outcomes.len());
    let by_counts = Comparison {
        interval: Some(Interval { low: 100.0 * low, high: 100.0 * high }),
        p_mcnemar: Some(mcnemar::mid_p(lost, gained)),
        ..untested
    };
    if outcomes.len() < 2 {
        return Ok(by_counts);
    }
    let (base, variant) = (points(base_outcomes), points(outcomes));
    Ok(Comparison {
        p_value: Some(t_test::paired(&base, &variant)?.test.p_value),
        p_unpaired_t: Some(t_test::unpaired(&base, &variant)?.p_value),
        ..by_counts
    })
}

/// Points that each example adds to the accuracy, which is the mean.
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

    const METRICS: [ClassificationMetric; 4] = [
        ClassificationMetric::Accuracy,
        ClassificationMetric::F1 { positive: 0 },
        ClassificationMetric::F1 { positive: 1 },
        ClassificationMetric::Matthews,
    ];

    fn outcomes(pairs: &[(usize, usize)]) -> Vec<Outcome> {
        pairs.iter().map(|&(gold, predicted)| Outcome { gold, predicted }).collect()
    }

    fn compare(
        base: &[Outcome],
        variant: &[Outcome],
        metric: ClassificationMetric,
        resamples: usize,
    ) -> Result<Comparison, Error> {
        let [base, variant] = [base, variant].map(|side| Segments::Classes(side.to_vec(), metric));
        Ok(test_family(&base, &[&variant], Testing { resamples, seed: 1 })?[0])
    }

    #[test]
    fn a_third_class_is_refused_where_there_are_two() {
        let variant = outcomes(&[(0, 3), (1, 1)]);
        let found = compare(&outcomes(&[(0, 0), (1, 1)]), &variant, ClassificationMetric::Matthews, 10);
        assert!(found.unwrap_err().to_string().starts_with("class 3 is not one of two"));
        assert!(METRICS.iter().all(|&metric| compare(&[], &[], metric, 10) == Err(Error::empty())));
    }

    #[test]
    #[should_panic(expected = "paired systems must cover the same examples")]
    fn other_examples_panic() {
        let _ = compare(&outcomes(&[(0, 0)]), &outcomes(&[(1, 0)]), ClassificationMetric::Accuracy, 10);
    }

    /// Of four examples the base has all right, the variant two. The differences 0, 0, -100, -100 have the mean -50, the
    /// variance 10,000/3 and the standard error 100/sqrt(12), so t = -sqrt(3), and with 3 degrees of freedom
    /// P(|T| > sqrt(3)) = 1 - (2/π) (π/4 + 1/2) = 1/2 - 1/π. Unpaired, the variance is pooled to (0 + 10,000) / 6, the
    /// error sqrt(10,000 / 12), and t the same with 6 degrees of freedom: with t² = 3 the sine of arctan(t / sqrt(6)) is
    /// s = sqrt(1/3), and p = 1 - s (1 + (1 - s²)/2 + 3 (1 - s²)²/8) = 1 - s * 3/2. McNemar: 2 of 2 on one side,
    /// 2 * (1/4) / 2.
    #[test]
    fn accuracies_get_all_three_tests() {
        let base = outcomes(&[(0, 0), (2, 2), (1, 1), (1, 1)]);
        let variant = outcomes(&[(0, 0), (2, 2), (1, 0), (1, 2)]);
        let found = compare(&base, &variant, ClassificationMetric::Accuracy, 1).unwrap();
        assert_eq!((found.base, found.variant, found.delta), (100.0, 50.0, -50.0));
        assert_close(found.p_value.unwrap(), 0.5 - std::f64::consts::FRAC_1_PI, 1e-12);
        assert_close(found.p_unpaired_t.unwrap(), 1.0 - 1.5 * (1.0_f64 / 3.0).sqrt(), 1e-12);
        assert_close(found.p_mcnemar.unwrap(), 0.25, 1e-12);
        let Interval { low, high } = tango(2, 0, 4);
        assert_eq!(found.interval, Some(Interval { low: 100.0 * low, high: 100.0 * high }));
    }

    /// The first variant loses two of four, p = 1/2 - 1/π = 0.182 as above; the second none, p = 1. Holm doubles the
    /// smaller one; Benjamini and Hochberg do too.
    #[test]
    fn accuracies_are_adjusted_by_holm() {
        let all = |predicted: [usize; 4]| {
            let outcome = |predicted| Outcome { gold: 1, predicted };
            Segments::Classes(predicted.map(outcome).to_vec(), ClassificationMetric::Accuracy)
        };
        let (base, worse) = (all([1; 4]), all([1, 1, 0, 0]));
        let found = test_family(&base, &[&worse, &base], Testing { resamples: 1, seed: 1 }).unwrap();
        let p = 0.5 - std::f64::consts::FRAC_1_PI;
        assert_close(found[0].p_adjusted.unwrap(), 2.0 * p, 1e-12);
        assert_close(found[0].p_benjamini_hochberg.unwrap(), 2.0 * p, 1e-12);
        assert_eq!((found[1].p_adjusted, found[1].p_benjamini_hochberg), (Some(1.0), Some(1.0)));
    }

    /// Two equal segments: all p are the smallest that nine resamples can give, 2 / 10, and a family of three clear differences is
    /// no stricter than each by itself. A single segment has none.
    #[test]
    fn bootstraps_are_adjusted_by_their_own_resamples() {
        let of = |correct, count| Segments::Bleu(vec![BleuStatistics::new(4, 4, [correct, 1, 1, 1]); count]);
        let (base, variants) = (of(4, 2), [of(3, 2), of(2, 2), of(1, 2)]);
        let variants: Vec<&Segments> = variants.iter().collect();
        let single = test_family(&of(4, 1), &[&of(3, 1)], Testing { resamples: 99, seed: 1 }).unwrap();
        assert_eq!(single[0], Comparison::untested(single[0].base, single[0].variant));
        for found in test_family(&base, &variants, Testing { resamples: 9, seed: 1 }).unwrap() {
            assert_eq!((found.p_value, found.p_koehn), (Some(0.2), Some(0.1)));
            assert_eq!((found.p_adjusted, found.p_benjamini_hochberg), (Some(0.2), Some(0.2)));
        }
    }

    /// Forty documents that cost more and less in turn, all of them `shift` more: by 0.428 p is near 0.01, by 0.1 far from it.
    #[test]
    fn close_calls_get_more_resamples_and_no_others() {
        let documents = |cost: fn(u32, f64) -> f64, shift| {
            let document = |n| NatsStatistics::new(20.0 + cost(n, shift), 10, 10).unwrap();
            Segments::Nats((0..40).map(document).collect())
        };
        let turned = |n: u32, shift: f64| {
            let size = 0.5 + f64::from(n) / 40.0;
            if n.is_multiple_of(2) { shift + size } else { shift - size }
        };
        let base = documents(|_, _| 0.0, 0.0);
        let [far, close] = [0.1, 0.428].map(|shift| documents(turned, shift));
        let test = |variants: &[&Segments], resamples| {
            test_family(&base, variants, Testing { resamples, seed: 1 }).unwrap()
        };
        let found = test(&[&far, &close], RESAMPLES);
        let alone = test(&[&close], MOST_RESAMPLES)[0];
        assert!((alone.p_value.unwrap() - ALPHA).abs() < 0.002, "{alone:?}");
        assert_eq!((found[1].p_value, found[1].interval), (alone.p_value, alone.interval));
        assert_eq!(found[0].p_value, test(&[&far], RESAMPLES)[0].p_value);
        let few = test(&[&close], RESAMPLES - 1)[0].p_value.unwrap() * RESAMPLES as f64 / 2.0;
        assert_close(few, few.round(), 1e-6);
    }

    #[test]
    fn one_example_has_no_t_test() {
        let (right, wrong) = (outcomes(&[(1, 1)]), outcomes(&[(1, 0)]));
        let found = compare(&right, &wrong, ClassificationMetric::Accuracy, 10).unwrap();
        assert_eq!((found.delta, found.p_value, found.p_unpaired_t), (-100.0, None, None));
        assert!(found.interval.is_some_and(|interval| interval.low == -100.0 && interval.high > 50.0));
        assert_eq!((found.p_adjusted, found.p_benjamini_hochberg), (None, None));
        assert_close(found.p_mcnemar.unwrap(), 0.5, 1e-12);
    }

    /// Of 20 examples none changed, so that up to z² / (20 + z²) = 16.1 % may, which are 3.2225: of accuracies 16.1 points, also where
    /// a wrong class becomes another one; F1 of 15 right positives and 5 missed ones falls if 3.2225 more are missed, to
    /// 2 * 11.7775 / (2 * 11.7775 + 8.2225), and rises if as many less are. Of 4 right positives of 20, Matthews correlation falls from
    /// 1 to that of 0.7775 right and 3.2225 missed ones.
    #[test]
    fn no_change_on_a_few_examples_shows_little() {
        let twenty = outcomes(&[&[(1, 1); 15][..], &[(1, 0); 5]].concat());
        let wrong_otherwise = outcomes(&[&[(1, 1); 15][..], &[(1, 2); 5]].concat());
        let accuracy = compare(&twenty, &wrong_otherwise, ClassificationMetric::Accuracy, 1).unwrap();
        let f1 = compare(&twenty, &twenty, ClassificationMetric::F1 { positive: 1 }, 40).unwrap();
        let rare = outcomes(&[&[(1, 1); 4][..], &[(0, 0); 16]].concat());
        let matthews = compare(&rare, &rare, ClassificationMetric::Matthews, 40).unwrap();
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
        let untested = compare(&twenty, &twenty, ClassificationMetric::F1 { positive: 1 }, 38).unwrap();
        assert_eq!(untested.interval, None, "too few resamples");
    }

    /// True classes with the predictions of two systems.
    fn two_systems() -> impl Strategy<Value = (Vec<Outcome>, Vec<Outcome>)> {
        let outcome = |gold, predicted| Outcome { gold, predicted };
        vec((0..2_usize, 0..2_usize, 0..2_usize), 2..40).prop_map(move |examples| {
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
                let there = compare(&base, &variant, metric, 40).unwrap();
                let back = compare(&variant, &base, metric, 40).unwrap();
                prop_assert_eq!((there.delta, there.delta), (-back.delta, there.variant - there.base));
                let interval = there.interval.unwrap();
                prop_assert!(interval.low <= interval.high);
                let all = |found: Comparison| [found.p_value, found.p_koehn, found.p_unpaired_t, found.p_mcnemar];
                prop_assert_eq!(all(there), all(back));
                prop_assert!(all(there).iter().flatten().all(|p| (0.0..=1.0).contains(p)));
                let is_accuracy = metric == ClassificationMetric::Accuracy;
                let is_there = [true, !is_accuracy, is_accuracy, is_accuracy];
                prop_assert_eq!(all(there).map(|p| p.is_some()), is_there);
                let untested = compare(&base, &variant, metric, 0).unwrap();
                prop_assert_eq!(untested, Comparison::untested(there.base, there.variant));
            }
        }

        /// Also where neither of a pair is the system that the resamples of all are compared with.
        #[test]
        fn a_pair_is_a_family_of_one((first, second) in two_systems()) {
            let testing = Testing { resamples: 40, seed: 1 };
            for metric in METRICS {
                let right = first.iter().map(|outcome| Outcome { predicted: outcome.gold, ..*outcome }).collect();
                let systems = [right, first.clone(), second.clone()].map(|side| Segments::Classes(side, metric));
                let systems: Vec<&Segments> = systems.iter().collect();
                let pairs = [(1, 2), (2, 1), (0, 2)].map(|(base, variant)| Pair { base, variant });
                let found = test_pairs(&systems, &pairs, testing).unwrap();
                for (Pair { base, variant }, found) in pairs.into_iter().zip(found) {
                    let alone = test_family(systems[base], &[systems[variant]], testing).unwrap()[0];
                    let unadjusted =
                        Comparison { p_adjusted: None, p_benjamini_hochberg: None, ..alone };
                    prop_assert_eq!(found, unadjusted);
                }
            }
        }
    }
}
