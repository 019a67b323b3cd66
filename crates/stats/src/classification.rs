//! Metrics of classifiers.
//!
//! All scores are in points, as for BLEU: accuracy and F1 from 0 to 100, the Matthews correlation from -100 to 100.

use crate::counted::Counted;
use crate::interval::Interval;
use crate::{Error, MetricName, mcnemar};

/// True and predicted class of a segment, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The true class.
    pub gold: usize,
    /// The class with the highest output.
    pub predicted: usize,
}

impl Outcome {
    /// Returns true if the prediction is right.
    pub fn is_right(self) -> bool {
        self.gold == self.predicted
    }

    /// Returns the segment's counts in the confusion matrix: true negative, false positive, false negative, true positive.
    fn one_of_four(self, positive: usize) -> [f64; 4] {
        let mut counts = [0.0; 4];
        counts[2 * usize::from(self.gold == positive) + usize::from(self.predicted == positive)] = 1.0;
        counts
    }
}

/// An order of the classes that differs from the given one.
#[derive(Debug, Clone, PartialEq)]
pub struct Reordered {
    /// Class of each output.
    pub order: Vec<usize>,
    /// Accuracy in percent, with the classes in the given order and in this one.
    pub right: [f64; 2],
}

/// Returns an order of the `classes` with far more right predictions than the given one, p below 0.001 by McNemar's exact test. Starts from
/// the given order and exchanges two outputs at a time while accuracy rises. `None` if no such order is found, or if the model predicts
/// only one class, which shows nothing.
///
/// # Panics
/// If an outcome has a class of `classes` or above.
pub fn reordered(outcomes: &[Outcome], classes: usize) -> Option<Reordered> {
    let mut counts = vec![vec![0; classes]; classes]; // of each output, by true class
    outcomes.iter().for_each(|outcome| counts[outcome.predicted][outcome.gold] += 1);
    if counts.iter().filter(|of_output| of_output.iter().any(|&count| count > 0)).count() < 2 {
        return None;
    }
    let mut order: Vec<usize> = (0..classes).collect();
    let pairs = || (0..classes).flat_map(|one| (0..one).map(move |other| (one, other)));
    let is_gain = |order: &[usize], (one, other): (usize, usize)| {
        let right = |[first, second]: [usize; 2]| counts[one][first] + counts[other][second];
        right([order[other], order[one]]) > right([order[one], order[other]])
    };
    while let Some((one, other)) = pairs().find(|&pair| is_gain(&order, pair)) {
        order.swap(one, other);
    }
    let moved = || (0..classes).filter(|&output| order[output] != output);
    let given: usize = moved().map(|output| counts[output][output]).sum();
    let other: usize = moved().map(|output| counts[output][order[output]]).sum();
    let right: usize = (0..classes).map(|output| counts[output][output]).sum();
    let share = |right: usize| 100.0 * right as f64 / outcomes.len() as f64;
    let right = [right, right - given + other].map(share);
    (other > given && mcnemar::exact(given, other) < 0.001).then_some(Reordered { order, right })
}

/// A metric of classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClassificationMetric {
    /// Percentage of right predictions, over any number of classes.
    Accuracy,
    /// Harmonic mean of precision and recall of one of two classes; 0 if the class occurs neither in truth nor in the predictions, as in
    /// scikit-learn.
    F1 {
        /// The positive class, 0 or 1.
        positive: usize,
    },
    /// Correlation of truth and prediction over two classes (Matthews 1975, *Comparison of the Predicted and Observed Secondary Structure
    /// of T4 Phage Lysozyme*, Biochimica et Biophysica Acta 405, 442-451); 0 if truth or predictions contain only one class, as in
    /// scikit-learn.
    Matthews,
}

impl ClassificationMetric {
    /// Returns its name.
    pub fn name(self) -> MetricName {
        match self {
            Self::Accuracy => MetricName::Accuracy,
            Self::F1 { .. } => MetricName::F1,
            Self::Matthews => MetricName::Matthews,
        }
    }

    /// Returns an error for a class above 1 if the metric has only two classes.
    fn check(self, class: usize) -> Result<(), Error> {
        if self == Self::Accuracy || class < 2 {
            return Ok(());
        }
        let name = self.name();
        Err(Error::Invalid(format!("class {class} is invalid: {name} allows classes 0 and 1")))
    }

    pub(crate) fn counted(self, outcomes: &[Outcome]) -> Result<Counted, Error> {
        let classes = outcomes.iter().flat_map(|outcome| [outcome.gold, outcome.predicted]);
        let positive = if let Self::F1 { positive } = self { positive } else { 1 };
        classes.chain([positive]).try_for_each(|class| self.check(class))?;
        // for the Matthews correlation either class can be the positive one
        let of_two = outcomes.iter().map(|outcome| outcome.one_of_four(positive));
        Ok(match self {
            Self::Accuracy => {
                let right = outcomes.iter().map(|outcome| [f64::from(u8::from(outcome.is_right())), 1.0]);
                Counted::new(right, |sums| 100.0 * sums[0] / sums[1])
            }
            Self::F1 { .. } => Counted::new(of_two, f1),
            Self::Matthews => Counted::new(of_two, matthews),
        })
    }
}

/// Returns the largest loss and gain of a two-class score if `count` predictions in one cell of the confusion matrix are flipped.
pub(crate) fn reach_of_flips(examples: &Counted, count: f64) -> Interval {
    let sums = examples.sums();
    let change = |(from, to): (usize, usize)| {
        let (mut flipped, part) = (sums.clone(), count.min(sums[from]));
        flipped[from] -= part;
        flipped[to] += part;
        examples.score_of(&flipped) - examples.score()
    };
    let changes = [(0, 1), (1, 0), (2, 3), (3, 2)].map(change);
    Interval {
        low: changes.iter().fold(0.0, |low, &one| one.min(low)),
        high: changes.iter().fold(0.0, |high, &one| one.max(high)),
    }
}

fn f1(sums: &[f64]) -> f64 {
    let (false_positives, false_negatives, true_positives) = (sums[1], sums[2], sums[3]);
    100.0 * ratio(2.0 * true_positives, 2.0 * true_positives + false_positives + false_negatives)
}

fn matthews(sums: &[f64]) -> f64 {
    let (true_negatives, false_positives, false_negatives, true_positives) =
        (sums[0], sums[1], sums[2], sums[3]);
    let gold = (true_positives + false_negatives) * (true_negatives + false_positives);
    let predicted = (true_positives + false_positives) * (true_negatives + false_negatives);
    let covariance = true_positives * true_negatives - false_positives * false_negatives;
    // Two square roots, since the product of all four margins of a large test set is not exact; a ratio of 1 may still be rounded up.
    100.0 * ratio(covariance, gold.sqrt() * predicted.sqrt()).clamp(-1.0, 1.0)
}

fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator == 0.0 { 0.0 } else { numerator / denominator }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Segments, assert_close};
    use proptest::collection::vec;
    use proptest::prelude::*;

    const METRICS: [ClassificationMetric; 4] = [
        ClassificationMetric::Accuracy,
        ClassificationMetric::F1 { positive: 0 },
        ClassificationMetric::F1 { positive: 1 },
        ClassificationMetric::Matthews,
    ];

    fn score(pairs: &[(usize, usize)], metric: ClassificationMetric) -> Result<f64, Error> {
        let outcome = |&(gold, predicted): &(usize, usize)| Outcome { gold, predicted };
        Segments::Classes(pairs.iter().map(outcome).collect(), metric).score()
    }

    /// Right, right, wrong (1 for 0), wrong (0 for 1), right: 3 of 5. F1 is 4 / (4 + 1 + 1) = 2/3 for class 1 and 2 / (2 + 1 + 1) = 1/2
    /// for class 0. Matthews: (2 * 1 - 1 * 1) / sqrt(3 * 3 * 2 * 2) = 1/6.
    #[test]
    fn scores_are_in_points_and_nothing_divided_by_nothing_is_zero() {
        let expected = [60.0, 50.0, 200.0 / 3.0, 100.0 / 6.0];
        for (metric, expected) in METRICS.into_iter().zip(expected) {
            let found = score(&[(1, 1), (0, 0), (0, 1), (1, 0), (1, 1)], metric).unwrap();
            assert_close(found, expected, 1e-12);
        }
        let [accuracy, _, f1, matthews] = METRICS;
        assert_eq!(score(&[(2, 2), (1, 2), (7, 7), (0, 0)], accuracy), Ok(75.0));
        assert_eq!(score(&[(0, 0), (0, 0)], f1), Ok(0.0));
        assert_eq!(score(&[(0, 0), (0, 0)], matthews), Ok(0.0));
        assert_eq!(score(&[(0, 1), (1, 1)], matthews), Ok(0.0));
        assert!(METRICS.iter().all(|&metric| score(&[], metric) == Err(Error::empty())));
        // a third class is refused where there are two
        for (predicted, metric) in [(2, matthews), (0, ClassificationMetric::F1 { positive: 2 })] {
            let message = score(&[(0, predicted)], metric).unwrap_err().to_string();
            assert!(message.starts_with("class 2 is invalid"), "{message}");
        }
    }

    /// Of 12 segments, 10 are right if the outputs are exchanged and 2 as given: p = 2 (1 + 12 + 66) / 2^12 = 0.039. Of 120, p is below
    /// 1e-10. A cycle of three outputs is reordered too, even if a fourth class is never predicted, and so is a rare class that is wrong
    /// more often than right. A model that predicts one class is not reordered.
    #[test]
    fn an_order_is_doubted_where_another_is_far_better() {
        let many = |pairs: &[(usize, usize, usize)]| -> Vec<Outcome> {
            let some = |&(gold, predicted, count)| vec![Outcome { gold, predicted }; count];
            pairs.iter().flat_map(some).collect()
        };
        let order = |pairs: &[_]| reordered(&many(pairs), 3).map(|found| found.order);
        assert_eq!(order(&[(0, 1, 5), (1, 0, 5), (0, 0, 1), (1, 1, 1)]), None);
        let found = reordered(&many(&[(0, 1, 50), (1, 0, 50), (0, 0, 10), (1, 1, 10)]), 2).unwrap();
        assert_eq!(found.order, [1, 0]);
        assert_close(found.right[0], 100.0 / 6.0, 1e-12);
        assert_close(found.right[1], 500.0 / 6.0, 1e-12);
        let cycle = many(&[(0, 1, 20), (1, 2, 20), (2, 0, 20), (3, 1, 5)]);
        assert_eq!(reordered(&cycle, 4).unwrap().order, [2, 0, 1, 3]);
        let rare = reordered(&many(&[(1, 0, 80), (0, 0, 98), (1, 1, 20), (0, 1, 802)]), 2).unwrap();
        assert_eq!(rare, Reordered { order: vec![1, 0], right: [11.8, 88.2] });
        for kept in [
            &[(0, 0, 90), (1, 1, 30)][..],
            &[(0, 1, 90), (1, 1, 10)],
            &[(0, 0, 19), (0, 1, 21), (1, 0, 20)],
            &[],
        ] {
            assert_eq!(order(kept), None, "{kept:?}");
        }
    }

    proptest! {
        /// Renaming both classes changes nothing; opposite predictions have the opposite correlation.
        #[test]
        fn matthews_treats_both_classes_alike(pairs in vec((0..2_usize, 0..2_usize), 2..40)) {
            let flipped = |is_renamed: usize| -> Vec<_> {
                pairs.iter().map(|(gold, predicted)| (gold ^ is_renamed, 1 - predicted)).collect()
            };
            let matthews = |pairs: &[_]| score(pairs, ClassificationMetric::Matthews).unwrap();
            prop_assert!((-100.0..=100.0).contains(&matthews(&pairs)));
            prop_assert!((matthews(&pairs) - matthews(&flipped(1))).abs() < 1e-12);
            prop_assert!((matthews(&pairs) + matthews(&flipped(0))).abs() < 1e-12);
        }
    }
}
