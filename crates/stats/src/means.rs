//! Means of real numbers: log-odds of questions, and scores of documents computed by other programs.

use crate::family::{Comparison, MIN_SEGMENTS, test_family};
use crate::metric::MetricName;
use crate::proportion::{simultaneous_tango, tango};
use crate::testing::Testing;
use crate::{Error, Segments, mcnemar};

/// Numbers of a segment, or of a cluster of documents that are drawn together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// Their sum, in the unit of the metric.
    pub sum: f64,
    /// Number of values, or their weight; above 0.
    pub count: f64,
}

impl Mean {
    /// Returns a segment with one number.
    pub fn of(value: f64) -> Self {
        Self { sum: value, count: 1.0 }
    }

    /// Returns the mean of the numbers.
    pub fn value(self) -> f64 {
        self.sum / self.count
    }
}

/// Quantity that is averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeanMetric {
    /// Log-odds of the right choice, in nats.
    LogOdds,
    /// Score computed by another program, in any unit; higher is better.
    Score,
}

impl MeanMetric {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::LogOdds, Self::Score];

    /// Returns the name of the metric.
    pub fn name(self) -> MetricName {
        match self {
            Self::LogOdds => MetricName::LogOdds,
            Self::Score => MetricName::Score,
        }
    }

    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::LogOdds => &["log_odds"],
            Self::Score => &["score"],
        }
    }
}

/// Returns the sum of the absolute values, and the sum of the counts.
pub(crate) fn sizes(all: &[Mean]) -> [f64; 2] {
    all.iter().fold([0.0; 2], |[sum, count], own| [sum + own.sum.abs(), count + own.count])
}

/// Tests scores of other programs with [`test_family`], or exactly if every document is right or wrong, 1 or 0, in both systems. Then the
/// distribution under swaps is known: the p-value is [`mcnemar::exact`], which enumerating all swaps would give, the intervals are
/// [`tango`] and [`simultaneous_tango`], and [`Comparison::p_mcnemar`] is set. A single such variant needs no draws and has no bootstrap
/// p-value.
pub fn test_scores(
    base: &Segments,
    variants: &[&Segments],
    testing: Testing,
    margin: f64,
) -> Result<Vec<Comparison>, Error> {
    let is_exact = |variant: &Segments| {
        testing.resamples > 0 && base.len() >= MIN_SEGMENTS && right_only_once(base, variant).is_some()
    };
    let mut compared = match variants {
        [only] if is_exact(only) => vec![Comparison::untested(base.score()?, only.score()?)],
        _ => test_family(base, variants, testing, margin)?,
    };
    if testing.resamples == 0 || base.len() < MIN_SEGMENTS {
        return Ok(compared);
    }
    for (own, variant) in compared.iter_mut().zip(variants) {
        let Some([lost, gained]) = right_only_once(base, variant) else { continue };
        own.interval = Some(tango(lost, gained, base.len()));
        own.simultaneous = Some(simultaneous_tango(lost, gained, base.len(), variants.len()));
        own.p_mcnemar = Some(mcnemar::mid_p(lost, gained));
        let exact = mcnemar::exact(lost, gained);
        own.p_value = Some(exact);
        own.p_adjusted = match variants.len() {
            1 => Some(exact),
            _ => own.p_adjusted.map(|adjusted| adjusted.max(exact)),
        };
    }
    Ok(compared)
}

/// Returns the numbers of documents that are right only in the base and only in the variant; `None` if a document is not 0 or 1.
fn right_only_once(base: &Segments, variant: &Segments) -> Option<[usize; 2]> {
    let (Segments::Means(base, _), Segments::Means(variant, _)) = (base, variant) else { return None };
    let is_outcome = |own: &Mean| own.count == 1.0 && (own.sum == 0.0 || own.sum == 1.0);
    if !base.iter().chain(variant).all(is_outcome) {
        return None;
    }
    let only = |left: &[Mean], right: &[Mean]| left.iter().zip(right).filter(|(l, r)| l.sum > r.sum).count();
    Some([only(base, variant), only(variant, base)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;

    fn scores(values: &[f64]) -> Segments {
        Segments::Means(values.iter().map(|&value| Mean::of(value)).collect(), MeanMetric::Score)
    }

    const TESTING: Testing = Testing { resamples: 999, seed: 1, block: 1 };

    /// Of 30 documents, 5 are right only in the base and 1 only in the variant: 2 (1 + 6) / 2^6 = 0.21875, and mid-p subtracts 6 / 64.
    #[test]
    fn right_and_wrong_documents_have_exact_tests() {
        let base = scores(&[&[1.0; 20][..], &[0.0; 10]].concat());
        let variant = scores(&[&[0.0; 5][..], &[1.0; 16], &[0.0; 9]].concat());
        let found = test_scores(&base, &[&variant], TESTING, 0.0).unwrap()[0];
        assert_close(found.p_value.unwrap(), 0.21875, 1e-12);
        assert_close(found.p_mcnemar.unwrap(), 0.125, 1e-12);
        assert_eq!(found.p_adjusted, found.p_value);
        assert_eq!(found.interval, Some(tango(5, 1, 30)));
        assert_close(found.delta, -4.0 / 30.0, 1e-12);
    }

    /// No change in 10 documents limits the share of changes to z² / (10 + z²) = 0.2775, times a mean size of 2.
    #[test]
    fn equal_scores_of_mean_zero_have_an_interval() {
        let both = scores(&[2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0, -2.0]);
        let found = test_scores(&both, &[&both], TESTING, 0.0).unwrap()[0];
        assert_eq!(found.p_value, Some(1.0));
        assert_close(found.interval.unwrap().high, 2.0 * 0.277_532_799_862, 1e-6);
    }
}
