//! Counts of right and wrong decisions between two classes, from which F1 and Matthews correlation follow.

use crate::SegmentStatistics;
use crate::bootstrap::Interval;
use crate::classification::Outcome;

/// Examples by truth, then by prediction; 1 is the positive class.
type Counts = [f64; 4];

/// A single example: whether it is positive, and whether it was said to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Decision {
    pub(crate) gold: bool,
    pub(crate) predicted: bool,
}

impl Decision {
    /// Of one class against all others.
    pub(crate) fn of(outcome: Outcome, positive: usize) -> Self {
        Self { gold: outcome.gold == positive, predicted: outcome.predicted == positive }
    }

    pub(crate) fn counts(self) -> Counts {
        let mut counts = [0.0; 4];
        counts[2 * usize::from(self.gold) + usize::from(self.predicted)] = 1.0;
        counts
    }
}

/// The least and the greatest change of a score where `count` predictions of one class, right or wrong ones, are turned round.
pub(crate) fn reach_of_flips(sums: Counts, count: f64, score: fn(&[f64]) -> f64) -> Interval {
    let change = |(from, to): (usize, usize)| {
        let (mut flipped, part) = (sums, count.min(sums[from]));
        flipped[from] -= part;
        flipped[to] += part;
        score(&flipped) - score(&sums)
    };
    let changes = [(0, 1), (1, 0), (2, 3), (3, 2)].map(change);
    Interval {
        low: changes.iter().fold(0.0, |low, &one| one.min(low)),
        high: changes.iter().fold(0.0, |high, &one| one.max(high)),
    }
}

/// Scored by F1 of the positive class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct F1(pub(crate) Decision);

impl SegmentStatistics for F1 {
    const COUNTS: usize = 4;
    type Counts = Counts;

    fn counts(&self) -> Counts {
        self.0.counts()
    }

    fn score(sums: &[f64]) -> f64 {
        let (false_positives, false_negatives, true_positives) = (sums[1], sums[2], sums[3]);
        100.0 * ratio(2.0 * true_positives, 2.0 * true_positives + false_positives + false_negatives)
    }
}

/// Scored by Matthews correlation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Matthews(pub(crate) Decision);

impl SegmentStatistics for Matthews {
    const COUNTS: usize = 4;
    type Counts = Counts;

    fn counts(&self) -> Counts {
        self.0.counts()
    }

    fn score(sums: &[f64]) -> f64 {
        let (true_negatives, false_positives, false_negatives, true_positives) =
            (sums[0], sums[1], sums[2], sums[3]);
        let gold = (true_positives + false_negatives) * (true_negatives + false_positives);
        let predicted = (true_positives + false_positives) * (true_negatives + false_negatives);
        let covariance = true_positives * true_negatives - false_positives * false_negatives;
        // Two roots, since the product of all four margins of a large test set is no whole number any more; a ratio of 1
        // may still be rounded up.
        100.0 * ratio(covariance, gold.sqrt() * predicted.sqrt()).clamp(-1.0, 1.0)
    }
}

/// Scored by the share of right decisions, over any number of classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Accuracy {
    pub(crate) is_right: bool,
}

impl Accuracy {
    pub(crate) fn of(outcome: Outcome) -> Self {
        Self { is_right: outcome.is_right() }
    }
}

impl SegmentStatistics for Accuracy {
    const COUNTS: usize = 2;
    type Counts = [f64; 2];

    fn counts(&self) -> [f64; 2] {
        [f64::from(u8::from(self.is_right)), 1.0]
    }

    fn score(sums: &[f64]) -> f64 {
        100.0 * sums[0] / sums[1]
    }
}

/// 0/0 is 0.
fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator == 0.0 { 0.0 } else { numerator / denominator }
}
