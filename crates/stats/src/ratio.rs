//! Shares that are sums over sums, such as hits over trials: each segment has a part of both.
//!
//! The ratio estimator of Cochran (1977), *Sampling Techniques*, Chapter 6: Σ numerator / Σ denominator, not the mean of the
//! segments' shares. Segments are what is drawn, since what happens within one hangs together.

use crate::bootstrap::{Change, Interval, LEAST_FOR_INTERVAL, paired_bootstrap, percentile_interval};
use crate::{Error, SegmentStatistics};

/// What one segment adds to a share.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RatioStatistics {
    /// Such as the number of hits.
    pub numerator: f64,
    /// Such as the number of trials.
    pub denominator: f64,
}

impl SegmentStatistics for RatioStatistics {
    const COUNTS: usize = 2;
    type Counts = [f64; 2];

    fn counts(&self) -> [f64; 2] {
        [self.numerator, self.denominator]
    }

    /// 0 without a trial.
    fn score(sums: &[f64]) -> f64 {
        if sums[1] == 0.0 { 0.0 } else { sums[0] / sums[1] }
    }
}

/// A share on the test set and on its resamples.
#[derive(Debug, Clone, PartialEq)]
pub struct ResampledShare {
    /// On the test set.
    pub share: f64,
    /// In each resample.
    pub resampled: Vec<f64>,
    /// In each resample, minus that of the baseline.
    pub margins: Vec<f64>,
}

impl ResampledShare {
    /// The 95 % percentile interval of the share; absent with fewer than [`LEAST_FOR_INTERVAL`] resamples.
    pub fn interval(&self) -> Option<Interval> {
        interval(&self.resampled)
    }

    /// The same of its lead over the baseline.
    pub fn margin_interval(&self) -> Option<Interval> {
        interval(&self.margins)
    }
}

fn interval(values: &[f64]) -> Option<Interval> {
    let is_enough = values.len() >= LEAST_FOR_INTERVAL;
    if is_enough { percentile_interval(values) } else { None }
}

/// The shares of several candidates on the same resamples of the segments, by themselves and beside a baseline.
///
/// - `baseline`: of each segment; numerators of 0 where there is nothing to compare with
/// - `candidates`: of each, the segments' statistics, as many as of the baseline
///
/// # Errors
/// As for [`paired_bootstrap`].
///
/// # Panics
/// If a candidate has other segments than the baseline.
pub fn resampled_shares(
    baseline: &[RatioStatistics],
    candidates: &[Vec<RatioStatistics>],
    resamples: usize,
    seed: u64,
) -> Result<Vec<ResampledShare>, Error> {
    let none: Vec<RatioStatistics> =
        baseline.iter().map(|segment| RatioStatistics { numerator: 0.0, ..*segment }).collect();
    let changes = |variant: &[RatioStatistics]| -> Vec<Change<RatioStatistics>> {
        crate::bootstrap::changes(baseline, variant)
    };
    // First what never hits: its lag behind the baseline is what the baseline itself comes to.
    let variants: Vec<_> =
        std::iter::once(changes(&none)).chain(candidates.iter().map(|own| changes(own))).collect();
    let mut found = paired_bootstrap(baseline, &variants, resamples, seed)?.into_iter();
    let lag = found.next().map_or(Vec::new(), |none| none.deltas);
    let share = |found: crate::bootstrap::Resampled| ResampledShare {
        share: found.variant,
        resampled: found.deltas.iter().zip(&lag).map(|(lead, lag)| lead - lag).collect(),
        margins: found.deltas,
    };
    Ok(found.map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score;

    fn segments(counts: &[(f64, f64)]) -> Vec<RatioStatistics> {
        counts.iter().map(|&(numerator, denominator)| RatioStatistics { numerator, denominator }).collect()
    }

    /// 1 of 1 and 1 of 3: 2 of 4, where the mean of the shares would be 2/3.
    #[test]
    fn a_share_is_a_sum_over_a_sum() {
        assert_eq!(score(&segments(&[(1.0, 1.0), (1.0, 3.0), (0.0, 0.0)])), 0.5);
        assert_eq!(score(&segments(&[(0.0, 0.0)])), 0.0);
    }

    /// One segment with two trials, one with six: a resample is both, twice the first or twice the second. The baseline hits
    /// 1 and 3 times: 1/2 in all of them. The candidate hits 2 and 3 times: 5/8, 1, 1/2.
    #[test]
    fn each_resample_has_the_share_of_its_segments() {
        let baseline = segments(&[(1.0, 2.0), (3.0, 6.0)]);
        let candidate = segments(&[(2.0, 2.0), (3.0, 6.0)]);
        let found = resampled_shares(&baseline, &[candidate, baseline.clone()], 200, 3).unwrap();
        assert_eq!((found[0].share, found[1].share), (0.625, 0.5));
        for (share, margin) in found[0].resampled.iter().zip(&found[0].margins) {
            assert!([0.625, 1.0, 0.5].iter().any(|known| (share - known).abs() < 1e-12), "{share}");
            assert!((share - margin - 0.5).abs() < 1e-12, "{share} {margin}");
        }
        assert!(found[1].margins.iter().all(|&margin| margin == 0.0));
        let interval = found[0].interval().unwrap();
        assert!((interval.low - 0.5).abs() < 1e-12 && (interval.high - 1.0).abs() < 1e-12);
        assert_eq!(found[0].margin_interval().map(|interval| interval.low), Some(0.0));
    }

    /// Of 400 segments with one trial each, half of them hits, a share has the deviation sqrt(0.25 / 400) = 0.025.
    #[test]
    fn the_interval_is_as_wide_as_chance_makes_it() {
        let hits: Vec<(f64, f64)> = (0..400).map(|place| (f64::from(place % 2), 1.0)).collect();
        let none = segments(&[(0.0, 1.0); 400]);
        let found = resampled_shares(&none, &[segments(&hits)], 4_000, 1).unwrap();
        let interval = found[0].interval().unwrap();
        for (end, expected) in [(interval.low, 0.5 - 1.96 * 0.025), (interval.high, 0.5 + 1.96 * 0.025)] {
            // steps of 1/400, and the error of a percentile of 4,000 resamples: some 0.001
            assert!((end - expected).abs() < 0.006, "{end} {expected}");
        }
    }

    #[test]
    fn few_resamples_make_no_interval_and_none_leave_the_share() {
        let own = segments(&[(1.0, 2.0)]);
        let found = resampled_shares(&own, std::slice::from_ref(&own), 0, 1).unwrap();
        assert_eq!((found[0].share, found[0].interval()), (0.5, None));
    }
}
