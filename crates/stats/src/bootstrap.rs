//! Paired bootstrap resampling.
//!
//! Koehn (2004), *Statistical Significance Tests for Machine Translation Evaluation*,
//! <https://aclanthology.org/W04-3250>.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::{Comparison, Error, SegmentStatistics, sum};

/// Compares two systems on the same segments; each resample is as large as the test set.
///
/// p = (1 + c) / (`resamples` + 1), where c counts the resamples in which the difference has not
/// the observed sign (ties included); p is 1 if the observed difference is 0. It is one-sided, on the
/// side that was observed: without any effect it falls below a small α in 2α of all tests. The interval takes
/// its percentiles by linear interpolation between order statistics, definition 7 of Hyndman and
/// Fan (1996) and the default of NumPy.
///
/// Assumes that segments are drawn independently from one population.
///
/// Resample i has its own random stream, so equal seeds give equal results on any number of
/// threads, and every variant of a base meets the same resamples.
///
/// # Errors
/// [`Error::Empty`] without segments, [`Error::NotFinite`] if a score is NaN or infinite.
///
/// # Panics
/// If `base` and `variant` differ in length.
pub fn paired_bootstrap<S: SegmentStatistics>(
    base: &[S],
    variant: &[S],
    resamples: usize,
    seed: u64,
) -> Result<Comparison, Error> {
    assert_eq!(base.len(), variant.len(), "paired systems must cover the same segments");
    if base.is_empty() {
        return Err(Error::Empty);
    }
    let scores = (sum(base).score(), sum(variant).score());
    let delta = scores.1 - scores.0;
    let deltas = resampled_deltas(base, variant, resamples, seed);
    if !delta.is_finite() || deltas.iter().any(|resampled| !resampled.is_finite()) {
        return Err(Error::NotFinite);
    }
    let tested = resamples > 0;
    Ok(Comparison {
        base: scores.0,
        variant: scores.1,
        delta,
        p_value: tested.then(|| p_value(delta, &deltas)),
        interval: tested.then(|| (percentile(&deltas, 0.025), percentile(&deltas, 0.975))),
        p_unpaired_t: None,
        p_mcnemar: None,
    })
}

/// The difference in each resample, in ascending order.
fn resampled_deltas<S: SegmentStatistics>(
    base: &[S],
    variant: &[S],
    resamples: usize,
    seed: u64,
) -> Vec<f64> {
    let mut deltas: Vec<f64> = (0..resamples as u64)
        .into_par_iter()
        .map(|stream| {
            let (mut base_sum, mut variant_sum) = (S::default(), S::default());
            for segment in draw(base.len(), seed, stream) {
                base_sum += base[segment];
                variant_sum += variant[segment];
            }
            variant_sum.score() - base_sum.score()
        })
        .collect();
    deltas.sort_unstable_by(f64::total_cmp);
    deltas
}

/// The segments of one resample: as many as there are, with replacement.
fn draw(segments: usize, seed: u64, stream: u64) -> impl Iterator<Item = usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(stream);
    let segments = u32::try_from(segments).expect("a test set has fewer than 2^32 segments");
    (0..segments).map(move |_| random.random_range(0..segments) as usize)
}

/// Koehn (2004), with 1 added to both counts so that no p is 0 (Davison and Hinkley
/// 1997, Equation 4.11).
fn p_value(delta: f64, deltas: &[f64]) -> f64 {
    let agrees = |resampled: &&f64| **resampled * delta.signum() > 0.0;
    if delta == 0.0 {
        return 1.0;
    }
    let contradicting = deltas.len() - deltas.iter().filter(agrees).count();
    (1 + contradicting) as f64 / (1 + deltas.len()) as f64
}

/// Percentile `share` (0 to 1) of values in ascending order.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = position as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::AddAssign;

    /// The mean of a number per segment.
    #[derive(Debug, Clone, Copy, Default)]
    struct Mean {
        sum: f64,
        segments: f64,
    }

    impl AddAssign for Mean {
        fn add_assign(&mut self, other: Self) {
            self.sum += other.sum;
            self.segments += other.segments;
        }
    }

    impl SegmentStatistics for Mean {
        fn score(&self) -> f64 {
            self.sum / self.segments
        }
    }

    fn means(values: &[f64]) -> Vec<Mean> {
        values.iter().map(|&sum| Mean { sum, segments: 1.0 }).collect()
    }

    fn compare(base: &[f64], variant: &[f64], resamples: usize, seed: u64) -> Result<Comparison, Error> {
        paired_bootstrap(&means(base), &means(variant), resamples, seed)
    }

    /// A resample of two segments holds the better one never, once or twice with probability 1/4,
    /// 1/2 and 1/4, so the difference is 0 (a tie), 1/2 or 1. p estimates 1/4, with a standard
    /// error of sqrt(1/4 * 3/4 / 10,000) = 0.0043; allowed are four. Percentiles 2.5 and 97.5 lie
    /// well inside the outer quarters.
    #[test]
    fn two_segments_give_the_binomial_shares() {
        let compared = compare(&[0.0, 0.0], &[1.0, 0.0], 10_000, 1).unwrap();
        let p = compared.p_value.unwrap();
        assert!((p - 0.25).abs() < 0.0173, "p = {p}");
        assert_eq!((compared.base, compared.variant, compared.delta), (0.0, 0.5, 0.5));
        assert_eq!(compared.interval, Some((0.0, 1.0)));
    }

    /// Every resample of one segment is the test set: none contradicts, p = (1 + 0) / (99 + 1).
    #[test]
    fn a_worse_variant_is_as_significant_as_a_better_one() {
        for (variant, delta) in [(5.0, 3.0), (-1.0, -3.0)] {
            let compared = compare(&[2.0], &[variant], 99, 1).unwrap();
            assert_eq!(compared.delta, delta);
            assert_eq!(compared.p_value, Some(0.01));
            assert_eq!(compared.interval, Some((delta, delta)));
        }
    }

    #[test]
    fn no_difference_has_p_one() {
        let same = compare(&[1.0, 2.0, 4.0], &[1.0, 2.0, 4.0], 50, 1).unwrap();
        assert_eq!((same.p_value, same.interval), (Some(1.0), Some((0.0, 0.0))));
        let balanced = compare(&[1.0, 2.0], &[2.0, 1.0], 50, 1).unwrap();
        assert_eq!((balanced.delta, balanced.p_value), (0.0, Some(1.0)));
    }

    #[test]
    fn without_resamples_only_the_scores_are_there() {
        let compared = compare(&[1.0, 2.0], &[2.0, 3.0], 0, 1).unwrap();
        assert_eq!((compared.base, compared.variant, compared.delta), (1.5, 2.5, 1.0));
        assert_eq!((compared.p_value, compared.interval), (None, None));
    }

    #[test]
    fn what_cannot_be_compared_is_an_error() {
        assert_eq!(compare(&[], &[], 10, 1), Err(Error::Empty));
        assert_eq!(compare(&[1.0], &[f64::NAN], 10, 1), Err(Error::NotFinite));
    }

    #[test]
    #[should_panic(expected = "paired systems must cover the same segments")]
    fn unpaired_systems_panic() {
        let _ = compare(&[1.0, 2.0], &[1.0], 10, 1);
    }

    #[test]
    fn result_depends_on_the_seed_but_not_on_the_number_of_threads() {
        let (base, variant): (Vec<f64>, Vec<f64>) =
            (0..50).map(|i| (f64::from(i * 7 % 11), f64::from(i * 5 % 13))).unzip();
        let with_threads = |threads, seed| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| compare(&base, &variant, 200, seed).unwrap())
        };
        assert_eq!(with_threads(1, 7), with_threads(3, 7));
        assert_ne!(with_threads(1, 7), with_threads(1, 8));
    }

    #[test]
    fn zero_is_a_seed_like_any_other() {
        let draws = |seed| draw(1000, seed, 0).collect::<Vec<_>>();
        assert_eq!(draws(0), draws(0));
        assert_ne!(draws(0), draws(1));
    }

    /// A stream that ended where the next begins would correlate the resamples.
    #[test]
    fn resamples_draw_different_segments_of_the_whole_test_set() {
        let draws = |stream| draw(5, 3, stream).collect::<Vec<_>>();
        assert_ne!(draws(0), draws(1));
        let mut drawn: Vec<usize> = (0..20).flat_map(draws).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [0, 1, 2, 3, 4]);
    }

    /// Position 0.25 * 2 = 0.5 is halfway from 1 to 2; 0.975 * 2 = 1.95 is 95 % from 2 to 4.
    #[test]
    fn percentiles_interpolate() {
        let sorted = [1.0, 2.0, 4.0];
        assert_eq!(percentile(&sorted, 0.25), 1.5);
        assert!((percentile(&sorted, 0.975) - 3.9).abs() < 1e-12);
        assert_eq!((percentile(&sorted, 0.0), percentile(&sorted, 1.0)), (1.0, 4.0));
        assert_eq!(percentile(&[3.0], 0.975), 3.0);
    }
}
