//! Mean effects from a small sample, with predictions on a large one as a control variate.
//!
//! The regression estimator of survey sampling (Cochran 1977, *Sampling Techniques*, Chapter 7) with two samples: the effect of masking a
//! head is measured on a random sample S of n segments, and predicted on all N segments of a test set that contains S. If predictions and
//! effects are correlated, the mean prediction over all segments corrects for what is special about S. The estimate is consistent for any
//! quality of the predictions; if they are worthless it is the plain mean.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::Interval;

/// A sampled segment: the change of a number, such as nats, and its denominator, such as tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sampled {
    /// Measured change.
    pub effect: f64,
    /// Predicted change; 0 without predictions.
    pub predicted: f64,
    /// Size of the segment, above 0; 1 for means over segments.
    pub size: f64,
}

impl Sampled {
    /// Sums segments that are not independent into one.
    pub(crate) fn sum(segments: impl IntoIterator<Item = Self>) -> Self {
        segments.into_iter().fold(Self::default(), |sum, own| Self {
            effect: sum.effect + own.effect,
            predicted: sum.predicted + own.predicted,
            size: sum.size + own.size,
        })
    }
}

/// A mean effect with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Estimate of Σ effect / Σ size over the population.
    pub effect: f64,
    /// Correlation of effect and prediction on the sample; `None` if one of them does not vary.
    pub correlation: Option<f64>,
    /// Variance of the residuals' mean on the sample.
    residual: f64,
    /// Variance of the predictions' mean on all segments, times the squared slope.
    predicted: f64,
    skewness: f64,
    sample: f64,
    /// Number of parameters estimated from the sample.
    parameters: f64,
}

impl Estimate {
    /// Estimates the mean effect; `None` with fewer than three segments.
    ///
    /// With ratios R_d and R_x of effects and predictions over sizes m, deviations u_i = d_i - m_i R_d and w_i = x_i - m_i R_x on S, and
    /// the slope b = Σ u w / Σ w², the estimate is R_d - b (R_x on S - R_x on all). Its variance is the variance of the mean of the
    /// leave-one-out residuals (u_i - b w_i) / (1 - h_i) (HC3: MacKinnon and White 1985, *Some Heteroskedasticity-Consistent Covariance
    /// Matrix Estimators with Improved Finite Sample Properties*, Journal of Econometrics 29, 305-325) plus b² times the variance of R_x on
    /// all.
    ///
    /// - `sample`: measured segments, drawn at random from all
    /// - `all`: predictions and sizes of all segments; empty without predictions
    ///
    /// Assumes that segments are independent.
    pub fn new(sample: &[Sampled], all: &[Sampled]) -> Option<Self> {
        let parameters = if all.is_empty() { 1.0 } else { 2.0 };
        if sample.len() < 3 {
            return None;
        }
        let size: f64 = sample.iter().map(|own| own.size).sum();
        let ratio = |of: &[Sampled], number: fn(&Sampled) -> f64| {
            of.iter().map(number).sum::<f64>() / of.iter().map(|own| own.size).sum::<f64>()
        };
        let (effect, on_sample) = (ratio(sample, |own| own.effect), ratio(sample, |own| own.predicted));
        let deviations: Vec<[f64; 2]> = sample
            .iter()
            .map(|own| [own.effect - own.size * effect, own.predicted - own.size * on_sample])
            .collect();
        let sum = |of: &dyn Fn(f64, f64) -> f64| deviations.iter().map(|&[u, w]| of(u, w)).sum::<f64>();
        let (products, squares, spread) = (sum(&|u, w| u * w), sum(&|_, w| w * w), sum(&|u, _| u * u));
        let is_constant = squares <= 1e-24 * sample.iter().map(|own| own.predicted.powi(2)).sum::<f64>();
        let slope = if all.is_empty() || is_constant { 0.0 } else { products / squares };
        let residuals = sample.iter().zip(&deviations).map(|(own, &[u, w])| {
            let leverage = own.size / size + if slope == 0.0 { 0.0 } else { w * w / squares };
            (u - slope * w) / (1.0 - leverage.min(0.999)) / size
        });
        let (mut residual, mut third) = (0.0, 0.0);
        for own in residuals {
            residual += own * own;
            third += own.powi(3);
        }
        let (mut predicted, mut on_all) = (0.0, on_sample);
        if slope != 0.0 {
            on_all = ratio(all, |own| own.predicted);
            let whole: f64 = all.iter().map(|own| own.size).sum();
            for own in all {
                let deviation = slope * (own.predicted - own.size * on_all) / whole;
                predicted += deviation * deviation;
                third += deviation.powi(3);
            }
        }
        let variance = residual + predicted;
        Some(Self {
            effect: effect - slope * (on_sample - on_all),
            correlation: (slope != 0.0 && spread > 0.0).then(|| products / (squares * spread).sqrt()),
            residual,
            predicted,
            skewness: if variance > 0.0 { third / variance.powf(1.5) } else { 0.0 },
            sample: sample.len() as f64,
            parameters,
        })
    }

    /// Returns the variance that the estimate would have with a sample `growth` times as large.
    pub fn variance(&self, growth: f64) -> f64 {
        self.residual / growth + self.predicted
    }

    /// Returns the interval that misses the effect with the probability `side` on each side: Student's t, corrected for skewness by the
    /// monotone cubic of Hall (1992, *On the Removal of Skewness by Transformation*, Journal of the Royal Statistical Society B 54,
    /// 221-228).
    pub fn interval(&self, side: f64) -> Option<Interval> {
        let students = StudentsT::new(0.0, 1.0, self.sample - self.parameters).ok()?;
        let quantile = -students.inverse_cdf(side.max(1e-12));
        let (error, third) = (self.variance(1.0).sqrt(), self.skewness / 3.0);
        let skewed = |quantile: f64| {
            if third.abs() < 1e-6 {
                return quantile;
            }
            ((1.0 + 3.0 * third * (quantile - third / 2.0)).cbrt() - 1.0) / third
        };
        Some(Interval {
            low: self.effect - error * skewed(quantile),
            high: self.effect - error * skewed(-quantile),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use statrs::distribution::Normal;

    fn sampled(effect: f64, predicted: f64) -> Sampled {
        Sampled { effect, predicted, size: 1.0 }
    }

    /// Effects 1 to 5: mean 3, squares 10, so variance 10 / 25 / 0.64 with HC3's factor (1 - 1/5)^-2 (5/4 would be the usual one).
    #[test]
    fn without_predictions_it_is_the_mean() {
        let sample = [1.0, 2.0, 3.0, 4.0, 5.0].map(|effect| sampled(effect, 0.0));
        let found = Estimate::new(&sample, &[]).unwrap();
        assert_close(found.effect, 3.0, 1e-12);
        assert_close(found.variance(1.0), 10.0 / 25.0 / 0.64, 1e-12);
        assert_close(found.variance(2.0), 5.0 / 25.0 / 0.64, 1e-12);
        // the 0.975 quantile of t with 4 degrees of freedom is 2.776445; nothing is skewed
        assert_close(found.interval(0.025).unwrap().high, 3.0 + 2.776_445 * 0.625_f64.sqrt(), 1e-6);
        assert_eq!(found.correlation, None);
        assert_eq!(Estimate::new(&sample, &[sampled(0.0, 0.0); 9]).unwrap().effect, found.effect);
        assert_eq!(Estimate::new(&sample[..2], &[]), None);

        // effects are shares of sizes
        let own = |effect, size| Sampled { effect, predicted: 0.0, size };
        let found = Estimate::new(&[own(2.0, 1.0), own(4.0, 2.0), own(9.0, 3.0)], &[]).unwrap();
        assert_close(found.effect, 2.5, 1e-12);
        // deviations -0.5, -1, 1.5 with leverages 1/6, 1/3, 1/2
        let variance = (0.6_f64.powi(2) + 1.5_f64.powi(2) + 3.0_f64.powi(2)) / 36.0;
        assert_close(found.variance(1.0), variance, 1e-12);
    }

    /// Predictions of twice the effect leave no residual, only the variance of the mean over all segments.
    #[test]
    fn exact_predictions_give_the_mean_over_all_segments() {
        let effects = [0.3, -0.1, 0.8, 0.2, 0.9, -0.4, 0.5];
        let all: Vec<Sampled> = effects.iter().map(|&effect| sampled(effect, 2.0 * effect)).collect();
        let found = Estimate::new(&all[..4], &all).unwrap();
        let mean = effects.iter().sum::<f64>() / 7.0;
        assert_close(found.effect, mean, 1e-12);
        assert_close(found.correlation.unwrap(), 1.0, 1e-12);
        let squares: f64 = effects.iter().map(|effect| (effect - mean).powi(2)).sum();
        assert_close(found.variance(1.0), squares / 49.0, 1e-12);
        assert_close(found.variance(100.0), found.variance(1.0), 1e-12);
    }

    /// With skewness 0.3 and the 0.975 quantile 2.008559 of t with 50 degrees of freedom: ((1 + 0.3 (±2.008559 - 0.05))^(1/3) - 1) / 0.1.
    #[test]
    fn skewness_moves_both_ends() {
        let [skewness, sample, parameters] = [0.3, 52.0, 2.0];
        let found = Estimate {
            effect: 0.0,
            correlation: None,
            residual: 1.0,
            predicted: 0.0,
            skewness,
            sample,
            parameters,
        };
        let Interval { low, high } = found.interval(0.025).unwrap();
        assert_close(low, -1.665699, 1e-5);
        assert_close(high, 2.741423, 1e-5);
    }

    /// Returns the error rate on each side, nominally 2.5%: skewed effects with noisy predictions from a population with known mean.
    fn errors(exponent: f64, size: usize) -> [f64; 2] {
        const TRIALS: usize = 4_000;
        let (mut random, normal) = (ChaCha8Rng::seed_from_u64(11), Normal::standard());
        let mut draw = || normal.inverse_cdf(random.random::<f64>());
        let mean = (exponent * exponent / 2.0).exp();
        let mut errors = [0_usize; 2];
        for _ in 0..TRIALS {
            let mut one = || {
                let (shared, own) = (draw(), draw());
                let effect = (exponent * shared).exp();
                sampled(effect, effect + 0.5 * exponent * own)
            };
            let all: Vec<Sampled> = (0..10 * size).map(|_| one()).collect();
            let found = Estimate::new(&all[..size], &all).unwrap().interval(0.025).unwrap();
            errors[0] += usize::from(found.low > mean);
            errors[1] += usize::from(found.high < mean);
        }
        errors.map(|count| count as f64 / TRIALS as f64)
    }

    #[test]
    fn intervals_keep_their_error_on_skewed_effects() {
        for (exponent, most) in [(0.1, 0.0325), (0.5, 0.035)] {
            let found = errors(exponent, 50);
            assert!(found.iter().all(|&error| error > 0.01 && error < most), "{exponent}: {found:?}");
        }
    }

    proptest! {
        #[test]
        fn shifting_and_scaling_predictions_changes_nothing(
            pairs in prop::collection::vec((-1.0..1.0_f64, -1.0..1.0_f64), 12..40), scale in 0.1..9.0_f64, shift in -5.0..5.0_f64,
        ) {
            let all: Vec<Sampled> = pairs.iter().map(|&(effect, predicted)| sampled(effect, predicted)).collect();
            let moved: Vec<Sampled> =
                pairs.iter().map(|&(effect, predicted)| sampled(effect, -scale * predicted + shift)).collect();
            let [one, other] = [&all, &moved].map(|all| Estimate::new(&all[..8], all).unwrap());
            prop_assert!((one.effect - other.effect).abs() < 1e-9);
            prop_assert!((one.variance(1.0) - other.variance(1.0)).abs() < 1e-9 * one.variance(1.0).max(1.0));
        }
    }
}
