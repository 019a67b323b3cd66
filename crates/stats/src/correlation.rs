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
/// [`Error::TooFew`] with fewer than three pairs, [`Error::Invalid`] if a value is NaN or infinite,
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
    let p_value = if untied && (x.values <= EXACT || fewer <= 1) {
        (2.0 * share_with_inversions(x.values, fewer)).min(1.0)
    } else {
        normal_p_value(lead, &x, &y)
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
    if is_finite { Ok(()) } else { Err(Error::not_finite()) }
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
mod tests;
