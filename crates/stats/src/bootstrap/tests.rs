use super::*;
use std::collections::BTreeSet;

/// Statistics whose score is the mean of one number per segment.
pub(crate) fn means(values: &[f64]) -> Counted {
    Counted::new(values.iter().map(|&value| [value, 1.0]), |sums| sums[0] / sums[1])
}

fn compare(base: &[f64], variant: &[f64], resamples: usize, seed: u64) -> Result<Resampled, Error> {
    let base = means(base);
    let variants = [base.variant(&means(variant))];
    Ok(paired_bootstrap(&base, &variants, Testing { resamples, seed, block: 1 })?.remove(0))
}

/// Of the differences -1, 0, 2, 3 two are at most 0 and three at least 0: 2 (1 + 2) / 5 is more than 1. Koehn counts those without the sign
/// of the observed difference: 2 for a lead, 3 for a lag.
#[test]
fn ties_count_against_both_sides() {
    let resampled = |variant, deltas: &[f64]| Resampled { base: 0.0, variant, deltas: deltas.to_vec() };
    let lead = resampled(1.0, &[-1.0, 0.0, 2.0, 3.0]);
    assert_eq!((lead.p_value(), lead.p_koehn()), (Some(1.0), Some(0.6)));
    let lag = resampled(-1.0, &[-1.0, 0.0, 2.0, 3.0]);
    assert_eq!((lag.p_value(), lag.p_koehn()), (Some(1.0), Some(0.8)));
    let clear = resampled(1.0, &[1.0, 0.0, 2.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!((clear.p_value(), clear.p_koehn()), (Some(0.4), Some(0.2)));
}

#[test]
fn no_difference_has_p_one_and_without_resamples_there_are_only_scores() {
    let same = compare(&[1.0, 2.0, 4.0], &[1.0, 2.0, 4.0], 50, 1).unwrap();
    assert_eq!((same.p_value(), same.p_koehn()), (Some(1.0), Some(1.0)));
    assert_eq!(same.interval(), Some(Interval { low: 0.0, high: 0.0 }));
    let balanced = compare(&[1.0, 2.0], &[2.0, 1.0], 50, 1).unwrap();
    assert_eq!((balanced.delta(), balanced.p_koehn()), (0.0, Some(1.0)));
    let untested = compare(&[1.0, 2.0], &[2.0, 3.0], 0, 1).unwrap();
    assert_eq!((untested.base, untested.variant, untested.delta()), (1.5, 2.5, 1.0));
    assert_eq!((untested.p_value(), untested.p_koehn(), untested.interval()), (None, None, None));
    assert_eq!(compare(&[1.0], &[f64::NAN], 10, 1), Err(Error::not_finite()));
    // 1 / (39 + 1) is 2.5%
    for (resamples, is_there) in [(38, false), (39, true)] {
        let compared = compare(&[0.0, 0.0], &[1.0, 0.0], resamples, 1).unwrap();
        assert_eq!(compared.interval().is_some(), is_there, "{resamples} resamples");
    }
}

/// The differences of a resample, summed segment by segment, equal the matrix product; 300 resamples are three chunks.
#[test]
fn sums_over_changes_alone_equal_sums_over_all_segments() {
    let base: Vec<f64> = (0..50).map(|i| f64::from(i * 7 % 11)).collect();
    let variant: Vec<f64> =
        (0..50).map(|i| f64::from(i * 7 % 11 + if i % 3 == 0 { i % 5 } else { 0 })).collect();
    let found = compare(&base, &variant, 300, 9).unwrap();
    for (stream, &delta) in found.deltas.iter().enumerate() {
        let lead: f64 = draw(50, 9, stream as u64).map(|segment| variant[segment] - base[segment]).sum();
        assert!((delta - lead / 50.0).abs() < 1e-12, "resample {stream}: {delta}");
    }
}

#[test]
fn result_depends_on_the_seed_but_neither_on_threads_nor_on_other_variants() {
    let (base, variant): (Vec<f64>, Vec<f64>) =
        (0..50).map(|i| (f64::from(i * 7 % 11), f64::from(i * 5 % 13))).unzip();
    let with_threads = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| compare(&base, &variant, 200, seed).unwrap())
    };
    assert_eq!(with_threads(1, 7), with_threads(3, 7));
    assert_ne!(with_threads(1, 7), with_threads(1, 8));
    let other: Vec<f64> = variant.iter().rev().copied().collect();
    let (base, variant, other) = (means(&base), means(&variant), means(&other));
    let both = [base.variant(&other), base.variant(&variant)];
    let both = paired_bootstrap(&base, &both, Testing { resamples: 200, seed: 7, block: 1 }).unwrap();
    assert_eq!(both[1], with_threads(1, 7));
    // a stream that ended where the next begins would correlate the resamples
    let draws = |stream| draw(5, 3, stream).collect::<Vec<_>>();
    assert_ne!(draws(0), draws(1));
    assert_ne!(draws(0), draw(5, 0, 0).collect::<Vec<_>>(), "0 is a seed like any other");
    let drawn: BTreeSet<usize> = (0..20).flat_map(draws).collect();
    assert!(drawn.into_iter().eq(0..5));
}

/// Position 0.25 * 2 = 0.5 is halfway from 1 to 2; 0.975 * 2 = 1.95 is 95% of the way from 2 to 4.
#[test]
fn percentiles_interpolate() {
    let sorted = [1.0, 2.0, 4.0];
    assert_eq!(percentile(&sorted, 0.25), 1.5);
    assert!((percentile(&sorted, 0.975) - 3.9).abs() < 1e-12);
    assert_eq!((percentile(&sorted, 0.0), percentile(&sorted, 1.0)), (1.0, 4.0));
    assert_eq!(percentile(&[3.0], 0.975), 3.0);
    assert_eq!(percentile_interval(&[]), None);
}
