//! Approximate randomisation: two systems swap their statistics on each segment with probability 1/2.
//!
//! Fisher (1935), *The Design of Experiments*; Noreen (1989), *Computer-Intensive Methods for Testing Hypotheses*. Without an effect, both
//! assignments of a segment's statistics are equally likely, so the observed difference is one draw from the differences under swaps. All
//! variants of a base share their swaps, so that they can also be tested as a family: Westfall and Young (1993), *Resampling-Based Multiple
//! Testing*, Algorithm 2.8 (step-down max-T).
//!
//! Sums under many swaps are computed eight segments at a time, from a table of their 256 possible sums ("method of four Russians").

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{AddAssign, Range};

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::counted::{Counted, Variant};
use crate::testing::{ALPHA, Testing};

/// Number of swaps, unless fewer are requested.
pub const SWAPS: usize = 99_999;

/// Number of swaps for p-values that [`SWAPS`] leave within three Monte Carlo errors of [`ALPHA`].
pub const MAX_SWAPS: usize = 999_999;

/// Up to this many changed segments, all 2ⁿ swaps are enumerated and the p-value is exact.
const MAX_EXACT: usize = 16;

/// Number of swaps computed together, small enough for their sums to stay in the cache.
const TOGETHER: usize = 2048;

/// Tolerance for rounding errors of a difference, as a share of the scores.
pub(crate) const ROUNDING: f64 = 1e-10;

/// Returns the smallest p-value that this many swaps can give, 1 / (B + 1).
pub fn smallest_p_value(swaps: usize) -> f64 {
    1.0 / (swaps as f64 + 1.0)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Swapped {
    /// Two-sided, 0 to 1: the share of all swaps with at least the observed difference if at most [`MAX_EXACT`] segments change, otherwise
    /// (1 + number of such swaps) / (B + 1).
    pub(crate) p_value: f64,
    /// Adjusted to control the chance of any false alarm in the family; at least `p_value`.
    pub(crate) p_adjusted: f64,
}

/// Tests each variant separately, and all as one family; `None` without swaps.
///
/// Each swap has a separate random stream, so equal seeds give equal results on any number of threads. Assumes that blocks of segments are
/// independent, and exchangeable between the systems without an effect.
pub(crate) fn swap_tests(base: &Counted, variants: &[Variant], testing: Testing) -> Option<Vec<Swapped>> {
    if testing.resamples == 0 {
        return None;
    }
    let rows: Vec<Pair> = variants.iter().map(|variant| Pair::new(base, variant, testing.block)).collect();
    let draws = Draws { units: base.len().div_ceil(testing.block), seed: testing.seed };
    let counts = family_counts(&rows, draws, testing.resamples);
    let own = |(row, counts): (&Pair, &Counts)| row.p_value(counts.own, draws, testing.resamples);
    let own: Vec<f64> = rows.iter().zip(&counts.of_rows).map(own).collect();
    let mut tested: Vec<Swapped> =
        own.into_iter().map(|p_value| Swapped { p_value, p_adjusted: p_value }).collect();
    let mut floor = 0.0_f64;
    for &place in counts.ascending.iter().rev() {
        // a single variant keeps its p-value, which may be from more swaps
        let family =
            if rows.len() > 1 { share(counts.of_rows[place].family, testing.resamples) } else { 0.0 };
        floor = floor.max(family).max(tested[place].p_value);
        tested[place].p_adjusted = floor;
    }
    Some(tested)
}

/// Mean difference of several pairs under swaps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SwappedMean {
    /// Two-sided, as for one pair.
    pub(crate) p_value: f64,
    /// Mean square of the difference under swaps.
    pub(crate) variance: f64,
}

/// Tests the mean difference of pairs of systems on common segments, a base and a variant each, where a segment is swapped in all pairs
/// together; `None` without swaps. If at most [`MAX_EXACT`] units change in any pair, all swaps are enumerated.
pub(crate) fn swapped_mean(pairs: &[(Counted, Counted)], testing: Testing) -> Option<SwappedMean> {
    let units = pairs.first().filter(|_| testing.resamples > 0)?.0.len().div_ceil(testing.block);
    let variants: Vec<Variant> = pairs.iter().map(|(base, variant)| base.variant(variant)).collect();
    let both = pairs.iter().zip(&variants);
    let rows: Vec<Pair> = both.map(|((base, _), variant)| Pair::new(base, variant, testing.block)).collect();
    let (mut observed, mut rounding) = (0.0, 0.0);
    for row in &rows {
        let [base, variant] = [&row.base_sums, &row.variant_sums].map(|sums| row.base.score_of(sums));
        observed += variant - base;
        rounding += ROUNDING * base.abs().max(variant.abs());
    }
    // returns the number of swaps that reach the observed sum of differences, and the sum of squares over all swaps
    let counted = |moves: &[Vec<Move>], bits: &Bits| {
        let mut sums = vec![0.0; bits.width];
        for (row, moves) in rows.iter().zip(moves) {
            sums.iter_mut().zip(row.signed_of(moves, bits)).for_each(|(sum, one)| *sum += one);
        }
        let is_reached = |sum: &&f64| sum.abs() >= f64::abs(observed) - rounding;
        (sums.iter().filter(is_reached).count(), sums.iter().map(|sum| sum * sum).sum::<f64>())
    };
    let of_mean = |p_value, squares, swaps: usize| {
        let pairs = rows.len() as f64;
        Some(SwappedMean { p_value, variance: squares / swaps as f64 / (pairs * pairs) })
    };
    let changed: BTreeSet<usize> = rows.iter().flat_map(|row| &row.moves).map(|own| own.unit).collect();
    let moves: Vec<Vec<Move>> = rows.iter().map(|row| row.moves.clone()).collect();
    if changed.len() <= MAX_EXACT {
        let places: BTreeMap<usize, usize> = changed.into_iter().zip(0..).collect();
        let together = |own: &Move| Move { unit: places[&own.unit], ..*own };
        let moves: Vec<Vec<Move>> = moves.iter().map(|moves| moves.iter().map(together).collect()).collect();
        let all = Bits::all(places.len());
        let (reached, squares) = counted(&moves, &all);
        return of_mean(reached as f64 / all.width as f64, squares, all.width);
    }
    let draws = Draws { units, seed: testing.seed };
    let of_draws = |swaps: Range<usize>| -> (usize, f64) {
        let starts: Vec<usize> = swaps.clone().step_by(TOGETHER).collect();
        let count = |start| counted(&moves, &draws.bits(start..swaps.end.min(start + TOGETHER)));
        let found: Vec<(usize, f64)> = starts.into_par_iter().map(count).collect();
        (found.iter().map(|own| own.0).sum(), found.iter().map(|own| own.1).sum())
    };
    let (reached, squares) = of_draws(0..testing.resamples);
    let p_value = share(reached, testing.resamples);
    if !needs_more(p_value, testing.resamples) {
        return of_mean(p_value, squares, testing.resamples);
    }
    let (more, more_squares) = of_draws(testing.resamples..MAX_SWAPS);
    of_mean(share(reached + more, MAX_SWAPS), squares + more_squares, MAX_SWAPS)
}

/// Returns true if p from [`SWAPS`] swaps is within three Monte Carlo errors of [`ALPHA`].
fn needs_more(p: f64, swaps: usize) -> bool {
    let error = (p * (1.0 - p) / swaps as f64).sqrt();
    (SWAPS..MAX_SWAPS).contains(&swaps) && (p - ALPHA).abs() < 3.0 * error
}

/// Returns the absolute differences of a variant under this many random swaps, in ascending order.
pub(crate) fn swapped_sizes(base: &Counted, variant: &Variant, swaps: usize, testing: Testing) -> Vec<f64> {
    let draws = Draws { units: base.len().div_ceil(testing.block), seed: testing.seed };
    let mut sizes = Pair::new(base, variant, testing.block).differences(&draws.bits(0..swaps));
    sizes.sort_unstable_by(f64::total_cmp);
    sizes
}

fn share(reached: usize, swaps: usize) -> f64 {
    (1 + reached) as f64 / (1 + swaps) as f64
}

/// Numbers of swaps that reach the observed value.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    own: usize,
    /// Swaps in which this variant or one with a smaller t reaches this variant's t.
    family: usize,
}

struct FamilyCounts {
    of_rows: Vec<Counts>,
    /// Indices of the rows, smallest t first.
    ascending: Vec<usize>,
}

/// Counts the swaps that reach the observed differences: alone and, in terms of t = difference / standard error under swaps, in the family.
fn family_counts(rows: &[Pair], draws: Draws, swaps: usize) -> FamilyCounts {
    let errors: Vec<f64> = rows.par_iter().map(Pair::error_under_swaps).collect();
    let studentised = |place: usize, difference: f64| {
        if errors[place] > 0.0 { difference / errors[place] } else { 0.0 }
    };
    let mut ascending: Vec<usize> = (0..rows.len()).collect();
    let observed = |place: usize| studentised(place, rows[place].observed);
    ascending.sort_by(|&left, &right| observed(left).total_cmp(&observed(right)));
    let count = |start: usize| {
        let bits = draws.bits(start..swaps.min(start + TOGETHER));
        let mut maxima = vec![0.0_f64; bits.width];
        let mut counts = vec![Counts::default(); rows.len()];
        for &place in &ascending {
            let (row, counts) = (&rows[place], &mut counts[place]);
            let limit = studentised(place, row.threshold);
            for (maximum, difference) in maxima.iter_mut().zip(row.differences(&bits)) {
                *maximum = maximum.max(studentised(place, difference));
                counts.own += usize::from(difference >= row.threshold);
                counts.family += usize::from(*maximum >= limit);
            }
        }
        counts
    };
    let add = |mut left: Vec<Counts>, right: Vec<Counts>| {
        for (left, right) in left.iter_mut().zip(right) {
            left.own += right.own;
            left.family += right.family;
        }
        left
    };
    let starts: Vec<usize> = (0..swaps).step_by(TOGETHER).collect();
    let none = || vec![Counts::default(); rows.len()];
    let of_rows = starts.into_par_iter().map(count).reduce(none, add);
    FamilyCounts { of_rows, ascending }
}

/// Random swaps of the units of a test set: segments, or blocks of them.
#[derive(Debug, Clone, Copy)]
struct Draws {
    units: usize,
    seed: u64,
}

/// Sides of the units under some swaps, one bit for each unit, eight units per byte.
struct Bits {
    /// `[eight units, swap]`
    bytes: Vec<u8>,
    width: usize,
}

impl Draws {
    fn bits(self, swaps: Range<usize>) -> Bits {
        /// First random stream of swaps; resamples use lower ones.
        const SWAP: u64 = 1 << 63;
        let (width, groups) = (swaps.len(), self.units.div_ceil(8));
        let mut bytes = vec![0; groups * width];
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut of_swap = vec![0; groups];
        for (column, swap) in swaps.enumerate() {
            random.set_stream(SWAP | swap as u64);
            random.set_word_pos(0);
            random.fill_bytes(&mut of_swap);
            bytes.iter_mut().skip(column).step_by(width).zip(&of_swap).for_each(|(byte, own)| *byte = *own);
        }
        Bits { bytes, width }
    }
}

impl Bits {
    /// Returns all swaps of at most 16 units, starting with no swap.
    fn all(units: usize) -> Self {
        let width = 1 << units;
        let bytes =
            (0..units.div_ceil(8)).flat_map(|group| (0..width).map(move |swap| (swap >> (8 * group)) as u8));
        Self { bytes: bytes.collect(), width }
    }
}

#[derive(Clone, Copy)]
struct Move {
    unit: usize,
    /// The variant's numbers minus the base's, without columns that are always 0 or that repeat an earlier one.
    columns: [f64; MAX_COLUMNS],
}

const MAX_COLUMNS: usize = 16;

/// A base and a variant, as their sums and the changed units.
struct Pair<'a> {
    base: &'a Counted,
    base_sums: Vec<f64>,
    variant_sums: Vec<f64>,
    moves: Vec<Move>,
    /// Column of each number in `moves`; `None` if the number never differs.
    columns: Vec<Option<usize>>,
    layout: SumLayout,
    observed: f64,
    /// Absolute difference minus a tolerance for rounding errors.
    threshold: f64,
}

/// Number type and number of columns of the sums.
#[derive(Clone, Copy)]
enum SumLayout {
    Whole4,
    Whole8,
    Decimal1,
    Decimal16,
}

impl<'a> Pair<'a> {
    fn new(base: &'a Counted, variant: &Variant, block: usize) -> Self {
        let width = base.width();
        let mut units: Vec<(usize, Vec<f64>)> = Vec::new();
        for (&segment, difference) in variant.changed.iter().zip(variant.differences.chunks_exact(width)) {
            let unit = segment / block;
            match units.last_mut().filter(|(last, _)| *last == unit) {
                Some((_, sums)) => sums.iter_mut().zip(difference).for_each(|(sum, one)| *sum += one),
                None => units.push((unit, difference.to_vec())),
            }
        }
        let of_number = |number: usize| units.iter().map(move |(_, difference)| difference[number]);
        let mut kept: Vec<usize> = Vec::new();
        let columns: Vec<Option<usize>> = (0..width)
            .map(|number| {
                if of_number(number).all(|one| one == 0.0) {
                    return None;
                }
                let same = kept.iter().position(|&other| of_number(number).eq(of_number(other)));
                Some(same.unwrap_or_else(|| {
                    kept.push(number);
                    kept.len() - 1
                }))
            })
            .collect();
        let is_whole = units.iter().flat_map(|(_, difference)| difference).all(|one| one.fract() == 0.0);
        let most = kept.iter().map(|&number| of_number(number).map(f64::abs).sum()).fold(0.0, f64::max);
        let layout = match kept.len() {
            0..=4 if is_whole && most < f64::from(i32::MAX) => SumLayout::Whole4,
            5..=8 if is_whole && most < f64::from(i32::MAX) => SumLayout::Whole8,
            0..=1 => SumLayout::Decimal1,
            _ => SumLayout::Decimal16,
        };
        let moved = |(unit, difference): &(usize, Vec<f64>)| {
            let mut columns = [0.0; MAX_COLUMNS];
            columns.iter_mut().zip(&kept).for_each(|(column, &number)| *column = difference[number]);
            Move { unit: *unit, columns }
        };
        let moves = units.iter().map(moved).collect();
        let base_sums = base.sums();
        let sum = |number: usize| base_sums[number] + of_number(number).sum::<f64>();
        let variant_sums: Vec<f64> = (0..width).map(sum).collect();
        let scores = [&base_sums, &variant_sums].map(|sums| base.score_of(sums));
        let observed = (scores[1] - scores[0]).abs();
        let threshold = observed - ROUNDING * scores[0].abs().max(scores[1].abs());
        Self { base, base_sums, variant_sums, moves, columns, layout, observed, threshold }
    }

    /// Returns the p-value. `reached`: number of drawn swaps whose difference is at least the observed one.
    fn p_value(&self, reached: usize, draws: Draws, swaps: usize) -> f64 {
        if self.moves.len() <= MAX_EXACT {
            let together: Vec<Move> =
                (0..).zip(&self.moves).map(|(unit, own)| Move { unit, ..*own }).collect();
            let all = Bits::all(self.moves.len());
            let differences = self.differences_of(&together, &all);
            return self.reached(differences) as f64 / all.width as f64;
        }
        let p = share(reached, swaps);
        if !needs_more(p, swaps) {
            return p;
        }
        let starts: Vec<usize> = (swaps..MAX_SWAPS).step_by(TOGETHER).collect();
        let count =
            |start| self.reached(self.differences(&draws.bits(start..MAX_SWAPS.min(start + TOGETHER))));
        share(reached + starts.into_par_iter().map(count).sum::<usize>(), MAX_SWAPS)
    }

    /// Returns the standard error of the difference under swaps, √(Σ g²). Swapping a unit changes the sign of its contribution g, the
    /// difference that the unit alone makes at the midpoint of both systems, and contributions are independent. This is exact for sums and
    /// for ratios with equal denominators, such as nats per token, and first-order for BLEU, F1 and correlations. The test is exact in any
    /// case because swaps do not change this error.
    fn error_under_swaps(&self) -> f64 {
        let number = |place: usize, own: &Move, sign: f64| {
            let moved = self.columns[place].map_or(0.0, |column| own.columns[column]);
            (self.base_sums[place] + self.variant_sums[place] + sign * moved) / 2.0
        };
        let score = |own: &Move, sign: f64| {
            let sums: Vec<f64> = (0..self.columns.len()).map(|place| number(place, own, sign)).collect();
            self.base.score_of(&sums)
        };
        self.moves.iter().map(|own| (score(own, 1.0) - score(own, -1.0)).powi(2)).sum::<f64>().sqrt()
    }

    fn reached(&self, differences: Vec<f64>) -> usize {
        differences.into_iter().filter(|&difference| difference >= self.threshold).count()
    }

    fn differences(&self, bits: &Bits) -> Vec<f64> {
        self.differences_of(&self.moves, bits)
    }

    fn differences_of(&self, moves: &[Move], bits: &Bits) -> Vec<f64> {
        self.signed_of(moves, bits).into_iter().map(f64::abs).collect()
    }

    /// Returns the signed differences, variant minus base.
    fn signed_of(&self, moves: &[Move], bits: &Bits) -> Vec<f64> {
        match self.layout {
            SumLayout::Whole4 => self.signed_in(sums::<i32, 4>(moves, bits)),
            SumLayout::Whole8 => self.signed_in(sums::<i32, 8>(moves, bits)),
            SumLayout::Decimal1 => self.signed_in(sums::<f64, 1>(moves, bits)),
            SumLayout::Decimal16 => self.signed_in(sums::<f64, MAX_COLUMNS>(moves, bits)),
        }
    }

    fn signed_in<T: SumType, const N: usize>(&self, moved: Vec<[T; N]>) -> Vec<f64> {
        let (mut base, mut variant) = (self.base_sums.clone(), self.variant_sums.clone());
        let difference = |moved: [T; N]| {
            for (number, column) in self.columns.iter().enumerate() {
                if let Some(column) = *column {
                    let moved: f64 = moved[column].into();
                    base[number] = self.base_sums[number] + moved;
                    variant[number] = self.variant_sums[number] - moved;
                }
            }
            self.base.score_of(&variant) - self.base.score_of(&base)
        };
        moved.into_iter().map(difference).collect()
    }
}

trait SumType: Copy + Default + AddAssign + Into<f64> {
    fn of(number: f64) -> Self;
}

impl SumType for f64 {
    fn of(number: f64) -> Self {
        number
    }
}

impl SumType for i32 {
    fn of(number: f64) -> Self {
        number as Self
    }
}

/// Returns the sums over units on the other side, one for each swap.
fn sums<T: SumType, const N: usize>(moves: &[Move], bits: &Bits) -> Vec<[T; N]> {
    let mut sums = vec![[T::default(); N]; bits.width];
    for group in moves.chunk_by(|left, right| left.unit / 8 == right.unit / 8) {
        let table = table::<T, N>(group);
        let sides = &bits.bytes[group[0].unit / 8 * bits.width..][..bits.width];
        for (sum, &side) in sums.iter_mut().zip(sides) {
            sum.iter_mut().zip(&table[usize::from(side)]).for_each(|(sum, &one)| *sum += one);
        }
    }
    sums
}

/// Returns the sum over each subset of eight units, indexed by its bits.
fn table<T: SumType, const N: usize>(group: &[Move]) -> [[T; N]; 256] {
    let mut single = [[T::default(); N]; 8];
    for own in group {
        single[own.unit % 8] = std::array::from_fn(|column| T::of(own.columns[column]));
    }
    let mut table = [[T::default(); N]; 256];
    for set in 1..256_usize {
        let mut sum = table[set & (set - 1)];
        let last = single[set.trailing_zeros() as usize];
        sum.iter_mut().zip(last).for_each(|(sum, one)| *sum += one);
        table[set] = sum;
    }
    table
}

#[cfg(test)]
mod tests;
