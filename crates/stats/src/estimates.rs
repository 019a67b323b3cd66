//! Metrics of models with one output, such as rerankers and sentence-similarity models.

use crate::correlation::mid_ranks;
use crate::counted::Counted;
use crate::metric::MetricName;

/// True and predicted value of a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The true value.
    pub gold: f32,
    /// The model's output.
    pub predicted: f32,
}

/// Correlation of true and predicted values, in points from -100 to 100; 0 if one side does not vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CorrelationMetric {
    /// Pearson's r.
    Pearson,
    /// Pearson's r of the ranks on the whole test set; resamples and swaps keep these ranks.
    Spearman,
}

impl CorrelationMetric {
    /// Both metrics.
    pub const ALL: [Self; 2] = [Self::Pearson, Self::Spearman];

    /// Returns its name.
    pub fn name(self) -> MetricName {
        match self {
            Self::Pearson => MetricName::Pearson,
            Self::Spearman => MetricName::Spearman,
        }
    }

    pub(crate) fn counted(self, estimates: &[Estimate]) -> Counted {
        let side =
            |of: fn(&Estimate) -> f32| estimates.iter().map(|own| f64::from(of(own))).collect::<Vec<_>>();
        let (mut gold, mut predicted) = (side(|own| own.gold), side(|own| own.predicted));
        if self == Self::Spearman {
            (gold, predicted) = (mid_ranks(&gold), mid_ranks(&predicted));
        }
        // Centred, since sums of squares are exact enough near 0; all systems have equal true values.
        let centre = gold.iter().sum::<f64>() / gold.len() as f64;
        let counts = gold.into_iter().zip(predicted).map(|(gold, predicted)| {
            let (x, y) = (gold - centre, predicted - centre);
            [1.0, x, y, x * x, y * y, x * y]
        });
        Counted::new(counts, |sums| correlation(sums).unwrap_or(0.0))
    }

    pub(crate) fn exists(self, estimates: &[Estimate]) -> bool {
        correlation(&self.counted(estimates).sums()).is_some()
    }
}

fn correlation(sums: &[f64]) -> Option<f64> {
    let [n, x, y, xx, yy, xy] = std::array::from_fn(|place| sums[place]);
    let (of_x, of_y, of_both) = (n * xx - x * x, n * yy - y * y, n * xy - x * y);
    // treats rounding errors as no spread
    let has_spread = of_x > 1e-12 * n * xx && of_y > 1e-12 * n * yy;
    has_spread.then(|| 100.0 * (of_both / (of_x.sqrt() * of_y.sqrt())).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segments;
    use crate::correlation;
    use proptest::prelude::*;

    fn score(pairs: &[(f32, f32)], metric: CorrelationMetric) -> f64 {
        let estimates = pairs.iter().map(|&(gold, predicted)| Estimate { gold, predicted });
        Segments::Estimates(estimates.collect(), metric).score().unwrap()
    }

    proptest! {
        #[test]
        fn scores_are_the_correlations(pairs in prop::collection::vec((0.0_f32..5.0, -9.0_f32..9.0), 5..40)) {
            let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).unzip();
            let expected = [correlation::pearson(&x, &y), correlation::spearman(&x, &y)];
            for (metric, expected) in CorrelationMetric::ALL.into_iter().zip(expected) {
                prop_assert!((score(&pairs, metric) - 100.0 * expected.unwrap().coefficient).abs() < 1e-7);
            }
        }
    }

    #[test]
    fn without_a_spread_a_correlation_is_0() {
        for metric in CorrelationMetric::ALL {
            let constant = [1.0, 2.0, 5.0].map(|gold| Estimate { gold, predicted: 2.5 });
            let constant = Segments::Estimates(constant.to_vec(), metric);
            assert_eq!((constant.score(), constant.is_undefined()), (Ok(0.0), true));
            assert!((score(&[(1.0, -1.0), (2.0, -2.0), (5.0, -5.0)], metric) + 100.0).abs() < 1e-9);
        }
    }
}
