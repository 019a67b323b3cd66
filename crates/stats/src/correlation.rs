//! Agreement between two lists of numbers: correlation coefficients with two-sided p-values.
//!
//! Pearson (1896), *Mathematical Contributions to the Theory of Evolution III*, Philosophical Transactions A 187, 253-318; Spearman (1904),
//! *The Proof and Measurement of Association between Two Things*, American Journal of Psychology 15, 72-101; Kendall (1945), *The Treatment
//! of Ties in Ranking Problems*, Biometrika 33, 239-251.
//!
//! Coefficients, and p-values except Kendall's, equal those of SciPy's `pearsonr`, `spearmanr` and `kendalltau` with default settings.

use crate::Error;
use crate::t_test::student;

/// Minimum number of pairs for a p-value.
pub(crate) const FEWEST: usize = 3;

/// A correlation coefficient and the test of whether it is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// -1 to 1, even after rounding.
    pub coefficient: f64,
    /// Two-sided probability, 0 to 1, of a coefficient at least this far from 0 if the two sides are unrelated.
    pub p_value: f64,
}

/// Returns Pearson's r = Σ (x - x̄)(y - ȳ) / sqrt(Σ (x - x̄)² Σ (y - ȳ)²): how close the pairs are to a straight line.
///
/// p is from t = r sqrt((n - 2) / (1 - r²)) with n - 2 degrees of freedom (Fisher 1915, *Frequency Distribution of the Values of the
/// Correlation Coefficient*, Biometrika 10, 507-521), and 0 for |r| = 1, the limit.
///
/// Assumes that pairs are independent and both sides normally distributed.
///
/// # Errors
/// [`Error::TooFew`] with fewer than three pairs, [`Error::Invalid`] if a value is NaN or infinite, [`Error::NoSpread`] if all values of
/// one side are equal.
///
/// # Panics
/// If `x` and `y` differ in length.
pub fn pearson(x: &[f64], y: &[f64]) -> Result<Correlation, Error> {
    check(x, y)?;
    let (x, y) = (centred(x)?, centred(y)?);
    let sum = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(l, r)| l * r).sum::<f64>();
    // A single root of the product makes the correlation of x with itself exactly 1.
    let r = (sum(&x, &y) / (sum(&x, &x) * sum(&y, &y)).sqrt()).clamp(-1.0, 1.0);
    let degrees_of_freedom = x.len() as f64 - 2.0;
    let error = ((1.0 - r) * (1.0 + r) / degrees_of_freedom).sqrt();
    let (test, _) = student(r, error, degrees_of_freedom)?;
    Ok(Correlation { coefficient: r, p_value: test.p_value })
}

/// Returns Spearman's rho, [`pearson`] of the ranks, where equal values share their mean rank: how close the pairs are to any rising or
/// falling curve.
///
/// p is from t as for Pearson's r, a good approximation for about ten or more pairs.
///
/// # Panics
/// If `x` and `y` differ in length.
pub fn spearman(x: &[f64], y: &[f64]) -> Result<Correlation, Error> {
    check(x, y)?;
    pearson(&mid_ranks(x), &mid_ranks(y))
}

/// The pair whose removal changes Pearson's r most, and the correlations without it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Influence {
    /// Index of the pair.
    pub place: usize,
    /// Pearson's r without the pair; `None` if one side no longer varies, which counts as the largest change.
    pub pearson: Option<f64>,
    /// Spearman's rho without the pair; `None` if one side no longer varies.
    pub spearman: Option<f64>,
}

/// Finds the most influential pair, the first one if several tie; `None` if r is undefined, or with fewer than four pairs.
///
/// # Panics
/// If `x` and `y` differ in length.
pub fn most_influential(x: &[f64], y: &[f64]) -> Option<Influence> {
    let r = pearson(x, y).ok()?.coefficient;
    let without = |place: usize| [x, y].map(|side| [&side[..place], &side[place + 1..]].concat());
    let change = |place: usize| {
        let [x, y] = without(place);
        pearson(&x, &y).map_or(f64::INFINITY, |found| (found.coefficient - r).abs())
    };
    let places = (0..x.len()).filter(|_| x.len() > FEWEST).rev();
    let place = places.max_by(|&one, &other| change(one).total_cmp(&change(other)))?;
    let [x, y] = without(place);
    let coefficient = |found: Result<Correlation, Error>| found.ok().map(|found| found.coefficient);
    Some(Influence { place, pearson: coefficient(pearson(&x, &y)), spearman: coefficient(spearman(&x, &y)) })
}

/// Returns Kendall's tau-b = (C - D) / sqrt((P - X)(P - Y)): of the P = n (n - 1) / 2 comparisons of two pairs, C are concordant, D
/// discordant, X tied on the first side and Y on the second. Takes O(n²) time.
///
/// # Panics
/// If `x` and `y` differ in length.
pub fn kendall(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    check(x, y)?;
    let [concordant, discordant] = count_orders(x, y).map(|count| count as f64);
    let [x, y] = [x, y].map(|side| untied_pairs(side) as f64);
    if x == 0.0 || y == 0.0 {
        return Err(Error::NoSpread);
    }
    Ok(((concordant - discordant) / (x.sqrt() * y.sqrt())).clamp(-1.0, 1.0))
}

pub(crate) fn check(x: &[f64], y: &[f64]) -> Result<(), Error> {
    assert_eq!(x.len(), y.len(), "both sides of a correlation must have the same length");
    if x.len() < FEWEST {
        return Err(Error::TooFew);
    }
    let is_finite = x.iter().chain(y).all(|value| value.is_finite());
    if is_finite { Ok(()) } else { Err(Error::not_finite()) }
}

/// Returns `values` shifted to mean 0 and scaled to a maximum absolute value of 1, without overflow on the way.
fn centred(values: &[f64]) -> Result<Vec<f64>, Error> {
    // Rounding errors of the mean must not count as spread.
    if values.iter().all(|value| value == &values[0]) {
        return Err(Error::NoSpread);
    }
    let count = values.len() as f64;
    let mean: f64 = values.iter().map(|value| value / count).sum();
    let halves: Vec<f64> = values.iter().map(|value| value / 2.0 - mean / 2.0).collect();
    let widest = halves.iter().fold(0.0, |widest: f64, half| widest.max(half.abs()));
    if widest == 0.0 {
        return Err(Error::NoSpread); // half of the smallest positive number rounds to 0
    }
    Ok(halves.iter().map(|half| half / widest).collect())
}

/// Returns ranks from 1 for the smallest value; equal values share their mean rank.
pub(crate) fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    // `==`, since `total_cmp` puts -0 below 0.
    for equal in order.chunk_by(|&left, &right| values[left] == values[right]) {
        let rank = before as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|&index| ranks[index] = rank);
        before += equal.len();
    }
    ranks
}

fn count_orders(x: &[f64], y: &[f64]) -> [u64; 2] {
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
    [concordant, discordant]
}

fn untied_pairs(values: &[f64]) -> u64 {
    let pairs = |count: usize| (count * count.saturating_sub(1) / 2) as u64;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let tied: u64 = sorted.chunk_by(|left, right| left == right).map(|group| pairs(group.len())).sum();
    pairs(values.len()) - tied
}

#[cfg(test)]
mod tests;
