//! The least squares line through pairs, and its confidence band.
//!
//! Casella and Berger (2002), *Statistical Inference*, second edition, Sections 11.3.1 and 11.3.5.

use statrs::distribution::ContinuousCDF;

use crate::Error;
use crate::correlation::check;
use crate::t_test::{UPPER, student};

/// The least squares line y = a + b x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    slope: f64,
    pairs: f64,
    mean_x: f64,
    mean_y: f64,
    /// Σ (x - x̄)².
    squares_x: f64,
    /// s = sqrt(Σ (y - a - b x)² / (n - 2)).
    deviation: f64,
    /// The 97.5% quantile of t with n - 2 degrees of freedom.
    quantile: f64,
}

impl Line {
    /// Fits the line: b = Σ (x - x̄)(y - ȳ) / Σ (x - x̄)², a = ȳ - b x̄.
    ///
    /// # Errors
    /// [`Error::TooFew`] with fewer than three pairs, [`Error::Invalid`] if a value is NaN, infinite, or too large to be squared,
    /// [`Error::NoSpread`] if all `x` are equal.
    ///
    /// # Panics
    /// If `x` and `y` differ in length.
    pub fn fit(x: &[f64], y: &[f64]) -> Result<Self, Error> {
        check(x, y)?;
        let pairs = x.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / pairs;
        let (mean_x, mean_y) = (mean(x), mean(y));
        let centred = || x.iter().zip(y).map(|(x, y)| (x - mean_x, y - mean_y));
        let squares_x: f64 = centred().map(|(x, _)| x * x).sum();
        if squares_x == 0.0 || x.iter().all(|value| value == &x[0]) {
            return Err(Error::NoSpread);
        }
        let slope = centred().map(|(x, y)| x * y).sum::<f64>() / squares_x;
        let residuals: f64 = centred().map(|(x, y)| (y - slope * x).powi(2)).sum();
        let degrees_of_freedom = pairs - 2.0;
        let deviation = (residuals / degrees_of_freedom).sqrt();
        let (_, distribution) = student(0.0, 1.0, degrees_of_freedom)?;
        let quantile = distribution.inverse_cdf(UPPER);
        let line = Self { slope, pairs, mean_x, mean_y, squares_x, deviation, quantile };
        let is_finite = [squares_x, deviation, slope, mean_y].iter().all(|value| value.is_finite());
        if is_finite { Ok(line) } else { Err(Error::not_finite()) }
    }

    /// Returns y on the line, the estimated mean response at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.mean_y + self.slope * (x - self.mean_x)
    }

    /// Returns the ends of the 95% confidence interval of the mean response at `x`: a + b x ± t s sqrt(1 / n + (x - x̄)² / Σ (x - x̄)²),
    /// with t of n - 2 degrees of freedom.
    ///
    /// Each interval holds for one `x`, not for all at once. Assumes independent pairs around a line, with normally distributed vertical
    /// distances of constant variance.
    pub fn band(&self, x: f64) -> (f64, f64) {
        let leverage = 1.0 / self.pairs + (x - self.mean_x).powi(2) / self.squares_x;
        let (middle, reach) = (self.at(x), self.quantile * self.deviation * leverage.sqrt());
        (middle - reach, middle + reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use crate::correlation::pearson;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::f64::consts::PI;

    /// x̄ = 2, ȳ = 2: Σ (x - x̄)² = 2, products (-1)(-1) + 0 + 1 * 0 = 1: b = 1/2, a = 1. The residuals 1 - 3/2, 3 - 2, 2 - 5/2 have
    /// squares 1/4 + 1 + 1/4: s = sqrt(3/2) with one degree of freedom. t is then Cauchy's distribution with the quantile tan(π (0.975 -
    /// 1/2)). At x = 4 the leverage is 1/3 + 4/2 = 7/3.
    #[test]
    fn three_points_have_the_line_and_band_of_the_formula() {
        let line = Line::fit(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]).unwrap();
        assert_close(line.slope, 0.5, 1e-12);
        assert_close(line.at(0.0), 1.0, 1e-12);
        assert_close(line.at(4.0), 3.0, 1e-12);
        let reach = (0.475 * PI).tan() * (1.5_f64 * 7.0 / 3.0).sqrt();
        let (low, high) = line.band(4.0);
        assert_close(low, 3.0 - reach, 1e-8);
        assert_close(high, 3.0 + reach, 1e-8);
    }

    #[test]
    fn pairs_without_a_line_are_refused_and_a_flat_line_is_fitted() {
        assert_eq!(Line::fit(&[1.0, 2.0], &[1.0, 2.0]), Err(Error::TooFew));
        assert_eq!(Line::fit(&[1.0, f64::NAN, 2.0], &[1.0; 3]), Err(Error::not_finite()));
        assert_eq!(Line::fit(&[0.1; 7], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), Err(Error::NoSpread));
        assert_eq!(Line::fit(&[f64::MAX, -f64::MAX, 0.0], &[1.0; 3]), Err(Error::not_finite()));
        let flat = Line::fit(&[1.0, 2.0, 3.0], &[4.0; 3]).unwrap();
        assert_eq!((flat.slope, flat.band(9.0)), (0.0, (4.0, 4.0)));
    }

    proptest! {
        /// b = r s_y / s_x, so slope and r have one sign, and the line passes through the means.
        #[test]
        fn the_line_goes_through_the_means_in_the_direction_of_r(
            pairs in vec((-1e3..1e3_f64, -1e3..1e3_f64), 3..40),
            at in -2e3..2e3_f64,
        ) {
            let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let line = Line::fit(&x, &y).unwrap();
            let r = pearson(&x, &y).unwrap().coefficient;
            prop_assert!(r.abs() < 1e-9 || r.signum() == line.slope.signum());
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            prop_assert!((line.at(mean(&x)) - mean(&y)).abs() < 1e-6);
            let (low, high) = line.band(at);
            prop_assert!(low <= line.at(at) && line.at(at) <= high);
        }
    }
}
