//! Scores of classifiers, and tests of their differences.
//!
//! All scores are in points, as those of BLEU are: accuracy and F1 from 0 to 100, the Matthews correlation from -100 to
//! 100. Accuracies are compared by a t-test, as in Michel et al. (2019), Section 3.2; F1 and Matthews correlation, which
//! are no means over examples, by paired bootstrap.

use crate::bootstrap::paired_bootstrap;
use crate::confusion::{Confusion, F1, Matthews};
use crate::{Comparison, Error, SegmentStatistics, mcnemar, sum, t_test};

/// One example of a test set: its class, and the one that a model says. Classes are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The true class.
    pub gold: usize,
    /// The class that the model gives the highest score.
    pub predicted: usize,
}

impl Outcome {
    fn is_right(self) -> bool {
        self.gold == self.predicted
    }
}

/// How outcomes make a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClassificationMetric {
    /// Share of examples that are right, over any number of classes.
    Accuracy,
    /// Harmonic mean of precision and recall of one of two classes; 0 if that class occurs neither in truth nor among
    /// the predictions, as in scikit-learn.
    F1 {
        /// The class that counts, 0 or 1.
        positive: usize,
    },
    /// Correlation of truth and prediction over two classes (Matthews 1975, *Comparison of the Predicted and Observed
    /// Secondary Structure of T4 Phage Lysozyme*, Biochimica et Biophysica Acta 405, 442-451); 0 if one side knows one
    /// class only, as in scikit-learn.
    Matthews,
}

impl ClassificationMetric {
    /// The name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::F1 { .. } => "f1",
            Self::Matthews => "matthews",
        }
    }

    /// Refuses a class beyond the second where there are only two.
    fn check_class(self, class: usize) -> Result<(), Error> {
        match self {
            Self::F1 { .. } | Self::Matthews if class > 1 => Err(Error::Class { class, metric: self.name() }),
            _ => Ok(()),
        }
    }

    fn check(self, outcomes: &[Outcome]) -> Result<(), Error> {
        if outcomes.is_empty() {
            return Err(Error::Empty);
        }
        if let Self::F1 { positive } = self {
            self.check_class(positive)?;
        }
        let mut classes = outcomes.iter().flat_map(|outcome| [outcome.gold, outcome.predicted]);
        classes.try_for_each(|class| self.check_class(class))
    }
}

/// The score of a test set, in points.
///
/// # Errors
/// [`Error::Empty`] without outcomes, [`Error::Class`] if a metric of two classes meets a class above 1.
pub fn score(outcomes: &[Outcome], metric: ClassificationMetric) -> Result<f64, Error> {
    metric.check(outcomes)?;
    Ok(match metric {
        ClassificationMetric::Accuracy => accuracy(outcomes),
        ClassificationMetric::F1 { positive } => sum(&f1(outcomes, positive)).score(),
        ClassificationMetric::Matthews => sum(&matthews(outcomes)).score(),
    })
}

/// Compares two systems on the same examples.
///
/// Accuracies by the paired t-test on whether each example is right, with its 95 % interval in points, the unpaired
/// t-test and McNemar's exact test; a test set of one example has no t-tests. F1 and Matthews correlation by
/// [`paired_bootstrap`]; the other tests have no meaning for them.
///
/// `resamples` and `seed` are those of the bootstrap; without resamples nothing is tested, accuracies neither.
///
/// # Errors
/// [`Error::Empty`] without outcomes, [`Error::Class`] if a metric of two classes meets a class above 1.
///
/// # Panics
/// If `base` and `variant` differ in length or in the true class of an example.
pub fn compare(
    base: &[Outcome],
    variant: &[Outcome],
    metric: ClassificationMetric,
    resamples: usize,
    seed: u64,
) -> Result<Comparison, Error> {
    let gold = |outcome: &Outcome| outcome.gold;
    let are_paired = base.iter().map(gold).eq(variant.iter().map(gold));
    assert!(are_paired, "paired systems must cover the same examples");
    metric.check(base)?;
    metric.check(variant)?;
    match metric {
        ClassificationMetric::Accuracy => compare_accuracies(base, variant, resamples > 0),
        ClassificationMetric::F1 { positive } => {
            paired_bootstrap(&f1(base, positive), &f1(variant, positive), resamples, seed)
        }
        ClassificationMetric::Matthews => {
            paired_bootstrap(&matthews(base), &matthews(variant), resamples, seed)
        }
    }
}

fn accuracy(outcomes: &[Outcome]) -> f64 {
    let right = outcomes.iter().filter(|outcome| outcome.is_right()).count();
    100.0 * right as f64 / outcomes.len() as f64
}

fn compare_accuracies(base: &[Outcome], variant: &[Outcome], tested: bool) -> Result<Comparison, Error> {
    let scores = (accuracy(base), accuracy(variant));
    let untested = Comparison {
        base: scores.0,
        variant: scores.1,
        delta: scores.1 - scores.0,
        p_value: None,
        interval: None,
        p_unpaired_t: None,
        p_mcnemar: None,
    };
    if !tested {
        return Ok(untested);
    }
    let mcnemar = Comparison { p_mcnemar: Some(p_mcnemar(base, variant)), ..untested };
    if base.len() < 2 {
        return Ok(mcnemar);
    }
    let (base, variant) = (points(base), points(variant));
    let paired = t_test::paired(&base, &variant)?;
    Ok(Comparison {
        p_value: Some(paired.test.p_value),
        interval: Some(paired.interval),
        p_unpaired_t: Some(t_test::unpaired(&base, &variant)?.p_value),
        ..mcnemar
    })
}

fn p_mcnemar(base: &[Outcome], variant: &[Outcome]) -> f64 {
    let only = |left: &[Outcome], right: &[Outcome]| {
        left.iter().zip(right).filter(|(left, right)| left.is_right() && !right.is_right()).count()
    };
    mcnemar::exact(only(base, variant), only(variant, base))
}

/// What each example adds to the accuracy, which is the mean.
fn points(outcomes: &[Outcome]) -> Vec<f64> {
    outcomes.iter().map(|outcome| if outcome.is_right() { 100.0 } else { 0.0 }).collect()
}

fn f1(outcomes: &[Outcome], positive: usize) -> Vec<F1> {
    outcomes.iter().map(|&outcome| F1(confusion(outcome, positive))).collect()
}

/// Which class is the positive one makes no difference.
fn matthews(outcomes: &[Outcome]) -> Vec<Matthews> {
    outcomes.iter().map(|&outcome| Matthews(confusion(outcome, 1))).collect()
}

fn confusion(outcome: Outcome, positive: usize) -> Confusion {
    Confusion::of(outcome.gold == positive, outcome.predicted == positive)
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn assert_close(found: f64, expected: f64, tolerance: f64) {
        let gap = (found - expected).abs();
        assert!(gap < tolerance, "{found} instead of {expected}: {gap:e}");
    }

    /// Right, right, wrong (1 for 0), wrong (0 for 1), right, of which class 1: true and predicted twice, false
    /// positive once, false negative once.
    const FIVE: [(usize, usize); 5] = [(1, 1), (0, 0), (0, 1), (1, 0), (1, 1)];

    /// 3 of 5 are right. Class 1: 2 * 2 / (2 * 2 + 1 + 1) = 2/3; class 0: 2 * 1 / (2 * 1 + 1 + 1) = 1/2. Matthews:
    /// (2 * 1 - 1 * 1) / sqrt(3 * 3 * 2 * 2) = 1/6.
    #[test]
    fn scores_are_in_points() {
        let expected = [60.0, 50.0, 200.0 / 3.0, 100.0 / 6.0];
        for (metric, expected) in METRICS.into_iter().zip(expected) {
            assert_close(score(&outcomes(&FIVE), metric).unwrap(), expected, 1e-12);
        }
    }

    #[test]
    fn accuracy_takes_any_number_of_classes() {
        let three = outcomes(&[(2, 2), (1, 2), (7, 7), (0, 0)]);
        assert_eq!(score(&three, ClassificationMetric::Accuracy), Ok(75.0));
    }

    #[test]
    fn nothing_divided_by_nothing_is_zero() {
        let negative = outcomes(&[(0, 0), (0, 0)]);
        let constant = outcomes(&[(0, 1), (1, 1)]);
        assert_eq!(score(&negative, ClassificationMetric::F1 { positive: 1 }), Ok(0.0));
        assert_eq!(score(&negative, ClassificationMetric::Matthews), Ok(0.0));
        assert_eq!(score(&constant, ClassificationMetric::Matthews), Ok(0.0));
    }

    #[test]
    fn a_third_class_is_refused_where_there_are_two() {
        let three = outcomes(&[(0, 0), (1, 2)]);
        let message = |metric| score(&three, metric).unwrap_err().to_string();
        assert_eq!(
            message(ClassificationMetric::Matthews),
            "class 2 is not one of two: matthews knows classes 0 and 1"
        );
        let two = outcomes(&FIVE);
        let third = ClassificationMetric::F1 { positive: 2 };
        assert_eq!(score(&two, third), Err(Error::Class { class: 2, metric: "f1" }));
        let variant = outcomes(&[(0, 3), (1, 1)]);
        let found = compare(&outcomes(&[(0, 0), (1, 1)]), &variant, ClassificationMetric::Matthews, 10, 1);
        assert_eq!(found, Err(Error::Class { class: 3, metric: "matthews" }));
        for metric in METRICS {
            assert_eq!(score(&[], metric), Err(Error::Empty));
            assert_eq!(compare(&[], &[], metric, 10, 1), Err(Error::Empty));
        }
    }

    #[test]
    #[should_panic(expected = "paired systems must cover the same examples")]
    fn other_examples_panic() {
        let _ = compare(&outcomes(&[(0, 0)]), &outcomes(&[(1, 0)]), ClassificationMetric::Accuracy, 10, 1);
    }

    /// Of four examples the base has all right, the variant two. The differences 0, 0, -100, -100 have the mean -50, the
    /// variance 10,000/3 and the standard error 100/sqrt(12), so t = -sqrt(3), and with 3 degrees of freedom
    /// P(|T| > sqrt(3)) = 1 - (2/π) (π/4 + 1/2) = 1/2 - 1/π. Unpaired, the variance is pooled to (0 + 10,000) / 6, the
    /// error sqrt(10,000 / 12), and t the same with 6 degrees of freedom: with t² = 3 the sine of arctan(t / sqrt(6)) is
    /// s = sqrt(1/3), and p = 1 - s (1 + (1 - s²)/2 + 3 (1 - s²)²/8) = 1 - s * 3/2. McNemar: 2 of 2 on one side,
    /// 2 * (1/4).
    #[test]
    fn accuracies_get_all_three_tests() {
        let base = outcomes(&[(0, 0), (2, 2), (1, 1), (1, 1)]);
        let variant = outcomes(&[(0, 0), (2, 2), (1, 0), (1, 2)]);
        let found = compare(&base, &variant, ClassificationMetric::Accuracy, 1, 1).unwrap();
        assert_eq!((found.base, found.variant, found.delta), (100.0, 50.0, -50.0));
        assert_close(found.p_value.unwrap(), 0.5 - std::f64::consts::FRAC_1_PI, 1e-12);
        assert_close(found.p_unpaired_t.unwrap(), 1.0 - 1.5 * (1.0_f64 / 3.0).sqrt(), 1e-12);
        assert_close(found.p_mcnemar.unwrap(), 0.5, 1e-12);
        // 3.182446305... is the t of 3 degrees of freedom, in every table.
        let (low, high) = found.interval.unwrap();
        assert_close(low, -50.0 - 3.182_446_305_283_71 * 100.0 / 12.0_f64.sqrt(), 1e-9);
        assert_close(high, -50.0 + 3.182_446_305_283_71 * 100.0 / 12.0_f64.sqrt(), 1e-9);
    }

    #[test]
    fn one_example_has_no_t_test() {
        let (right, wrong) = (outcomes(&[(1, 1)]), outcomes(&[(1, 0)]));
        let found = compare(&right, &wrong, ClassificationMetric::Accuracy, 10, 1).unwrap();
        assert_eq!((found.delta, found.p_value, found.interval), (-100.0, None, None));
        assert_eq!((found.p_unpaired_t, found.p_mcnemar), (None, Some(1.0)));
    }

    #[test]
    fn without_resamples_nothing_is_tested() {
        let (base, variant) = (outcomes(&FIVE), outcomes(&[(1, 1), (0, 0), (0, 0), (1, 1), (1, 0)]));
        for metric in METRICS {
            let found = compare(&base, &variant, metric, 0, 1).unwrap();
            assert_eq!(found.delta, found.variant - found.base);
            let tests = [found.p_value, found.p_unpaired_t, found.p_mcnemar];
            assert_eq!((tests, found.interval), ([None; 3], None), "{metric:?}");
        }
    }

    #[test]
    fn only_accuracies_have_tests_of_correctness() {
        for metric in METRICS {
            let found = compare(&outcomes(&FIVE), &outcomes(&FIVE), metric, 20, 1).unwrap();
            let is_accuracy = metric == ClassificationMetric::Accuracy;
            assert_eq!(found.p_value, Some(1.0));
            assert_eq!([found.p_unpaired_t, found.p_mcnemar], [is_accuracy.then_some(1.0); 2], "{metric:?}");
        }
    }

    /// True classes with the predictions of two systems.
    fn two_systems() -> impl Strategy<Value = (Vec<Outcome>, Vec<Outcome>)> {
        let example = (0..2_usize, 0..2_usize, 0..2_usize);
        vec(example, 2..40).prop_map(|examples| {
            let outcome = |gold, predicted| Outcome { gold, predicted };
            examples
                .into_iter()
                .map(|(gold, base, variant)| (outcome(gold, base), outcome(gold, variant)))
                .unzip()
        })
    }

    proptest! {
        #[test]
        fn comparing_and_scoring_agree((base, variant) in two_systems()) {
            for metric in METRICS {
                let found = compare(&base, &variant, metric, 10, 1).unwrap();
                prop_assert_eq!(found.base, score(&base, metric).unwrap());
                prop_assert_eq!(found.variant, score(&variant, metric).unwrap());
                prop_assert_eq!(found.delta, found.variant - found.base);
                let (low, high) = found.interval.unwrap();
                prop_assert!(low <= high);
                for p in [found.p_value, found.p_unpaired_t, found.p_mcnemar].into_iter().flatten() {
                    prop_assert!((0.0..=1.0).contains(&p), "{:?}: {}", metric, p);
                }
            }
        }

        #[test]
        fn swapping_the_systems_keeps_every_p((base, variant) in two_systems()) {
            for metric in METRICS {
                let there = compare(&base, &variant, metric, 10, 1).unwrap();
                let back = compare(&variant, &base, metric, 10, 1).unwrap();
                prop_assert_eq!(there.delta, -back.delta);
                prop_assert_eq!(there.p_value, back.p_value);
                prop_assert_eq!(there.p_unpaired_t, back.p_unpaired_t);
                prop_assert_eq!(there.p_mcnemar, back.p_mcnemar);
            }
        }

        #[test]
        fn scores_stay_in_their_range((outcomes, _) in two_systems()) {
            for metric in METRICS {
                let least = if metric == ClassificationMetric::Matthews { -100.0 } else { 0.0 };
                prop_assert!((least..=100.0).contains(&score(&outcomes, metric).unwrap()));
            }
        }

        /// Renaming both classes changes nothing; a model that says the opposite has the opposite correlation.
        #[test]
        fn matthews_treats_both_classes_alike((outcomes, _) in two_systems()) {
            let flipped = |gold: bool| -> Vec<Outcome> {
                let flip = |outcome: &Outcome| Outcome {
                    gold: if gold { 1 - outcome.gold } else { outcome.gold },
                    predicted: 1 - outcome.predicted,
                };
                outcomes.iter().map(flip).collect()
            };
            let matthews = |outcomes: &[Outcome]| score(outcomes, ClassificationMetric::Matthews).unwrap();
            prop_assert!((matthews(&outcomes) - matthews(&flipped(true))).abs() < 1e-12);
            prop_assert!((matthews(&outcomes) + matthews(&flipped(false))).abs() < 1e-12);
        }
    }
}
