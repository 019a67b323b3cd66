//! Agreement of replicates: trainings of one model that differ in their seed alone.
//!
//! Shrout and Fleiss (1979), *Intraclass Correlations: Uses in Assessing Rater Reliability*, Psychological Bulletin 86, 420-428:
//! each replicate rates the same heads by what masking them costs.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::bootstrap::{Interval, draw, percentile_interval};
use crate::correlation::pearson;
use crate::reliability::Swept;
use crate::{Error, Segments};

/// Resamples of the interval.
const RESAMPLES: usize = 500;

/// How far replicates agree on what their heads cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// Intraclass correlation ICC(3,1), at most 1: the share of the variance between heads that all replicates have in common.
    pub intraclass: f64,
    /// Its 95 % interval over other test sets of the same kind and size and other trainings; absent with two replicates. In simulation
    /// it holds the true share in about 90 % of cases with five replicates, and in about 80 % with three.
    pub interval: Option<Interval>,
    /// Pearson's r of each two replicates, where it is defined.
    pub pairs: Vec<f64>,
}

/// Agreement of replicates on the costs of the same heads; absent with fewer than two replicates or heads, or if all heads cost the
/// same.
///
/// ICC(3,1) is (B - E) / (B + (k - 1) E), with the mean squares B between heads and E of the rest, which is the mean covariance of
/// two replicates over their mean variance. The interval resamples the segments, which all replicates share, and the replicates; of
/// those drawn, pairs of one replicate with itself do not count, since they agree perfectly. Resampling adds noise, which draws the
/// correlation towards 0: the percentiles are moved by the bias that the resamples show on average.
///
/// - `replicates`: the same heads masked, on the same segments
///
/// # Errors
/// If the replicates have other numbers of heads or segments, there are no segments, or a metric of two classes meets a class above
/// 1.
///
/// # Panics
/// If a variant covers other segments than its base or has another metric.
pub fn agreement(replicates: &[Swept<'_>], seed: u64) -> Result<Option<Agreement>, Error> {
    let Some(first) = replicates.first() else { return Ok(None) };
    let shape = |swept: &Swept<'_>| (swept.variants.len(), swept.base.len());
    if replicates.iter().any(|swept| shape(swept) != shape(first)) {
        return Err(Error::Invalid("replicates must have the same heads and segments".to_owned()));
    }
    let costs = replicates.iter().map(|swept| Costs::of(swept, seed)).collect::<Result<Vec<_>, _>>()?;
    let of_all = vec![1; costs.len()];
    let on_test_set: Vec<&[f64]> = costs.iter().map(|costs| costs.on_test_set.as_slice()).collect();
    let Some(intraclass) = intraclass(&on_test_set, &of_all) else { return Ok(None) };
    let mut lots = ChaCha8Rng::seed_from_u64(seed);
    let resampled: Vec<f64> = (0..RESAMPLES)
        .filter_map(|resample| {
            let costs: Vec<&[f64]> = costs.iter().map(|costs| costs.resampled[resample].as_slice()).collect();
            self::intraclass(&costs, &drawn(costs.len(), &mut lots))
        })
        .collect();
    let bias = resampled.iter().sum::<f64>() / resampled.len() as f64 - intraclass;
    let interval = percentile_interval(&resampled).filter(|_| costs.len() > 2);
    let interval = interval.map(|Interval { low, high }| Interval {
        low: (low - bias).min(intraclass),
        high: (high - bias).clamp(intraclass, 1.0),
    });
    let pairs = (0..on_test_set.len()).flat_map(|one| (0..one).map(move |other| [one, other]));
    let pairs = pairs.filter_map(|pair| {
        let [one, other] = pair.map(|place| on_test_set[place]);
        Some(pearson(one, other).ok()?.coefficient)
    });
    Ok(Some(Agreement { intraclass, interval, pairs: pairs.collect() }))
}

/// Change of the score by masking each head of one replicate.
struct Costs {
    on_test_set: Vec<f64>,
    /// The same on each resample.
    resampled: Vec<Vec<f64>>,
}

impl Costs {
    fn of(swept: &Swept<'_>, seed: u64) -> Result<Self, Error> {
        let segments = swept.base.len();
        let scores = swept.base.weighted(swept.variants, RESAMPLES, |stream| draw(segments, seed, stream))?;
        let of = |resample: usize| -> Vec<f64> {
            scores.variants.iter().map(|scored| scored[resample] - scores.base[resample]).collect()
        };
        let base = swept.base.score()?;
        let cost = |variant: &&Segments| Ok::<_, Error>(variant.score()? - base);
        Ok(Self {
            on_test_set: swept.variants.iter().map(cost).collect::<Result<_, _>>()?,
            resampled: (0..RESAMPLES).map(of).collect(),
        })
    }
}

/// Number of times that each replicate is drawn, of as many draws with at least two different ones.
fn drawn(replicates: usize, lots: &mut ChaCha8Rng) -> Vec<usize> {
    loop {
        let mut times = vec![0; replicates];
        (0..replicates).for_each(|_| times[lots.random_range(0..replicates)] += 1);
        if times.iter().filter(|&&times| times > 0).count() > 1 {
            return times;
        }
    }
}

/// The mean covariance of two replicates over their mean variance, each counted as many `times`; absent where it is undefined.
fn intraclass(costs: &[&[f64]], times: &[usize]) -> Option<f64> {
    let (mut shared, mut pairs, mut own, mut single) = (0.0, 0.0, 0.0, 0.0);
    for (one, &costs_of_one) in costs.iter().enumerate() {
        own += times[one] as f64 * covariance(costs_of_one, costs_of_one);
        single += times[one] as f64;
        for other in 0..one {
            let weight = (times[one] * times[other]) as f64;
            shared += weight * covariance(costs_of_one, costs[other]);
            pairs += weight;
        }
    }
    let found = (shared / pairs) / (own / single);
    // rounding may pass 1 where all replicates agree
    found.is_finite().then_some(found.min(1.0))
}

/// With divisor n, which the ratio does not depend on; 0 where one side does not vary, whatever rounding makes of its mean.
fn covariance(one: &[f64], other: &[f64]) -> f64 {
    if [one, other].iter().any(|costs| costs.iter().all(|&cost| cost == costs[0])) {
        return 0.0;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_of_one, mean_of_other) = (mean(one), mean(other));
    let products = one.iter().zip(other).map(|(one, other)| (one - mean_of_one) * (other - mean_of_other));
    products.sum::<f64>() / one.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use crate::nats::NatsStatistics;

    /// Shrout and Fleiss (1979), Table 2: six targets, four judges; ICC(3,1) = 0.71 by their Table 4.
    #[test]
    fn the_published_example() {
        let judges = [
            [9.0, 6.0, 8.0, 7.0, 10.0, 6.0],
            [2.0, 1.0, 4.0, 1.0, 5.0, 2.0],
            [5.0, 3.0, 6.0, 2.0, 6.0, 4.0],
            [8.0, 2.0, 8.0, 6.0, 9.0, 7.0],
        ];
        let judges: Vec<&[f64]> = judges.iter().map(<[f64; 6]>::as_slice).collect();
        // B = 56.21 / 5 and E = 15.29 / 15
        assert_close(intraclass(&judges, &[1; 4]).unwrap(), 0.7148, 1e-4);
    }

    fn normal(lots: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| lots.random::<f64>()).sum::<f64>() - 6.0
    }

    /// A base, `[replicate][head]` and the common variance: documents of ten tokens each, whose costs are those of the head, which the
    /// replicates share by half, and noise.
    fn simulated(lots: &mut ChaCha8Rng, replicates: usize) -> (Segments, Vec<Vec<Segments>>, f64) {
        const DOCUMENTS: usize = 60;
        let documents = |nats: &mut dyn FnMut() -> f64| {
            let document = |_| NatsStatistics::new(nats(), 10, 10).unwrap();
            Segments::Nats((0..DOCUMENTS).map(document).collect())
        };
        let base = documents(&mut || 30.0);
        let shared: Vec<f64> = (0..40).map(|_| normal(lots)).collect();
        let of_replicate = |lots: &mut ChaCha8Rng| -> Vec<Segments> {
            let of_head = |&shared: &f64| {
                let cost = 30.0 + shared + normal(lots);
                documents(&mut || cost + normal(lots))
            };
            shared.iter().map(of_head).collect()
        };
        (base, (0..replicates).map(|_| of_replicate(lots)).collect(), covariance(&shared, &shared))
    }

    /// With five trainings the interval holds the share of the heads at hand in at least 85 of 100 simulations: their common variance
    /// v of v + 1 + 1 / 60, where 1 is that of single trainings and 1 / 60 the noise of the test set.
    #[test]
    fn the_interval_holds_the_common_share() {
        let mut lots = ChaCha8Rng::seed_from_u64(5);
        let held = (0..100).filter(|_| {
            let (base, replicates, common) = simulated(&mut lots, 5);
            let variants: Vec<Vec<&Segments>> =
                replicates.iter().map(|variants| variants.iter().collect()).collect();
            let swept: Vec<Swept<'_>> =
                variants.iter().map(|variants| Swept { base: &base, variants }).collect();
            let Interval { low, high } = agreement(&swept, 1).unwrap().unwrap().interval.unwrap();
            (low..high).contains(&(common / (common + 1.0 + 1.0 / 60.0)))
        });
        let held = held.count();
        assert!(held >= 85, "{held} of 100");
    }

    #[test]
    fn equal_trainings_agree_perfectly_and_equal_heads_not_at_all() {
        let costs = [-3.71, -4.62, -1.44, -3.8, 0.25, -3.6, -3.68, -2.73];
        let agreement = intraclass(&[costs.as_slice(); 5], &[1; 5]).unwrap();
        assert!(agreement <= 1.0 && agreement > 1.0 - 1e-12, "{agreement}");
        assert_eq!(intraclass(&[[-0.1; 7].as_slice(); 2], &[1; 2]), None);
    }

    #[test]
    fn replicates_of_other_shapes_are_refused_and_a_single_one_agrees_with_nobody() {
        let (base, replicates, _) = simulated(&mut ChaCha8Rng::seed_from_u64(1), 2);
        let [one, other]: [Vec<&Segments>; 2] =
            [replicates[0].iter().collect(), replicates[1][1..].iter().collect()];
        let [one, other] = [&one, &other].map(|variants| Swept { base: &base, variants });
        assert_eq!(agreement(&[one], 1), Ok(None));
        assert!(agreement(&[one, other], 1).unwrap_err().to_string().contains("the same heads"));
    }
}
