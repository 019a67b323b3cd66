//! Shares that are sums over sums, such as hits over trials, with a part of both in each segment.
//!
//! The ratio estimator of Cochran (1977), *Sampling Techniques*, Chapter 6: Σ numerator / Σ denominator, not the mean of the segments'
//! shares. Segments are drawn as a whole because their trials are not independent.

use crate::Error;
use crate::bootstrap::{MIN_FOR_INTERVAL, Scores, draw, percentile_interval, weighted};
use crate::counted::{Counted, Variant};
use crate::interval::Interval;

/// Contribution of one segment to a share.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RatioStatistics {
    /// For example, number of hits.
    pub numerator: f64,
    /// For example, number of trials.
    pub denominator: f64,
}

/// Returns the statistics; the score is NaN without a trial.
fn counted(segments: &[RatioStatistics]) -> Counted {
    let numbers = segments.iter().map(|own| [own.numerator, own.denominator]);
    Counted::new(numbers, |sums| sums[0] / sums[1])
}

/// A share on the test set and on its resamples. An index is one resample in all lists; a resample without a trial has no share.
#[derive(Debug, Clone, PartialEq)]
pub struct ResampledShare {
    /// Share on the test set; 0 without a trial.
    pub share: f64,
    /// Share in each resample.
    pub resampled: Vec<Option<f64>>,
    /// Share minus the baseline's share in each resample.
    pub margins: Vec<Option<f64>>,
}

impl ResampledShare {
    /// Returns the 95% percentile interval of the share over the resamples that have one; `None` if these are fewer than
    /// [`MIN_FOR_INTERVAL`] or less than half.
    pub fn interval(&self) -> Option<Interval> {
        interval(&self.resampled)
    }

    /// Returns the interval of the lead over the baseline.
    pub fn margin_interval(&self) -> Option<Interval> {
        interval(&self.margins)
    }
}

fn interval(values: &[Option<f64>]) -> Option<Interval> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let is_enough = known.len() >= MIN_FOR_INTERVAL && 2 * known.len() >= values.len();
    if is_enough { percentile_interval(&known) } else { None }
}

/// Computes the shares of several candidates on shared resamples of the segments, and their lead over a baseline.
///
/// - `baseline`: statistics of each segment, with the trials of the candidates; without trials if there is no baseline
/// - `candidates`: statistics of each segment for each candidate
///
/// # Errors
/// If there are no segments, or a number is NaN or infinite.
///
/// # Panics
/// If a candidate has different segments from the baseline.
pub fn resampled_shares(
    baseline: &[RatioStatistics],
    candidates: &[Vec<RatioStatistics>],
    resamples: usize,
    seed: u64,
) -> Result<Vec<ResampledShare>, Error> {
    if baseline.is_empty() {
        return Err(Error::empty());
    }
    let is_finite =
        |segment: &RatioStatistics| segment.numerator.is_finite() && segment.denominator.is_finite();
    if !candidates.iter().flatten().chain(baseline).all(is_finite) {
        return Err(Error::not_finite());
    }
    let segments = counted(baseline);
    let variants: Vec<Variant> = candidates.iter().map(|own| segments.variant(&counted(own))).collect();
    let drawn = |stream| draw(baseline.len(), seed, stream);
    let Scores { base, variants: resampled } = weighted(&segments, &variants, resamples, drawn);
    let known = |share: f64| Some(share).filter(|share| share.is_finite());
    let share = |(own, resampled): (&Variant, Vec<f64>)| ResampledShare {
        share: known(own.score).unwrap_or_default(),
        margins: resampled.iter().zip(&base).map(|(own, base)| known(own - base)).collect(),
        resampled: resampled.into_iter().map(known).collect(),
    };
    Ok(variants.iter().zip(resampled).map(share).collect())
}

/// Returns for each candidate how often no other has a larger share, as a fraction of the resamples in which any has a share; `None` if no
/// resample has one.
pub fn best(shares: &[ResampledShare]) -> Vec<Option<f64>> {
    let resamples = shares.first().map_or(0, |share| share.resampled.len());
    let greatest =
        |resample: usize| shares.iter().filter_map(|share| share.resampled[resample]).max_by(f64::total_cmp);
    let greatest: Vec<Option<f64>> = (0..resamples).map(greatest).collect();
    let known = greatest.iter().flatten().count();
    let of_candidate = |share: &ResampledShare| {
        let pairs = share.resampled.iter().zip(&greatest);
        let wins = pairs.filter(|(own, greatest)| own.is_some() && own == greatest).count();
        (known > 0).then(|| wins as f64 / known as f64)
    };
    shares.iter().map(of_candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(counts: &[(f64, f64)]) -> Vec<RatioStatistics> {
        counts.iter().map(|&(numerator, denominator)| RatioStatistics { numerator, denominator }).collect()
    }

    /// Segments with two and six trials: a resample is both, twice the first or twice the second. The baseline hits 1 and 3 times: always
    /// 1/2. The candidate hits 2 and 3 times: 5/8, 1, 1/2.
    #[test]
    fn each_resample_has_the_share_of_its_segments() {
        let baseline = segments(&[(1.0, 2.0), (3.0, 6.0)]);
        let candidate = segments(&[(2.0, 2.0), (3.0, 6.0)]);
        let found = resampled_shares(&baseline, &[candidate, baseline.clone()], 200, 3).unwrap();
        assert_eq!((found[0].share, found[1].share), (0.625, 0.5));
        for (share, margin) in found[0].resampled.iter().flatten().zip(found[0].margins.iter().flatten()) {
            assert!([0.625, 1.0, 0.5].iter().any(|known| (share - known).abs() < 1e-12), "{share}");
            assert!((share - margin - 0.5).abs() < 1e-12, "{share} {margin}");
        }
        assert!(found[1].margins.iter().all(|&margin| margin == Some(0.0)));
        let interval = found[0].interval().unwrap();
        assert!((interval.low - 0.5).abs() < 1e-12 && (interval.high - 1.0).abs() < 1e-12);
        assert_eq!(found[0].margin_interval().map(|interval| interval.low), Some(0.0));
    }

    /// 400 segments with one trial each, half of them hits: the standard deviation of the share is sqrt(0.25 / 400) = 0.025.
    #[test]
    fn the_interval_has_the_binomial_width() {
        let hits: Vec<(f64, f64)> = (0..400).map(|place| (f64::from(place % 2), 1.0)).collect();
        let none = segments(&[(0.0, 1.0); 400]);
        let interval = resampled_shares(&none, &[segments(&hits)], 4_000, 1).unwrap()[0].interval().unwrap();
        for (end, expected) in [(interval.low, 0.5 - 1.96 * 0.025), (interval.high, 0.5 + 1.96 * 0.025)] {
            // steps of 1/400; percentiles of 4,000 resamples have an error of about 0.001
            assert!((end - expected).abs() < 0.006, "{end} {expected}");
        }
    }

    /// One segment has two trials, both hits, the others none: a resample has a share of 1 or none, never 0. Among 2 segments (1/2)² of the
    /// resamples miss it, among 10 (9/10)^10.
    #[test]
    fn a_resample_without_a_trial_has_no_share() {
        let found = |others: usize, trials: f64| {
            let own = segments(&[vec![(trials, trials)], vec![(0.0, 0.0); others]].concat());
            let none = vec![RatioStatistics::default(); own.len()];
            resampled_shares(&none, &[own], 2_000, 5).unwrap().remove(0)
        };
        let one = Some(Interval { low: 1.0, high: 1.0 });
        for (others, missing) in [(1, 0.25), (9, 0.9_f64.powi(10))] {
            let found = found(others, 2.0);
            assert!(found.resampled.iter().all(|share| share.is_none_or(|share| share == 1.0)));
            let empty = found.resampled.iter().filter(|share| share.is_none()).count() as f64 / 2_000.0;
            // a standard deviation of at most sqrt(1/4 / 2,000) = 0.011
            assert!((empty - missing).abs() < 0.05, "{empty} of {missing}");
            assert_eq!((found.interval(), found.share), (one, 1.0));
            assert_eq!(found.margin_interval(), None, "a baseline without a trial is no baseline");
        }
        let nothing = found(9, 0.0);
        assert_eq!((nothing.interval(), nothing.share), (None, 0.0));
    }

    #[test]
    fn too_few_resamples_with_a_trial_give_no_interval_and_nan_is_refused() {
        let share = |known: usize, empty: usize| {
            let resampled = [vec![Some(0.5); known], vec![None; empty]].concat();
            ResampledShare { share: 0.5, margins: Vec::new(), resampled }.interval().is_some()
        };
        assert!(share(50, 50) && !share(50, 51) && !share(38, 0) && share(39, 0));
        let own = segments(&[(f64::NAN, 1.0), (1.0, 1.0)]);
        let refused = resampled_shares(&segments(&[(0.0, 1.0); 2]), &[own], 10, 1);
        assert_eq!(refused, Err(Error::not_finite()));
        assert_eq!(resampled_shares(&[], &[Vec::new()], 10, 1), Err(Error::empty()));
    }
}
