//! Counts of right and wrong decisions between two classes, from which F1 and Matthews correlation follow.

use std::ops::AddAssign;

use crate::SegmentStatistics;

/// Examples by truth, then by prediction; 1 is the positive class.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Confusion([[u32; 2]; 2]);

impl Confusion {
    /// A single example: whether it is positive, and whether it was said to be.
    pub(crate) fn of(gold: bool, predicted: bool) -> Self {
        let mut counts = Self::default();
        counts.0[usize::from(gold)][usize::from(predicted)] = 1;
        counts
    }

    fn counts(self) -> [[f64; 2]; 2] {
        self.0.map(|row| row.map(f64::from))
    }
}

impl AddAssign for Confusion {
    fn add_assign(&mut self, other: Self) {
        for (sum, count) in self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()) {
            *sum += count;
        }
    }
}

/// Scored by F1 of the positive class.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct F1(pub(crate) Confusion);

impl AddAssign for F1 {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SegmentStatistics for F1 {
    fn score(&self) -> f64 {
        let [[_, false_positives], [false_negatives, true_positives]] = self.0.counts();
        100.0 * ratio(2.0 * true_positives, 2.0 * true_positives + false_positives + false_negatives)
    }
}

/// Scored by Matthews correlation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Matthews(pub(crate) Confusion);

impl AddAssign for Matthews {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SegmentStatistics for Matthews {
    fn score(&self) -> f64 {
        let [[true_negatives, false_positives], [false_negatives, true_positives]] = self.0.counts();
        let gold = (true_positives + false_negatives) * (true_negatives + false_positives);
        let predicted = (true_positives + false_positives) * (true_negatives + false_negatives);
        let covariance = true_positives * true_negatives - false_positives * false_negatives;
        // Two roots, since the product of all four margins of a large test set is no whole number any more; a ratio of 1
        // may still be rounded up.
        100.0 * ratio(covariance, gold.sqrt() * predicted.sqrt()).clamp(-1.0, 1.0)
    }
}

/// 0/0 is 0.
fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator == 0.0 { 0.0 } else { numerator / denominator }
}
