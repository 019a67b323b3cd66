//! Group-sequential tests: looks at a growing sample, with bounds that control the error over all looks.
//!
//! Lan and DeMets (1983), *Discrete Sequential Boundaries for Clinical Trials*, Biometrika 70, 659-663: a spending function distributes the
//! error over looks by the fraction of information available, so neither the number of looks nor their times need planning. Critical values
//! are from the recursive integration of Armitage, McPherson and Rowe (1969), *Repeated Significance Tests on Accumulating Data*, Journal
//! of the Royal Statistical Society A 132, 235-244. Intervals with these critical values are repeated confidence intervals (Jennison and
//! Turnbull 1989, *Interim Analyses: the Repeated Confidence Interval Approach*, Journal of the Royal Statistical Society B 51, 305-334):
//! they hold under any stopping rule.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

/// Error on each side of an interval, summed over all looks.
pub const SIDE: f64 = 0.025;

/// Spending function: distributes the error over the looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spending {
    /// Like O'Brien and Fleming (1979): very little early, so that the last look is nearly a plain test.
    #[default]
    ObrienFleming,
    /// Like Pocock (1977): evenly, so that more heads stop early.
    Pocock,
}

impl Spending {
    /// Every function, in the order of help texts.
    pub const ALL: [Self; 2] = [Self::ObrienFleming, Self::Pocock];

    /// Returns its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ObrienFleming => "obrien-fleming",
            Self::Pocock => "pocock",
        }
    }

    /// Returns true if so little error is spent early that the last look is a plain test.
    pub fn ends_with_plain_test(self) -> bool {
        self == Self::ObrienFleming
    }

    /// Returns the error spent on one side at this fraction of the information, 0 to [`SIDE`].
    pub fn spent(self, share: f64) -> f64 {
        let share = share.clamp(0.0, 1.0);
        let normal = Normal::standard();
        match self {
            _ if share == 0.0 => 0.0,
            Self::ObrienFleming => 2.0 * normal.sf(normal.inverse_cdf(1.0 - SIDE / 2.0) / share.sqrt()),
            Self::Pocock => SIDE * (1.0 + (std::f64::consts::E - 1.0) * share).ln(),
        }
    }
}

/// Returns at most `looks` sample sizes, each twice the previous one: the last is `segments`, the others are at least `first`.
pub(crate) fn doubling(segments: usize, looks: usize, first: usize) -> Vec<usize> {
    let halves = std::iter::successors(Some(segments), |&size| Some(size.div_ceil(2)));
    let mut sizes: Vec<usize> =
        halves.take(looks.max(1)).take_while(|&size| size >= first || size == segments).collect();
    sizes.dedup();
    sizes.reverse();
    sizes
}

/// Returns the segments of a test set in random sampling order.
pub fn sampling_order(segments: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..segments).collect();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(1); // stream 0 draws the test set
    order.shuffle(&mut random);
    order
}

/// Grid step for integrating densities, in standard errors.
const STEP: f64 = 0.05;

/// Number of standard errors beyond which densities are 0.
const TAIL: f64 = 8.5;

/// Returns the critical value of each look, in standard errors: the probability of crossing an upper bound at this look or an earlier one
/// is the error [spent](Spending::spent) so far. Stopping at bounds on the other side is ignored, so that each side keeps its error.
///
/// - `shares`: information at each look as a fraction of the information at the last planned look, ascending, above 0
pub fn critical_values(spending: Spending, shares: &[f64]) -> Vec<f64> {
    let normal = Normal::standard();
    let mut values: Vec<f64> = Vec::with_capacity(shares.len());
    let mut before: Option<(f64, Density)> = None; // information and density of the preceding look
    for &share in shares {
        let earlier = before.as_ref().map_or(0.0, |(share, _)| spending.spent(*share));
        let new = (spending.spent(share) - earlier).max(1e-300);
        let crossing = |value: f64| match &before {
            None => normal.sf(value),
            Some((earlier, density)) => density.integral(|z| {
                normal.sf((value * share.sqrt() - z * earlier.sqrt()) / (share - earlier).sqrt())
            }),
        };
        let value = root(|value| crossing(value) - new, -TAIL, TAIL);
        let density = match &before {
            None => Density::new(value, phi),
            Some((earlier, density)) => {
                let (scale, spread) = (share.sqrt(), (share - earlier).sqrt());
                Density::new(value, |z| {
                    density.integral(|old| phi((z * scale - old * earlier.sqrt()) / spread)) * scale / spread
                })
            }
        };
        values.push(value);
        before = Some((share, density));
    }
    values
}

/// Density of the statistic at a look, for samples that no bound has stopped, on a grid up to the bound.
struct Density {
    low: f64,
    step: f64,
    values: Vec<f64>,
}

impl Density {
    fn new(bound: f64, density: impl Fn(f64) -> f64) -> Self {
        let low = -TAIL;
        let steps = ((bound - low) / STEP).ceil().max(1.0) as usize;
        let step = (bound - low) / steps as f64;
        Self { low, step, values: (0..=steps).map(|place| density(low + place as f64 * step)).collect() }
    }

    /// Integrates a function over the density, by the trapezoidal rule.
    fn integral(&self, function: impl Fn(f64) -> f64) -> f64 {
        let last = self.values.len() - 1;
        let term = |(place, value): (usize, &f64)| {
            let weight = if place == 0 || place == last { 0.5 } else { 1.0 };
            if *value < 1e-18 { 0.0 } else { weight * value * function(self.low + place as f64 * self.step) }
        };
        self.step * self.values.iter().enumerate().map(term).sum::<f64>()
    }
}

fn phi(z: f64) -> f64 {
    (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

/// Finds the zero of a decreasing function by bisection.
fn root(function: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    while high - low > 1e-7 {
        let middle = f64::midpoint(low, high);
        *(if function(middle) > 0.0 { &mut low } else { &mut high }) = middle;
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use proptest::prelude::*;
    use rand::Rng;

    /// Five equal looks with 2.5% on one side, as tabulated by Proschan, Lan and Wittes (2006), *Statistical Monitoring of Clinical
    /// Trials*, and printed by `ldbounds` for R.
    #[test]
    fn bounds_are_the_published_ones() {
        for (spending, expected) in [
            (Spending::ObrienFleming, &[4.8769, 3.3569, 2.6803, 2.2898, 2.0310][..]),
            (Spending::Pocock, &[2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
            (Spending::ObrienFleming, &[1.959_964]),
        ] {
            let looks = expected.len();
            let shares: Vec<f64> = (1..=looks).map(|look| look as f64 / looks as f64).collect();
            let found = critical_values(spending, &shares);
            assert_eq!(found.len(), looks);
            found.iter().zip(expected).for_each(|(own, other)| assert_close(*own, *other, 2e-3));
        }
    }

    #[test]
    fn looks_double_up_to_the_test_set_and_the_seed_sets_the_order() {
        let look_sizes = |segments, looks| doubling(segments, looks, 48);
        assert_eq!(look_sizes(1_725, 6), [54, 108, 216, 432, 863, 1_725]);
        assert_eq!(look_sizes(96, 6), [48, 96]);
        assert_eq!(look_sizes(95, 6), [48, 95]);
        assert_eq!((look_sizes(94, 6), look_sizes(1, 6), look_sizes(500, 1)), (vec![94], vec![1], vec![500]));
        let mut order = sampling_order(50, 3);
        assert_ne!(order, sampling_order(50, 4));
        assert_eq!(order, sampling_order(50, 3));
        order.sort_unstable();
        assert!(order.into_iter().eq(0..50));
    }

    /// Simulates looks at a growing sum of independent normal variables.
    #[test]
    fn one_in_forty_samples_crosses_a_bound_on_each_side() {
        const TRIALS: usize = 40_000;
        let shares = [0.1, 0.25, 0.3, 0.7, 1.0];
        for spending in Spending::ALL {
            let values = critical_values(spending, &shares);
            let (mut random, normal) = (ChaCha8Rng::seed_from_u64(5), Normal::standard());
            let mut crosses = || {
                let (mut sum, mut before) = (0.0, 0.0);
                shares.iter().zip(&values).any(|(&share, &value)| {
                    let noise = normal.inverse_cdf(random.random::<f64>());
                    sum += f64::sqrt(share - before) * noise;
                    before = share;
                    sum / f64::sqrt(share) > value
                })
            };
            let found = (0..TRIALS).filter(|_| crosses()).count() as f64 / TRIALS as f64;
            let error = (SIDE * (1.0 - SIDE) / TRIALS as f64).sqrt();
            assert!((found - SIDE).abs() < 3.0 * error, "{}: {found}", spending.name());
        }
    }

    proptest! {
        #[test]
        fn the_error_spent_grows_with_the_information_up_to_the_total(one in 0.001..1.0_f64, other in 0.001..1.0_f64) {
            for spending in Spending::ALL {
                let (low, high) = (spending.spent(one.min(other)), spending.spent(one.max(other)));
                prop_assert!(0.0 <= low && low <= high && high <= SIDE + 1e-12);
                prop_assert!((spending.spent(1.0) - SIDE).abs() < 1e-9);
            }
        }
    }
}
