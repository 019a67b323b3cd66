//! Agreement of runs that differ only in their seed on the cost of masking each head, and the heads on which they differ.
//!
//! Only runs from one checkpoint can be compared head by head. In models trained from scratch, heads have no identity across runs: two
//! heads share a number by chance.
//!
//! All runs are scored on common segments and share their noise, which a correlation over these segments would count as agreement.
//! Therefore one run is correlated on some segments with another run on others, and the result is divided by the corresponding quantity
//! within runs: Spearman's correction for attenuation, with Cronbach's (1951) mean over all ways to divide the test set.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use crate::adjust::holm;
use crate::bootstrap::draw;
use crate::interval::Interval;
use crate::reliability::{SweepSegments, jackknife, mean};
use crate::{Error, Segments};

const RESAMPLES: usize = 2_000;

/// Costs of heads differ by more than chance if their variance that groups of segments share exceeds this many standard errors.
const SIGNAL: f64 = 2.0;

/// Agreement of runs on the cost of masking their heads.
#[derive(Debug, Clone, PartialEq)]
pub enum Agreement {
    /// The test set does not show that heads differ at all, so there is nothing to agree on.
    NoSignal,
    /// The test set shows that heads differ.
    Found {
        /// Correlation of the true costs of heads between two runs, with the noise of the test set removed: mean covariance of two runs
        /// over mean variance. Sampling error can move it beyond 1.
        correlation: f64,
        /// 95% interval over other runs and other test sets of equal size; `None` with two runs, beyond ±0.995, or if a run has too little
        /// signal.
        interval: Option<Interval>,
        /// Correlation of each pair of runs.
        pairs: Vec<f64>,
    },
}

/// Correlates the costs of masking heads between runs; `None` with fewer than two runs, three heads, or three segments.
///
/// The segments are divided into G = 20 groups, and C_ab is the mean over groups g ≠ h of the covariance over heads of run a on group g
/// with run b on group h. The correlation is the mean C_ab of two runs over the mean C_aa, averaged over 50 divisions. There is a signal if
/// the mean C_aa is more than twice its standard error, by the jackknife over groups.
///
/// The interval is tanh(z ± t s), z = artanh r (Fisher 1921), with the t quantile for one degree of freedom fewer than runs. s² adds the
/// jackknife over runs, for other seeds, and the jackknife over groups, for other segments.
///
/// # Panics
/// If a variant covers different segments from its base or has a different metric.
pub fn agreement(runs: &[SweepSegments<'_>], seed: u64) -> Result<Option<Agreement>, Error> {
    check_shapes(runs)?;
    if runs.len() < 2 || runs[0].variants.len() < 3 || runs[0].base.len() < 3 {
        return Ok(None);
    }
    let dealt = runs.iter().map(|run| run.without_groups(seed, 0)).collect::<Result<Vec<_>, _>>()?;
    let of_deal = |deal: usize| Covariances::of(dealt.iter().map(|run| run[deal].added()).collect());
    let deals: Vec<Covariances> = (0..dealt[0].len()).map(of_deal).collect();
    let whole = mean_of(&deals, |deal| deal.whole.clone());
    let all: Vec<usize> = (0..runs.len()).collect();
    let signal = mean(&all.iter().map(|&run| whole[run][run]).collect::<Vec<_>>());
    let jackknife_of_groups = |statistic: &dyn Fn(&Matrix) -> f64| {
        let variance =
            |deal: &Covariances| jackknife(&deal.without.iter().map(statistic).collect::<Vec<_>>());
        mean(&deals.iter().map(variance).collect::<Vec<_>>())
    };
    let signal_variance =
        jackknife_of_groups(&|own| mean(&all.iter().map(|&run| own[run][run]).collect::<Vec<_>>()));
    if signal.is_nan() || signal <= SIGNAL * signal_variance.sqrt() {
        return Ok(Some(Agreement::NoSignal));
    }
    let correlation = correlation(&whole, &all);
    let pairs = all.iter().flat_map(|&one| (0..one).map(move |other| [other, one]));
    let pairs = pairs.map(|pair| self::correlation(&whole, &pair)).collect();
    let of_runs: Vec<f64> = all
        .iter()
        .map(|left_out| {
            fisher_z(self::correlation(
                &whole,
                &all.iter().copied().filter(|run| run != left_out).collect::<Vec<_>>(),
            ))
        })
        .collect();
    let variance = jackknife(&of_runs) + jackknife_of_groups(&|own| fisher_z(self::correlation(own, &all)));
    let has_interval = runs.len() > 2 && correlation.abs() < LARGEST && variance.is_finite();
    let interval = StudentsT::new(0.0, 1.0, runs.len() as f64 - 1.0).ok().filter(|_| has_interval).map(|t| {
        let (z, reach) = (fisher_z(correlation), t.inverse_cdf(0.975) * variance.sqrt());
        Interval { low: (z - reach).tanh(), high: (z + reach).tanh() }
    });
    Ok(Some(Agreement::Found { correlation, interval, pairs }))
}

/// `[run][run]`
type Matrix = Vec<Vec<f64>>;

/// Covariances over heads of each pair of runs, on different groups of segments.
struct Covariances {
    whole: Matrix,
    /// `[group]`, without this group.
    without: Vec<Matrix>,
}

impl Covariances {
    /// - `added`: `[run][group][head]`
    fn of(mut added: Vec<Vec<Vec<f64>>>) -> Self {
        for of_heads in added.iter_mut().flatten() {
            let mean = mean(of_heads);
            of_heads.iter_mut().for_each(|own| *own -= mean);
        }
        let groups = added[0].len();
        let mut found = Self {
            whole: vec![vec![0.0; added.len()]; added.len()],
            without: vec![vec![vec![0.0; added.len()]; added.len()]; groups],
        };
        for (a, one) in added.iter().enumerate() {
            for (b, other) in added.iter().enumerate() {
                // [group of the first run, group of the second run]
                let of_pairs: Vec<Vec<f64>> =
                    one.iter().map(|of_g| other.iter().map(|of_h| dot(of_g, of_h)).collect()).collect();
                let row = |g: usize| of_pairs[g].iter().sum::<f64>() - of_pairs[g][g];
                let column = |h: usize| of_pairs.iter().map(|of_g| of_g[h]).sum::<f64>() - of_pairs[h][h];
                let total: f64 = (0..groups).map(row).sum();
                found.whole[a][b] = total / (groups * (groups - 1)) as f64;
                for (left_out, without) in found.without.iter_mut().enumerate() {
                    let pairs = ((groups - 1) * (groups - 2)) as f64;
                    without[a][b] = (total - row(left_out) - column(left_out)) / pairs;
                }
            }
        }
        found
    }
}

/// Returns the mean covariance of two different runs over their mean variance; NaN if the variance is not above 0.
fn correlation(covariances: &Matrix, runs: &[usize]) -> f64 {
    let own = mean(&runs.iter().map(|&run| covariances[run][run]).collect::<Vec<_>>());
    let pairs = runs
        .iter()
        .flat_map(|&one| runs.iter().filter(move |&&other| other != one).map(move |&other| (one, other)));
    let shared = mean(&pairs.map(|(one, other)| covariances[one][other]).collect::<Vec<_>>());
    if own > 0.0 { shared / own } else { f64::NAN }
}

/// Returns Fisher's z, finite even if sampling error moves a correlation to 1 or beyond; NaN without a signal.
fn fisher_z(correlation: f64) -> f64 {
    correlation.clamp(-LARGEST, LARGEST).atanh()
}

/// Largest correlation that has an interval.
const LARGEST: f64 = 0.995;

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn mean_of(deals: &[Covariances], matrix: impl Fn(&Covariances) -> Matrix) -> Matrix {
    let mut sum = matrix(&deals[0]);
    for deal in &deals[1..] {
        let next = matrix(deal);
        sum.iter_mut().flatten().zip(next.iter().flatten()).for_each(|(sum, own)| *sum += own);
    }
    sum.iter_mut().flatten().for_each(|sum| *sum /= deals.len() as f64);
    sum
}

/// Test of whether masking one head has different costs in different runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heterogeneity {
    /// P-value of the Wald test that the cost is equal in all runs.
    pub p_value: f64,
    /// The p-value adjusted by Holm over the heads.
    pub p_adjusted: f64,
}

/// Tests for each head whether masking it has equal costs in all runs, in the order of the variants.
///
/// Wald test: with the costs x in k runs, their covariance V from bootstrap resamples of the segments that all runs share, and the
/// contrasts C of each run with the first, W = (C x)ᵀ (C V Cᵀ)⁻¹ (C x). Its distribution is that of Hotelling's T² on n segments (Hotelling
/// 1931, Annals of Mathematical Statistics 2): since V has the divisor n² and not n (n - 1), (n - p) / (p n) W is F with p and n - p
/// degrees of freedom, p = k - 1. Contrasts that do not vary are ignored.
pub fn heterogeneity(runs: &[SweepSegments<'_>], seed: u64) -> Result<Vec<Heterogeneity>, Error> {
    check_shapes(runs)?;
    let Some(heads) = runs.first().map(|run| run.variants.len()).filter(|_| runs.len() > 1) else {
        return Ok(Vec::new());
    };
    let costs = runs.iter().map(|run| Costs::of(run, seed)).collect::<Result<Vec<_>, _>>()?;
    let p_values: Vec<f64> = (0..heads).map(|head| wald(&costs, head, runs[0].base.len())).collect();
    let adjusted = holm(&p_values);
    let of = |(p_value, p_adjusted)| Heterogeneity { p_value, p_adjusted };
    Ok(p_values.into_iter().zip(adjusted).map(of).collect())
}

/// Effects of masking the heads of one run.
struct Costs {
    /// `[head]`
    on_test_set: Vec<f64>,
    /// `[head][resample]`
    resampled: Vec<Vec<f64>>,
}

impl Costs {
    fn of(run: &SweepSegments<'_>, seed: u64) -> Result<Self, Error> {
        let segments = run.base.len();
        let scores = run.base.weighted(run.variants, RESAMPLES, |stream| draw(segments, seed, stream))?;
        let base = run.base.score()?;
        let cost = |variant: &&Segments| Ok::<_, Error>(variant.score()? - base);
        Ok(Self {
            on_test_set: run.variants.iter().map(cost).collect::<Result<_, _>>()?,
            resampled: (0..run.variants.len()).map(|head| scores.deltas(head)).collect(),
        })
    }
}

fn wald(costs: &[Costs], head: usize, segments: usize) -> f64 {
    let contrast = |run: &Costs| -> (f64, Vec<f64>) {
        let resampled =
            run.resampled[head].iter().zip(&costs[0].resampled[head]).map(|(own, first)| own - first);
        (run.on_test_set[head] - costs[0].on_test_set[head], resampled.collect())
    };
    let mut contrasts: Vec<(f64, Vec<f64>)> = costs[1..].iter().map(contrast).collect();
    for (_, resampled) in &mut contrasts {
        let mean = mean(resampled);
        resampled.iter_mut().for_each(|own| *own -= mean);
    }
    // Gram-Schmidt: each contrast minus its projection on the preceding ones
    let (mut statistic, mut degrees) = (0.0, 0);
    let mut before: Vec<(f64, Vec<f64>, f64)> = Vec::new();
    for (mut difference, mut resampled) in contrasts {
        let whole = dot(&resampled, &resampled);
        for (other, of_other, squares) in &before {
            let slope = dot(&resampled, of_other) / squares;
            difference -= slope * other;
            resampled.iter_mut().zip(of_other).for_each(|(own, other)| *own -= slope * other);
        }
        let squares = dot(&resampled, &resampled);
        if squares > 1e-9 * whole {
            statistic += difference * difference * (RESAMPLES - 1) as f64 / squares;
            degrees += 1;
            before.push((difference, resampled, squares));
        }
    }
    let (segments, degrees) = (segments as f64, f64::from(degrees));
    let scaled = statistic * (segments - degrees) / (degrees * segments);
    FisherSnedecor::new(degrees, segments - degrees).map_or(1.0, |distribution| distribution.sf(scaled))
}

fn check_shapes(runs: &[SweepSegments<'_>]) -> Result<(), Error> {
    let shape = |run: &SweepSegments<'_>| (run.variants.len(), run.base.len());
    if runs.iter().any(|run| shape(run) != shape(&runs[0])) {
        return Err(Error::Invalid("runs must have the same heads and segments".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nats::NatsStatistics;
    use crate::{assert_close, normal};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const DOCUMENTS: usize = 60;
    const HEADS: usize = 40;

    /// A base and `[run][head]`.
    type Simulated = (Segments, Vec<Vec<Segments>>);

    /// Returns documents of ten tokens.
    fn documents(mut nats: impl FnMut(usize) -> f64) -> Segments {
        let document = |place| NatsStatistics::new(nats(place), 10, 10).unwrap();
        Segments::Nats((0..DOCUMENTS).map(document).collect())
    }

    /// Costs of heads have variance 1, of which runs share `common`; runs share all noise of documents, with deviation `noise`.
    fn simulated(lots: &mut ChaCha8Rng, runs: usize, common: f64, noise: f64) -> Simulated {
        let base = documents(|_| 90.0);
        // mean exactly 0 and variance exactly 1, so that these heads have the correlation `common`
        let drawn: Vec<f64> = (0..HEADS).map(|_| normal(lots)).collect();
        let center = mean(&drawn);
        let spread = mean(&drawn.iter().map(|own| (own - center).powi(2)).collect::<Vec<_>>()).sqrt();
        let shared: Vec<f64> = drawn.iter().map(|own| (own - center) / spread).collect();
        let of_documents: Vec<Vec<f64>> =
            (0..HEADS).map(|_| (0..DOCUMENTS).map(|_| noise * normal(lots)).collect()).collect();
        let mut of_run = || -> Vec<Segments> {
            let of_head = |head: usize| {
                let cost = common.sqrt() * shared[head] + (1.0 - common).sqrt() * normal(lots);
                documents(|place| 90.0 + cost + of_documents[head][place])
            };
            (0..HEADS).map(of_head).collect()
        };
        (base, (0..runs).map(|_| of_run()).collect())
    }

    fn with_sweeps<T>((base, runs): &Simulated, ask: impl Fn(&[SweepSegments<'_>]) -> T) -> T {
        let variants: Vec<Vec<&Segments>> = runs.iter().map(|run| run.iter().collect()).collect();
        let sweeps: Vec<SweepSegments<'_>> =
            variants.iter().map(|variants| SweepSegments { base, variants }).collect();
        ask(&sweeps)
    }

    fn agreement_of(simulated: &Simulated) -> Agreement {
        with_sweeps(simulated, |sweeps| agreement(sweeps, 1).unwrap().unwrap())
    }

    /// Noise with the standard deviation 8 / √60 over 60 documents, shared by all runs, would make unrelated runs agree with r = 0.5. The
    /// correction leaves 0 on average, and the interval contains 0.
    #[test]
    fn noise_that_runs_share_is_not_agreement() {
        let mut lots = ChaCha8Rng::seed_from_u64(3);
        let (mut sum, mut held, mut found) = (0.0, 0, 0);
        for _ in 0..40 {
            let agreement = agreement_of(&simulated(&mut lots, 4, 0.0, 8.0));
            if let Agreement::Found { correlation, interval, .. } = agreement {
                let ends = interval.unwrap();
                found += 1;
                held += usize::from(ends.low < 0.0 && 0.0 < ends.high);
                sum += correlation;
            }
        }
        assert!(found > 20 && (sum / f64::from(found)).abs() < 0.1, "{sum} in {found}");
        assert!(held as f64 >= 0.93 * f64::from(found), "{held} of {found}");
    }

    /// The interval contains the true correlation of costs in at least 93 of 100 simulations.
    #[test]
    fn the_interval_contains_the_true_correlation() {
        for (runs, common, seed, widest) in [(3, 0.5, 5, 1.9), (5, 0.5, 6, 1.0), (8, 0.8, 7, 0.5)] {
            let (mut lots, mut widths) = (ChaCha8Rng::seed_from_u64(seed), Vec::new());
            let held = (0..100).filter(|_| {
                let found = agreement_of(&simulated(&mut lots, runs, common, 2.0));
                let Agreement::Found { interval: Some(ends), .. } = found else { return false };
                widths.push(ends.high - ends.low);
                ends.low < common && common < ends.high
            });
            let held = held.count();
            let width = mean(&widths);
            assert!(held >= 93 && width < widest, "{runs} runs, {common}: {held} of 100, width {width}");
        }
    }

    /// Heads cost nothing apart from noise.
    #[test]
    fn noise_alone_is_no_signal() {
        let mut lots = ChaCha8Rng::seed_from_u64(9);
        let is_silent = |lots: &mut ChaCha8Rng| {
            let mut noise = || documents(|_| 90.0 + normal(lots));
            let base = noise();
            let run: Vec<Segments> = (0..HEADS).map(|_| noise()).collect();
            agreement_of(&(base, vec![run.clone(), run])) == Agreement::NoSignal
        };
        let silent = (0..50).filter(|_| is_silent(&mut lots)).count();
        assert!(silent >= 44, "{silent} of 50");
    }

    /// Holm's p-values over 40 heads: without differences between runs at most 5% of families have one below 0.05, plus two standard errors
    /// of 200 families; a head that costs 5 standard errors more in one run is found.
    #[test]
    fn heads_that_differ_between_runs_are_found_and_others_not() {
        let mut lots = ChaCha8Rng::seed_from_u64(11);
        let alarms = (0..200).filter(|_| {
            let (base, mut runs) = simulated(&mut lots, 1, 1.0, 1.0);
            let mut again = || -> Vec<Segments> {
                let noisy = |segments: &Segments| {
                    let Segments::Nats(own) = segments else { unreachable!() };
                    documents(|place| f64::from(own[place].nats()) + normal(&mut lots))
                };
                runs[0].iter().map(noisy).collect()
            };
            let others = [again(), again(), again()];
            runs = others.to_vec();
            let found = with_sweeps(&(base, runs), |sweeps| heterogeneity(sweeps, 1).unwrap());
            found.iter().any(|head| head.p_adjusted < 0.05)
        });
        let alarms = alarms.count();
        assert!(alarms as f64 <= 200.0 * 0.05 + 2.0 * (200.0_f64 * 0.05 * 0.95).sqrt(), "{alarms} of 200");
        let (base, runs) = simulated(&mut lots, 1, 1.0, 1.0);
        let mut other = runs[0].clone();
        other[7] = documents(|place| 90.0 + if place.is_multiple_of(2) { 3.0 } else { 1.0 });
        let found = with_sweeps(&(base, vec![runs[0].clone(), other]), |all| heterogeneity(all, 1).unwrap());
        assert!(found[7].p_adjusted < 1e-3, "{:?}", found[7]);
        assert!((0..HEADS).all(|head| head == 7 || found[head].p_value == 1.0));
    }

    /// Two runs whose difference in one head is -20.5, -19.5, ..., 38.5: Student's t of the mean 9, whose variance is the variance of the
    /// numbers 1 to 60, 60 * 61 / 12, over 60.
    #[test]
    fn the_wald_statistic_of_two_runs_is_the_squared_t() {
        let (base, other) = (documents(|_| 99.0), documents(|place| 99.0 + place as f64 - 20.5));
        let runs = vec![vec![base.clone()], vec![other]];
        let found = with_sweeps(&(base, runs), |sweeps| heterogeneity(sweeps, 1).unwrap())[0];
        let t: f64 = 9.0 / (61.0 / 12.0_f64).sqrt();
        let expected = 2.0 * StudentsT::new(0.0, 1.0, 59.0).unwrap().sf(t);
        // the variance of 2,000 resamples has a relative error of 3%
        assert_close((found.p_value / expected).ln(), 0.0, 0.5);
    }

    #[test]
    fn runs_of_different_shapes_are_refused_and_a_single_run_has_no_agreement() {
        let (base, runs) = simulated(&mut ChaCha8Rng::seed_from_u64(1), 2, 0.5, 1.0);
        let [one, other]: [Vec<&Segments>; 2] = [runs[0].iter().collect(), runs[1][1..].iter().collect()];
        let [one, other] = [&one, &other].map(|variants| SweepSegments { base: &base, variants });
        assert_eq!(agreement(&[one], 1), Ok(None));
        assert_eq!(heterogeneity(&[one], 1), Ok(Vec::new()));
        assert!(agreement(&[one, other], 1).unwrap_err().to_string().contains("the same heads"));
    }
}
