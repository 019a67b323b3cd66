//! How far two sweeps could agree at all: what noise leaves of a correlation.
//!
//! Spearman (1904), *The Proof and Measurement of Association between Two Things*, American Journal of Psychology 15,
//! 72-101: the correlation of two measured quantities is that of the quantities themselves times the root of the product of
//! their reliabilities.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::bootstrap::{Interval, Resampled, percentile_interval};
use crate::correlation::pearson;
use crate::{Error, Segments};

/// The 95 % interval of Pearson's r between two sweeps over the same variants on two test sets, each of which is resampled;
/// absent without resamples, or if one side does not vary in a resample.
///
/// Resampling adds as much noise as the test sets have already, which draws all coefficients towards 0. So the percentiles
/// are moved, on Fisher's scale (artanh r, Fisher 1921, Metron 1), until r stands where their median was.
///
/// # Panics
/// If the sweeps differ in their numbers of variants.
pub fn correlation_interval(first: &[Resampled], second: &[Resampled]) -> Option<Interval> {
    assert_eq!(first.len(), second.len(), "both sweeps are over the same variants");
    let resamples = first.iter().chain(second).map(|test| test.deltas.len()).min()?;
    let in_resample = |sweep: &[Resampled], resample: usize| -> Vec<f64> {
        sweep.iter().map(|test| test.deltas[resample]).collect()
    };
    let of_resample = |resample| {
        let found = pearson(&in_resample(first, resample), &in_resample(second, resample));
        found.ok().map(|found| found.coefficient)
    };
    let mut coefficients = (0..resamples).map(of_resample).collect::<Option<Vec<f64>>>()?;
    let interval = percentile_interval(&coefficients)?;
    let deltas = |sweep: &[Resampled]| sweep.iter().map(Resampled::delta).collect::<Vec<f64>>();
    let r = pearson(&deltas(first), &deltas(second)).ok()?.coefficient;
    coefficients.sort_by(f64::total_cmp);
    let shift = r.atanh() - coefficients[resamples / 2].atanh();
    // without noise all are 1 or -1, which no number moves
    let moved = |end: f64| if shift.is_finite() { (end.atanh() + shift).tanh() } else { end };
    Some(Interval { low: moved(interval.low), high: moved(interval.high) })
}

/// The reliability of a sweep's differences, 0 to 1: the share of their variance over the variants that another test set
/// of the same kind would show again.
///
/// The test set is divided into halves at random `splits` times; r is the mean correlation of the differences on both
/// halves, and 2 r / (1 + r) that of two whole test sets (Spearman 1910; Brown 1910, British Journal of Psychology 3); 0
/// where the halves disagree.
/// Absent with fewer than three variants, or where they do not differ on a half.
///
/// # Errors
/// [`Error::Empty`] without segments, [`Error::Class`] if a metric of two classes meets a class above 1.
///
/// # Panics
/// If a variant covers other segments than the base or has another metric.
pub fn split_half(
    base: &Segments,
    variants: &[&Segments],
    splits: usize,
    seed: u64,
) -> Result<Option<f64>, Error> {
    let half = base.len() / 2;
    if half == 0 {
        return Ok(None);
    }
    let shuffled = |stream| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        let mut places: Vec<usize> = (0..base.len()).collect();
        places.shuffle(&mut random);
        places
    };
    let first =
        |stream, times: &mut dyn FnMut(usize)| shuffled(stream)[..half].iter().copied().for_each(times);
    let second =
        |stream, times: &mut dyn FnMut(usize)| shuffled(stream)[half..].iter().copied().for_each(times);
    let (first, second) = (base.weighted(variants, splits, first)?, base.weighted(variants, splits, second)?);
    let deltas = |scores: &crate::bootstrap::Scores| -> Vec<Vec<f64>> {
        (0..variants.len()).map(|variant| scores.deltas(variant)).collect()
    };
    let (first, second) = (deltas(&first), deltas(&second));
    let of_split = |split: usize| {
        let side =
            |deltas: &[Vec<f64>]| deltas.iter().map(|of_variant| of_variant[split]).collect::<Vec<_>>();
        pearson(&side(&first), &side(&second)).ok().map(|found| found.coefficient)
    };
    let coefficients: Option<Vec<f64>> = (0..splits).map(of_split).collect();
    let mean = coefficients.filter(|found| !found.is_empty()).map(|found| mean(&found));
    // A share of variance is not negative.
    Ok(mean.map(|r| r.max(0.0)).map(|r| 2.0 * r / (1.0 + r)))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The greatest correlation that two sweeps of these reliabilities can be expected to show: the root of their product.
/// Absent if one of them is not above 0: then noise is all there is.
pub fn ceiling(first: Option<f64>, second: Option<f64>) -> Option<f64> {
    let (first, second) = (first?, second?);
    (first > 0.0 && second > 0.0).then(|| (first * second).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classification::{ClassificationMetric, Outcome};
    use rand::Rng;

    /// `variants` of 400 examples: variant v is wrong on each with probability `rate(v)`, by lot.
    fn sweep(variants: usize, rate: impl Fn(usize) -> f64, seed: u64) -> (Segments, Vec<Segments>) {
        let mut lot = ChaCha8Rng::seed_from_u64(seed);
        let mut side = |rate: f64| {
            let outcome = |_| Outcome { gold: 1, predicted: usize::from(lot.random::<f64>() >= rate) };
            Segments::Classes((0..400).map(outcome).collect(), ClassificationMetric::Accuracy)
        };
        (side(0.0), (0..variants).map(|variant| side(rate(variant))).collect())
    }

    fn reliability((base, variants): &(Segments, Vec<Segments>)) -> Option<f64> {
        split_half(base, &variants.iter().collect::<Vec<_>>(), 50, 3).unwrap()
    }

    /// Rates from 0.02 to 0.5 differ far more than their errors, at most 0.025; equal rates differ by chance alone.
    #[test]
    fn real_differences_are_reliable_and_noise_is_not() {
        let real = reliability(&sweep(25, |variant| 0.02 * (variant + 1) as f64, 1)).unwrap();
        let noise = reliability(&sweep(25, |_| 0.1, 2)).unwrap();
        assert!((0.95..=1.0).contains(&real), "real differences have a reliability of {real}");
        assert!((0.0..0.6).contains(&noise), "noise has a reliability of {noise}");
        assert_eq!(ceiling(Some(0.25), Some(0.81)), Some(0.45));
        assert_eq!((ceiling(Some(0.0), Some(0.5)), ceiling(None, Some(0.5))), (None, None));
    }

    /// With variance v of the true rates and error variance e, the reliability of 400 examples is v / (v + e): rates 0.1 and
    /// 0.14, half each, have v = 0.0004, and e = 0.12 * 0.88 / 400 (about) = 0.000264: 0.60. Of 300 variants the estimate is
    /// within 0.1.
    #[test]
    fn reliability_is_the_share_of_true_variance() {
        let found = reliability(&sweep(300, |variant| if variant % 2 == 0 { 0.1 } else { 0.14 }, 5)).unwrap();
        assert!((found - 0.602).abs() < 0.1, "{found}");
    }

    #[test]
    fn what_does_not_vary_has_no_reliability() {
        assert_eq!(reliability(&sweep(4, |_| 0.0, 1)), None);
        assert_eq!(reliability(&sweep(2, |variant| 0.2 * variant as f64, 1)), None);
        let one = Segments::Classes(vec![Outcome { gold: 0, predicted: 0 }], ClassificationMetric::Accuracy);
        assert_eq!(split_half(&one, &[&one, &one, &one], 5, 1), Ok(None));
    }

    #[test]
    fn the_interval_of_a_correlation_holds_it() {
        let resampled = |seed| {
            let (base, variants) = sweep(25, |variant| 0.02 * (variant + 1) as f64, seed);
            base.resampled(&variants.iter().collect::<Vec<_>>(), 200, seed).unwrap()
        };
        let (first, second) = (resampled(1), resampled(2));
        let side = |sweep: &[Resampled]| sweep.iter().map(Resampled::delta).collect::<Vec<_>>();
        let r = pearson(&side(&first), &side(&second)).unwrap().coefficient;
        let interval = correlation_interval(&first, &second).unwrap();
        assert!(interval.low < r && r < interval.high, "{r} and {interval:?}");
        assert!(interval.low > 0.9 && interval.high <= 1.0, "{interval:?}");
        assert_eq!(correlation_interval(&first, &first), Some(Interval { low: 1.0, high: 1.0 }));
        assert_eq!(correlation_interval(&first[..2], &second[..2]), None);
        assert_eq!(correlation_interval(&[], &[]), None);
    }

    /// Where noise is as large as what differs, resampled coefficients are far below r, which the interval must hold.
    #[test]
    fn the_interval_holds_a_correlation_of_noisy_sweeps() {
        for seed in 1..20 {
            let resampled = |seed| {
                let (base, variants) = sweep(40, |variant| 0.004 * (variant + 1) as f64, seed);
                base.resampled(&variants.iter().collect::<Vec<_>>(), 200, seed).unwrap()
            };
            let (first, second) = (resampled(seed), resampled(100 + seed));
            let side = |sweep: &[Resampled]| sweep.iter().map(Resampled::delta).collect::<Vec<_>>();
            let r = pearson(&side(&first), &side(&second)).unwrap().coefficient;
            let interval = correlation_interval(&first, &second).unwrap();
            assert!(interval.low <= r && r <= interval.high, "{seed}: {r} and {interval:?}");
            assert!((-1.0..=1.0).contains(&interval.low) && (-1.0..=1.0).contains(&interval.high));
        }
    }
}
