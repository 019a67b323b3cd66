//! Scores of classifiers.
//!
//! All scores are in points, as those of BLEU are: accuracy and F1 from 0 to 100, the Matthews correlation from -100 to
//! 100.

use crate::confusion::{Accuracy, Decision, F1, Matthews};
use crate::{Error, MetricName};

/// One example of a test set: its class, and the one that a model says. Classes are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The true class.
    pub gold: usize,
    /// The class that the model gives the highest score.
    pub predicted: usize,
}

impl Outcome {
    /// Whether the model says the true class.
    pub fn is_right(self) -> bool {
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
    /// What its scores are counted in.
    pub fn name(self) -> MetricName {
        match self {
            Self::Accuracy => MetricName::Accuracy,
            Self::F1 { .. } => MetricName::F1,
            Self::Matthews => MetricName::Matthews,
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
        ClassificationMetric::Accuracy => crate::score(&counted(outcomes, Accuracy::of)),
        ClassificationMetric::F1 { positive } => {
            crate::score(&counted(outcomes, |outcome| F1(Decision::of(outcome, positive))))
        }
        // Which class is the positive one makes no difference.
        ClassificationMetric::Matthews => {
            crate::score(&counted(outcomes, |outcome| Matthews(Decision::of(outcome, 1))))
        }
    })
}

/// Outcomes as a metric counts them.
pub(crate) fn counted<S>(outcomes: &[Outcome], of: impl Fn(Outcome) -> S) -> Vec<S> {
    outcomes.iter().map(|&outcome| of(outcome)).collect()
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
        assert_eq!(score(&two, third), Err(Error::Class { class: 2, metric: MetricName::F1 }));
        for metric in METRICS {
            assert_eq!(score(&[], metric), Err(Error::Empty));
        }
    }

    fn any_outcomes() -> impl Strategy<Value = Vec<Outcome>> {
        let outcome = (0..2_usize, 0..2_usize).prop_map(|(gold, predicted)| Outcome { gold, predicted });
        vec(outcome, 2..40)
    }

    proptest! {
        #[test]
        fn scores_stay_in_their_range(outcomes in any_outcomes()) {
            for metric in METRICS {
                let least = if metric == ClassificationMetric::Matthews { -100.0 } else { 0.0 };
                prop_assert!((least..=100.0).contains(&score(&outcomes, metric).unwrap()));
            }
        }

        /// Renaming both classes changes nothing; a model that says the opposite has the opposite correlation.
        #[test]
        fn matthews_treats_both_classes_alike(outcomes in any_outcomes()) {
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
