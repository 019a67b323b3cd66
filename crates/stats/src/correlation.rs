//! How two lists of numbers go together: correlation coefficients with two-sided p-values.
//!
//! Pearson (1896), *Mathematical Contributions to the Theory of Evolution III*, Philosophical Transactions A 187,
//! 253-318; Spearman (1904), *The Proof and Measurement of Association between Two Things*, American Journal of
//! Psychology 15, 72-101; Kendall (1945), *The Treatment of Ties in Ranking Problems*, Biometrika 33, 239-251.
//!
//! Coefficients and p-values are those of SciPy's `pearsonr`, `spearmanr` and `kendalltau` with their defaults.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::Error;
use crate::t_test::student;

/// Fewest pairs that a p-value can be had from.
pub(crate) const FEWEST: usize = 3;

/// Up to this many pairs without ties, the p-value of Kendall's tau is counted out, as in SciPy.
const EXACT: u64 = 33;

/// A correlation coefficient and the test of whether it is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// -1 to 1; never beyond, whatever is rounded.
    pub coefficient: f64,
    /// Two-sided probability, 0 to 1, of a coefficient at least as far from 0 if the two sides are unrelated.
    pub p_value: f64,
}

/// Pearson's r = Σ (x - x̄)(y - ȳ) / sqrt(Σ (x - x̄)² Σ (y - ȳ)²): how close pairs are to a straight line.
///
/// p is that of t = r sqrt((n - 2) / (1 - r²)) with n - 2 degrees of freedom (Fisher 1915, *Frequency Distribution of
/// the Values of the Correlation Coefficient*, Biometrika 10, 507-521), and 0 for |r| = 1, the limit.
///
/// Assumes that pairs are independent, and both sides normally distributed.
///
/// # Errors
/// [`Error::TooFew`] with fewer than three pairs, [`Error::NotFinite`] if a value is NaN or infinite,
/// [`Error::NoSpread`] if all values of one side are equal.
///
/// # Panics
/// If `x` and `y` differ in length.
pub fn pearson(x: &[f64], y: &[f64]) -> Result<Correlation, Error> {
    check(x, y)?;
    let (x, y) = (centred(x)?, centred(y)?);
    let sum = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(l, r)| l * r).sum::<f64>();
    // One root of the product, so that x with itself is exactly 1.
    let r = (sum(&x, &y) / (sum(&x, &x) * sum(&y, &y)).sqrt()).clamp(-1.0, 1.0);
    let degrees_of_freedom = x.len() as f64 - 2.0;
    let error = ((1.0 - r) * (1.0 + r) / degrees_of_freedom).sqrt();
    let (test, _) = student(r, error, degrees_of_freedom)?;
    Ok(Correlation { coefficient: r, p_value: test.p_value })
}

/// Spearman's rho: [`pearson`] of the ranks, where equal values share the mean of their ranks; how close pairs are to
/// any rising or falling curve.
///
/// p is by t as for Pearson's r, an approximation that is good from about ten pairs on.
///
/// # Errors
/// As [`pearson`].
///
/// # Panics
/// If `x` and `y` differ in length.
pub fn spearman(x: &[f64], y: &[f64]) -> Result<Correlation, Error> {
    check(x, y)?;
    pearson(&mid_ranks(x), &mid_ranks(y))
}

/// Kendall's tau-b = (C - D) / sqrt((P - X)(P - Y)), where of the P = n (n - 1) / 2 pairs of pairs C are in the same
/// order on both sides, D in opposite orders, X tied on the first side and Y on the second.
///
/// Without ties, for up to 33 pairs or if C or D is at most 1, p is exact: the share of the n! orders that are as far
/// from equal C and D (Kendall 1938, *A New Measure of Rank Correlation*, Biometrika 30, 81-93). For all else C - D
/// counts as normal, with the variance that Kendall (1970), *Rank Correlation Methods*, Equation 4.4, has for ties.
///
/// Takes the time of n² comparisons.
///
/// # Errors
/// As [`pearson`].
///
/// # Panics
/// If `x` and `y` differ in length.
pub fn kendall(x: &[f64], y: &[f64]) -> Result<Correlation, Error> {
    check(x, y)?;
    let (concordant, discordant) = count_orders(x, y);
    let (x, y) = (Ties::of(x), Ties::of(y));
    let pairs = pairs_of(x.values);
    if x.pairs == pairs || y.pairs == pairs {
        return Err(Error::NoSpread);
    }
    let lead = concordant as f64 - discordant as f64;
    let scale = ((pairs - x.pairs) as f64).sqrt() * ((pairs - y.pairs) as f64).sqrt();
    let fewer = concordant.min(discordant);
    let untied = x.pairs == 0 && y.pairs == 0;
    let p_value = match untied && (x.values <= EXACT || fewer <= 1) {
        true => (2.0 * share_with_inversions(x.values, fewer)).min(1.0),
        false => normal_p_value(lead, &x, &y),
    };
    Ok(Correlation { coefficient: (lead / scale).clamp(-1.0, 1.0), p_value })
}

/// What every correlation asks of its pairs.
pub(crate) fn check(x: &[f64], y: &[f64]) -> Result<(), Error> {
    assert_eq!(x.len(), y.len(), "both sides of a correlation must have the same length");
    if x.len() < FEWEST {
        return Err(Error::TooFew);
    }
    let is_finite = x.iter().chain(y).all(|value| value.is_finite());
    if is_finite { Ok(()) } else { Err(Error::NotFinite) }
}

/// `values` shifted to mean 0 and scaled to a greatest distance of 1, without overflow on the way.
fn centred(values: &[f64]) -> Result<Vec<f64>, Error> {
    // Rounding errors of the mean must not pass for a spread.
    if values.iter().all(|value| value == &values[0]) {
        return Err(Error::NoSpread);
    }
    let count = values.len() as f64;
    let mean: f64 = values.iter().map(|value| value / count).sum();
    let halves: Vec<f64> = values.iter().map(|value| value / 2.0 - mean / 2.0).collect();
    let widest = halves.iter().fold(0.0, |widest: f64, half| widest.max(half.abs()));
    if widest == 0.0 {
        return Err(Error::NoSpread); // numbers so small that half of them is 0
    }
    Ok(halves.iter().map(|half| half / widest).collect())
}

/// Ranks from 1 for the least; equal values share the mean of their ranks.
fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    // `==` and not the order of `total_cmp`, for which -0 is below 0.
    for equal in order.chunk_by(|&left, &right| values[left] == values[right]) {
        let rank = before as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|&index| ranks[index] = rank);
        before += equal.len();
    }
    ranks
}

/// Number of pairs among `count` things.
fn pairs_of(count: u64) -> u64 {
    count * count.saturating_sub(1) / 2
}

/// How many pairs of pairs are in the same order on both sides, and in opposite orders.
fn count_orders(x: &[f64], y: &[f64]) -> (u64, u64) {
    let (mut concordant, mut discordant) = (0, 0);
    for first in 0..x.len() {
        for second in 0..first {
            let on_x = x[first].partial_cmp(&x[second]);
            let on_y = y[first].partial_cmp(&y[second]);
            let tied = x[first] == x[second] || y[first] == y[second];
            match (tied, on_x == on_y) {
                (true, _) => {}
                (false, true) => concordant += 1,
                (false, false) => discordant += 1,
            }
        }
    }
    (concordant, discordant)
}

/// The ties of one side: sums over groups of t equal values.
struct Ties {
    /// Number of values, n.
    values: u64,
    /// Σ t (t - 1) / 2: pairs that are tied.
    pairs: u64,
    /// Σ t (t - 1) (t - 2).
    triples: f64,
    /// Σ t (t - 1) (2 t + 5).
    weighted: f64,
}

impl Ties {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let groups = sorted.chunk_by(|left, right| left == right).map(|group| group.len() as u64);
        let mut ties = Self { values: values.len() as u64, pairs: 0, triples: 0.0, weighted: 0.0 };
        for group in groups {
            let size = group as f64;
            ties.pairs += pairs_of(group);
            ties.triples += size * (size - 1.0) * (size - 2.0);
            ties.weighted += size * (size - 1.0) * (2.0 * size + 5.0);
        }
        ties
    }
}

/// Share of the orders of `count` things that have at most `most` inversions.
///
/// The i-th thing is put before 0 to i - 1 of those that are there, each with probability 1 / i.
fn share_with_inversions(count: u64, most: u64) -> f64 {
    let most = most as usize;
    let mut shares = vec![0.0; most + 1];
    shares[0] = 1.0;
    for place in 2..=count as usize {
        let share = |inversions: usize| {
            let fewest = (inversions + 1).saturating_sub(place);
            shares[fewest..=inversions].iter().sum::<f64>() / place as f64
        };
        shares = (0..=most).map(share).collect();
    }
    shares.iter().sum()
}

/// Two-sided p-value of C - D = `lead`: its variance is
/// (n (n - 1) (2 n + 5) - Σ t (t - 1) (2 t + 5) - Σ u (u - 1) (2 u + 5)) / 18
/// + Σ t (t - 1) Σ u (u - 1) / (2 n (n - 1)) + Σ t (t - 1) (t - 2) Σ u (u - 1) (u - 2) / (9 n (n - 1) (n - 2)).
fn normal_p_value(lead: f64, x: &Ties, y: &Ties) -> f64 {
    let count = x.values as f64;
    let ordered = count * (count - 1.0);
    let variance = (ordered * (2.0 * count + 5.0) - x.weighted - y.weighted) / 18.0
        + 2.0 * x.pairs as f64 * y.pairs as f64 / ordered
        + x.triples * y.triples / (9.0 * ordered * (count - 2.0));
    2.0 * Normal::standard().sf(lead.abs() / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Correlate = fn(&[f64], &[f64]) -> Result<Correlation, Error>;

    const ALL: [Correlate; 3] = [pearson, spearman, kendall];

    fn assert_close(found: f64, expected: f64, tolerance: f64) {
        let gap = (found - expected).abs();
        assert!(gap < tolerance, "{found} instead of {expected}: {gap:e}");
    }

    /// x - x̄ = -3/2, -1/2, 1/2, 3/2 with squares 5; y - ȳ = -2, 1, 0, 1 with squares 6; products 3 - 1/2 + 0 + 3/2 = 4:
    /// r = 4 / sqrt(30). With 2 degrees of freedom p = 1 - sqrt(t² / (2 + t²)), and t² = 2 r² / (1 - r²) makes that
    /// 1 - |r|.
    #[test]
    fn pearson_is_the_cosine_of_centred_values() {
        let found = pearson(&[1.0, 2.0, 3.0, 4.0], &[0.0, 3.0, 2.0, 3.0]).unwrap();
        let r = 4.0 / 30.0_f64.sqrt();
        assert_close(found.coefficient, r, 1e-12);
        assert_close(found.p_value, 1.0 - r, 1e-12);
    }

    /// Ranks 1, 2.5, 2.5, 4 and 4, 2, 3, 1: centred -3/2, 0, 0, 3/2 and 3/2, -1/2, 1/2, -3/2 with squares 9/2 and 5;
    /// products -9/4 - 9/4: rho = -(9/2) / sqrt(45/2). p as above.
    #[test]
    fn spearman_gives_equal_values_the_mean_of_their_ranks() {
        let found = spearman(&[-8.0, 0.0, -0.0, 1e9], &[7.0, -2.0, 5.0, -3.0]).unwrap();
        let rho = -4.5 / 22.5_f64.sqrt();
        assert_close(found.coefficient, rho, 1e-12);
        assert_close(found.p_value, 1.0 + rho, 1e-12);
    }

    /// 1, 2, 3, 4 against 2, 1, 4, 3: two of six pairs are inverted, tau = (4 - 2) / 6. Orders of four things have 0, 1,
    /// 2 inversions in 1, 3, 5 of 24 cases: p = 2 (1 + 3 + 5) / 24.
    #[test]
    fn kendall_without_ties_counts_orders() {
        let found = kendall(&[1.0, 2.0, 3.0, 4.0], &[2.0, 1.0, 4.0, 3.0]).unwrap();
        assert_close(found.coefficient, 1.0 / 3.0, 1e-12);
        assert_close(found.p_value, 18.0 / 24.0, 1e-12);
        // 1, 3, 2: one of three, and 2 (1 + 2) / 6 = 1.
        assert_close(kendall(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]).unwrap().p_value, 1.0, 1e-12);
        // Only one order of 50 has no inversion: 2 / 50!, and 50! = 3.04140932017133780436e64.
        let rising: Vec<f64> = (0..50).map(f64::from).collect();
        let p_value = kendall(&rising, &rising).unwrap().p_value;
        assert_close(p_value * 3.041_409_320_171_338e64, 2.0, 1e-9);
    }

    /// 1, 1, 2, 3 against 1, 2, 2, 3: of six pairs one is tied on each side, the other four are in order: tau = 4 / 5.
    /// n (n - 1) (2 n + 5) = 12 * 13 = 156, each tie of two takes 2 * 9 = 18, triples are none: the variance is
    /// (156 - 36) / 18 + 2 * 2 / (2 * 12) = 41 / 6, z² = 16 * 6 / 41, and p is erfc(sqrt(z² / 2)) = erfc(sqrt(48 / 41)),
    /// 0.12597116307723114 by the C library.
    #[test]
    fn kendall_with_ties_is_tau_b_and_nearly_normal() {
        let found = kendall(&[1.0, 1.0, 2.0, 3.0], &[1.0, 2.0, 2.0, 3.0]).unwrap();
        assert_close(found.coefficient, 0.8, 1e-12);
        assert_close(found.p_value, 0.125_971_163_077_231_14, 1e-10);
    }

    /// SciPy 1.17.1 on y = (29 i mod 97) + 3 i, where no two are equal, and on the sides 7 i mod 11 and
    /// ((5 i² + 3 i) mod 13) + floor((7 i mod 11) / 2), with many ties.
    #[test]
    fn coefficients_and_p_values_equal_scipy() {
        let side =
            |count: u32, value: fn(u32) -> u32| (0..count).map(|i| value(i).into()).collect::<Vec<f64>>();
        let untied = [side(23, |i| i), side(23, |i| 29 * i % 97 + 3 * i)];
        let tied = [side(40, |i| 7 * i % 11), side(40, |i| (5 * i * i + 3 * i) % 13 + (7 * i % 11) / 2)];
        let untied_expected = [
            (0.661_258_111_392_531_1, 0.000_591_193_503_637_581_8),
            (0.485_177_865_612_648_25, 0.018_942_524_121_112_053),
            (0.304_347_826_086_956_54, 0.043_784_458_603_335_26),
        ];
        let tied_expected = [
            (0.487_932_961_828_737_2, 0.001_403_891_245_371_792_5),
            (0.526_119_165_309_724_4, 0.000_488_744_896_064_742_6),
            (0.391_753_410_041_080_7, 0.000_790_431_590_446_301),
        ];
        for ([x, y], expected) in [(untied, untied_expected), (tied, tied_expected)] {
            for (correlate, (coefficient, p_value)) in ALL.into_iter().zip(expected) {
                let found = correlate(&x, &y).unwrap();
                assert_close(found.coefficient, coefficient, 1e-12);
                assert_close(found.p_value, p_value, 1e-10);
            }
        }
    }

    #[test]
    fn perfect_agreement_has_p_zero_by_t() {
        let x = [1.0, 2.0, 4.0];
        assert_eq!(spearman(&x, &x), Ok(Correlation { coefficient: 1.0, p_value: 0.0 }));
        assert_eq!(spearman(&x, &[3.0, 2.0, 1.0]), Ok(Correlation { coefficient: -1.0, p_value: 0.0 }));
    }

    #[test]
    fn numbers_near_the_limits_neither_overflow_nor_vanish() {
        let huge = [f64::MAX, -f64::MAX, f64::MAX / 2.0];
        let tiny = [3e-308, 1e-308, 2e-308];
        for correlate in ALL {
            let found = correlate(&huge, &tiny).unwrap().coefficient;
            assert!((0.96..=1.0).contains(&found), "{found}");
        }
    }

    /// 0.1 has no exact sum: seven of them divided by seven are not 0.1.
    #[test]
    fn what_cannot_be_correlated_is_an_error() {
        for correlate in ALL {
            assert_eq!(correlate(&[], &[]), Err(Error::TooFew));
            assert_eq!(correlate(&[1.0, 2.0], &[2.0, 1.0]), Err(Error::TooFew));
            assert_eq!(correlate(&[1.0, f64::NAN, 2.0], &[2.0, 1.0, 3.0]), Err(Error::NotFinite));
            assert_eq!(correlate(&[1.0, 2.0, 3.0], &[f64::INFINITY, 1.0, 3.0]), Err(Error::NotFinite));
            let rising = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
            assert_eq!(correlate(&rising, &[0.1; 7]), Err(Error::NoSpread));
            assert_eq!(correlate(&[0.1; 7], &rising), Err(Error::NoSpread));
        }
    }

    #[test]
    #[should_panic(expected = "both sides of a correlation must have the same length")]
    fn pairs_without_a_partner_panic() {
        let _ = kendall(&[1.0, 2.0, 3.0], &[1.0, 2.0]);
    }

    /// Pairs of numbers, now and then with ties; both sides vary.
    fn pairs() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        let coarse = vec((0..6_u8, 0..6_u8), 3..50).prop_map(|pairs| {
            pairs.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect::<Vec<_>>()
        });
        let unzipped = prop_oneof![coarse, vec((-1e3..1e3_f64, -1e3..1e3_f64), 3..50)]
            .prop_map(|pairs| pairs.into_iter().unzip());
        unzipped.prop_filter("both sides vary", |(x, y): &(Vec<f64>, Vec<f64>)| {
            [x, y].iter().all(|side| side.iter().any(|value| value != &side[0]))
        })
    }

    fn map(values: &[f64], change: impl Fn(f64) -> f64) -> Vec<f64> {
        values.iter().map(|&value| change(value)).collect()
    }

    proptest! {
        #[test]
        fn sides_may_be_swapped_and_a_negative_side_turns_the_sign((x, y) in pairs()) {
            for correlate in ALL {
                let found = correlate(&x, &y).unwrap();
                prop_assert!((-1.0..=1.0).contains(&found.coefficient));
                prop_assert!((0.0..=1.0).contains(&found.p_value));
                prop_assert_eq!(correlate(&y, &x).unwrap(), found);
                let turned = correlate(&x, &map(&y, |y| -y)).unwrap();
                prop_assert!((turned.coefficient + found.coefficient).abs() < 1e-12);
                prop_assert!((turned.p_value - found.p_value).abs() < 1e-6);
            }
        }

        /// Rounding may make equal what was not; such draws do not count.
        #[test]
        fn ranks_do_not_see_a_rising_map((x, y) in pairs()) {
            let bent = map(&x, |x| (x / 1024.0).exp());
            prop_assume!(count_orders(&x, &bent).0 == pairs_of(x.len() as u64) - Ties::of(&x).pairs);
            prop_assert_eq!(spearman(&bent, &y), spearman(&x, &y));
            prop_assert_eq!(kendall(&bent, &y), kendall(&x, &y));
        }

        #[test]
        fn pearson_does_not_see_shift_and_scale((x, y) in pairs(), shift in -1e3..1e3_f64, scale in 0.01..100.0_f64) {
            let found = pearson(&map(&x, |x| scale * x + shift), &y);
            prop_assume!(found != Err(Error::NoSpread));
            prop_assert!((found.unwrap().coefficient - pearson(&x, &y).unwrap().coefficient).abs() < 1e-6);
        }

        /// Rounding must not carry a straight line beyond 1.
        #[test]
        fn a_line_has_coefficient_one((x, _) in pairs(), slope in 0.01..100.0_f64) {
            for correlate in ALL {
                let found = correlate(&x, &map(&x, |x| slope * x)).unwrap();
                prop_assert!(found.coefficient <= 1.0 && found.coefficient > 1.0 - 1e-9, "{found:?}");
            }
        }

        #[test]
        fn shares_of_all_orders_sum_to_one(count in 2..9_u64) {
            let all = share_with_inversions(count, pairs_of(count));
            prop_assert!((all - 1.0).abs() < 1e-12);
        }
    }
}
