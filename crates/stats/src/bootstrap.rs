//! Paired bootstrap resampling of a base and its variants.
//!
//! Koehn (2004), *Statistical Significance Tests for Machine Translation Evaluation*, <https://aclanthology.org/W04-3250>. All variants
//! share their resamples, so that intervals can also hold for all of them at once.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::Error;
use crate::counted::{Counted, Variant};
pub use crate::interval::Interval;
use crate::testing::Testing;

/// Number of resamples for intervals, unless fewer are requested.
pub const RESAMPLES: usize = 10_000;

/// Number of resamples for an interval with an end close to the margin: [`Resampled::ends_near`].
pub const MAX_RESAMPLES: usize = 100_000;

/// Resamples computed together: few enough that their counts stay in the cache.
const CHUNK: usize = 128;

/// Maximum number of counts that a thread holds at once, unless a single resample has more.
const MAX_COUNTS: usize = 1 << 23;

/// A variant compared with its base, on the test set and on its resamples.
#[derive(Debug, Clone, PartialEq)]
pub struct Resampled {
    /// Score of the base system.
    pub base: f64,
    /// Score of the variant.
    pub variant: f64,
    /// Variant minus base in each resample; an index is one resample for all variants.
    pub deltas: Vec<f64>,
}

impl Resampled {
    /// Returns the difference on the test set, variant minus base.
    pub fn delta(&self) -> f64 {
        self.variant - self.base
    }

    pub(crate) fn new(base: f64, variant: f64, deltas: Vec<f64>) -> Result<Self, Error> {
        let is_finite = (variant - base).is_finite() && deltas.iter().all(|delta| delta.is_finite());
        if is_finite { Ok(Self { base, variant, deltas }) } else { Err(Error::not_finite()) }
    }

    /// Returns the two-sided p-value `min(1, 2 (1 + c) / (B + 1))`, where c is the smaller of two numbers of resamples: with a difference
    /// of at most 0, and of at least 0. `None` without resamples.
    ///
    /// 1 is added to both counts so that no p is 0 (Davison and Hinkley 1997, Equation 4.11).
    pub fn p_value(&self) -> Option<f64> {
        let not_above = self.deltas.iter().filter(|&&delta| delta <= 0.0).count();
        let not_below = self.deltas.iter().filter(|&&delta| delta >= 0.0).count();
        let p = 2.0 * (1 + not_above.min(not_below)) as f64 / (1 + self.deltas.len()) as f64;
        (!self.deltas.is_empty()).then_some(p.min(1.0))
    }

    /// Returns the p-value of Koehn (2004), as in compare-mt and Michel et al. (2019): `(1 + c) / (B + 1)`, where c counts the resamples
    /// without the observed sign, ties included; 1 if the observed difference is 0. `None` without resamples.
    ///
    /// It is one-sided, on the observed side: without an effect, 2α of all tests fall below a small α.
    pub fn p_koehn(&self) -> Option<f64> {
        let delta = self.delta();
        let contradicting =
            self.deltas.iter().filter(|&&resampled| resampled * delta.signum() <= 0.0).count();
        let p = (1 + contradicting) as f64 / (1 + self.deltas.len()) as f64;
        (!self.deltas.is_empty()).then_some(if delta == 0.0 { 1.0 } else { p })
    }

    /// Returns true if `limit` is within three Monte Carlo errors of an end of the interval: the share q of resamples below an end has the
    /// standard error √(q (1 - q) / B).
    pub(crate) fn ends_near(&self, limit: f64) -> bool {
        let resamples = self.deltas.len() as f64;
        let below = self.deltas.iter().filter(|&&delta| delta < limit).count() as f64 / resamples;
        let not_above = self.deltas.iter().filter(|&&delta| delta <= limit).count() as f64 / resamples;
        let is_near = |end: f64| {
            let error = 3.0 * (end * (1.0 - end) / resamples).sqrt();
            below - error <= end && end <= not_above + error
        };
        [0.025, 0.975].into_iter().any(is_near)
    }

    /// Returns the 95% percentile interval of the difference; `None` with fewer than [`MIN_FOR_INTERVAL`] resamples.
    pub fn interval(&self) -> Option<Interval> {
        let is_enough = self.deltas.len() >= MIN_FOR_INTERVAL;
        if is_enough { percentile_interval(&self.deltas) } else { None }
    }
}

/// Minimum number of resamples for a 95% interval: B order statistics divide the line into B + 1 pieces of equal probability, and a tail of
/// 2.5% is one piece of 40.
pub const MIN_FOR_INTERVAL: usize = 39;

/// Returns simultaneous 95% intervals of differences that share their resamples, valid for all at once in 95% of test sets. The half-width
/// is the 0.95 quantile of the maximum |δ* - δ| / s in a resample, times s, the standard deviation of δ* (Romano and Wolf 2005, *Exact and
/// Approximate Stepdown Methods for Multiple Hypothesis Testing*, Section 4). `None` with fewer than [`MIN_FOR_INTERVAL`] resamples.
pub(crate) fn simultaneous(family: &[Resampled]) -> Vec<Option<Interval>> {
    let resamples = family.first().map_or(0, |test| test.deltas.len());
    if resamples < MIN_FOR_INTERVAL {
        return vec![None; family.len()];
    }
    let errors: Vec<f64> = family.iter().map(|test| deviation(&test.deltas)).collect();
    let mut maxima = vec![0.0_f64; resamples];
    for (test, &error) in family.iter().zip(&errors).filter(|(_, error)| **error > 0.0) {
        let sizes = test.deltas.iter().map(|delta| ((delta - test.delta()) / error).abs());
        maxima.iter_mut().zip(sizes).for_each(|(maximum, size)| *maximum = maximum.max(size));
    }
    maxima.sort_unstable_by(f64::total_cmp);
    let reach = percentile(&maxima, 0.95);
    let ends = |(test, error): (&Resampled, f64)| Interval {
        low: test.delta() - reach * error,
        high: test.delta() + reach * error,
    };
    family.iter().zip(errors).map(|pair| Some(ends(pair))).collect()
}

/// Returns the standard deviation, with divisor n - 1.
fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Returns the percentiles 2.5 and 97.5 by linear interpolation between order statistics: definition 7 of Hyndman and Fan (1996), the
/// default of NumPy. `None` without values.
pub fn percentile_interval(values: &[f64]) -> Option<Interval> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(Interval { low: percentile(&sorted, 0.025), high: percentile(&sorted, 0.975) })
}

/// Returns the percentile `share` (0 to 1) of values in ascending order.
pub(crate) fn percentile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = position as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * position.fract()
}

/// Compares variants with their base by paired bootstrap, with resamples of the size of the test set.
///
/// Assumes that blocks of segments are drawn independently from one population.
///
/// Each resample has a separate random stream, so equal seeds give equal results on any number of threads, and a variant's resamples do not
/// depend on the other variants.
pub(crate) fn paired_bootstrap(
    base: &Counted,
    variants: &[Variant],
    testing: Testing,
) -> Result<Vec<Resampled>, Error> {
    let drawn = |stream| draw_blocks(base.len(), testing, stream);
    let scores = weighted(base, variants, testing.resamples, drawn);
    let score = base.score();
    let resampled =
        |(place, variant): (usize, &Variant)| Resampled::new(score, variant.score, scores.deltas(place));
    variants.iter().enumerate().map(resampled).collect()
}

/// Scores of a base and its variants on many weightings of the segments.
pub(crate) struct Scores {
    pub(crate) base: Vec<f64>,
    /// One score per weighting, for each variant.
    pub(crate) variants: Vec<Vec<f64>>,
}

pub(crate) fn differences(variant: &[f64], base: &[f64]) -> Vec<f64> {
    variant.iter().zip(base).map(|(variant, base)| variant - base).collect()
}

impl Scores {
    /// Returns variant minus base under each weighting.
    pub(crate) fn deltas(&self, variant: usize) -> Vec<f64> {
        differences(&self.variants[variant], &self.base)
    }
}

/// Scores the base and its variants with each segment counted as often as `drawn` yields it.
///
/// Multiplies a matrix of counts, segments x weightings, with the statistics of the base, and for each variant with its changes alone.
///
/// - `drawn`: yields the segments of the weighting with this index, each as often as it counts
pub(crate) fn weighted<I: IntoIterator<Item = usize>>(
    base: &Counted,
    variants: &[Variant],
    weightings: usize,
    drawn: impl Fn(u64) -> I + Sync,
) -> Scores {
    let together = (MAX_COUNTS / base.len().max(1)).clamp(1, CHUNK);
    let starts: Vec<usize> = (0..weightings).step_by(together).collect();
    let chunks: Vec<Scores> = starts
        .into_par_iter()
        .map(|start| {
            let width = together.min(weightings - start);
            let mut counts = vec![0.0; base.len() * width]; // [segment, weighting]
            for column in 0..width {
                for segment in drawn((start + column) as u64) {
                    counts[segment * width + column] += 1.0;
                }
            }
            Chunk { counts, width }.scores(base, variants)
        })
        .collect();
    let mut all = Scores { base: Vec::new(), variants: vec![Vec::with_capacity(weightings); variants.len()] };
    for chunk in chunks {
        all.base.extend(chunk.base);
        for (all, of_chunk) in all.variants.iter_mut().zip(chunk.variants) {
            all.extend(of_chunk);
        }
    }
    all
}

struct Chunk {
    /// `[segment, weighting]`
    counts: Vec<f64>,
    width: usize,
}

impl Chunk {
    fn scores(&self, base: &Counted, variants: &[Variant]) -> Scores {
        let mut base_sums = vec![0.0; base.width() * self.width]; // [number, weighting]
        for (segment, numbers) in base.segments().enumerate() {
            self.add(&mut base_sums, segment, numbers);
        }
        let of_variant = |variant: &Variant| {
            let mut sums = base_sums.clone();
            let differences = variant.differences.chunks_exact(base.width());
            for (&segment, difference) in variant.changed.iter().zip(differences) {
                self.add(&mut sums, segment, difference);
            }
            self.score(base, &sums)
        };
        Scores { base: self.score(base, &base_sums), variants: variants.iter().map(of_variant).collect() }
    }

    /// Adds a segment's statistics to the sums of all weightings, multiplied by its count in each.
    fn add(&self, sums: &mut [f64], segment: usize, counts: &[f64]) {
        let times = &self.counts[segment * self.width..][..self.width];
        for (sums, &count) in sums.chunks_exact_mut(self.width).zip(counts) {
            if count != 0.0 {
                sums.iter_mut().zip(times).for_each(|(sum, times)| *sum += count * times);
            }
        }
    }

    fn score(&self, base: &Counted, sums: &[f64]) -> Vec<f64> {
        let mut of_one = vec![0.0; base.width()];
        let of_weighting = |weighting: usize| {
            let each = sums.iter().skip(weighting).step_by(self.width);
            of_one.iter_mut().zip(each).for_each(|(one, sum)| *one = *sum);
            base.score_of(&of_one)
        };
        (0..self.width).map(of_weighting).collect()
    }
}

/// Draws the segments of one resample with replacement, as many as the test set has.
pub(crate) fn draw(segments: usize, seed: u64, stream: u64) -> impl Iterator<Item = usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(stream);
    let segments = u32::try_from(segments).expect("a test set has fewer than 2^32 segments");
    (0..segments).map(move |_| random.random_range(0..segments) as usize)
}

/// Draws one resample by whole blocks, as many as the test set has. The last block may be shorter, so the number of segments varies.
pub(crate) fn draw_blocks(segments: usize, testing: Testing, stream: u64) -> impl Iterator<Item = usize> {
    let block = testing.block;
    let of_block = move |place: usize| place * block..segments.min((place + 1) * block);
    draw(segments.div_ceil(block), testing.seed, stream).flat_map(of_block)
}

#[cfg(test)]
pub(crate) mod tests;
