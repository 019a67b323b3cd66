//! Adjusted p-values of a family of bootstrap tests.
//!
//! Westfall and Young (1993), *Resampling-Based Multiple Testing*, Algorithm 2.8 (step-down maxT). The tests share their
//! resamples, so that the adjustment knows how they go together, and its smallest p does not grow with the family.

use crate::bootstrap::Resampled;

/// The p-value of each test of a family, adjusted for the chance of a single false alarm among them; absent without
/// resamples.
///
/// The statistic is t = δ / s, where s is the standard deviation of the resampled differences; without any effect it is
/// distributed as (δ* - δ) / s is over the resamples. With |t| descending, the i-th p is (1 + the number of resamples in
/// which any of the i-th and later |t*| reaches |t|) / (B + 1), and no p is smaller than one before it.
///
/// Differs from Westfall and Young: no adjusted p is below the test's own [`p_value`](Resampled::p_value), nor below that
/// of a test with a larger |t|. The own p counts signs, which t does not, so the two could cross by a little; it also makes
/// 2 / (B + 1) the smallest adjusted p, where t alone would have half of that.
///
/// - `own`: the p-value of each test by itself, perhaps of more resamples than the family shares
///
/// # Panics
/// If the tests differ in their numbers of resamples, or there are not as many p-values.
pub fn max_t(family: &[Resampled], own: &[Option<f64>]) -> Vec<Option<f64>> {
    assert_eq!(family.len(), own.len(), "each test has a p-value of its own");
    let Some(resamples) = family.first().map(|test| test.deltas.len()) else { return Vec::new() };
    if resamples == 0 {
        return vec![None; family.len()];
    }
    let tests: Vec<Studentised> = family.iter().map(|test| Studentised::of(test, resamples)).collect();
    let mut ascending: Vec<usize> = (0..tests.len()).collect();
    ascending.sort_by(|&left, &right| tests[left].observed.total_cmp(&tests[right].observed));
    let mut maxima = vec![0.0_f64; resamples]; // of the tests with a smaller |t|
    let mut raw = vec![1.0; tests.len()];
    for &index in &ascending {
        let test = &tests[index];
        maxima.iter_mut().zip(&test.resampled).for_each(|(maximum, &t)| *maximum = maximum.max(t));
        let reached = maxima.iter().filter(|&&maximum| maximum >= test.observed).count();
        raw[index] = (1 + reached) as f64 / (1 + resamples) as f64;
    }
    let mut adjusted = vec![None; tests.len()];
    let mut floor = 0.0_f64;
    for &index in ascending.iter().rev() {
        floor = floor.max(raw[index]).max(own[index].unwrap_or(1.0));
        adjusted[index] = Some(floor);
    }
    adjusted
}

/// Sizes of t, observed and without effect.
struct Studentised {
    observed: f64,
    resampled: Vec<f64>,
}

impl Studentised {
    fn of(test: &Resampled, resamples: usize) -> Self {
        assert_eq!(test.deltas.len(), resamples, "the tests of a family share their resamples");
        let delta = test.delta();
        let error = deviation(&test.deltas);
        if error == 0.0 {
            // Every resample shows the same difference: 0 says nothing, any other could not be clearer.
            let observed = if delta == 0.0 { 0.0 } else { f64::INFINITY };
            return Self { observed, resampled: vec![0.0; resamples] };
        }
        let resampled = test.deltas.iter().map(|resampled| ((resampled - delta) / error).abs()).collect();
        Self { observed: (delta / error).abs(), resampled }
    }
}

/// Standard deviation, with divisor n - 1; 0 of a single value.
fn deviation(values: &[f64]) -> f64 {
    // Rounding errors of the mean must not pass for a spread.
    if values.iter().all(|&value| value == values[0]) {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// With the p-values of the same resamples.
    fn max_t(family: &[Resampled]) -> Vec<Option<f64>> {
        super::max_t(family, &family.iter().map(Resampled::p_value).collect::<Vec<_>>())
    }

    fn test(delta: f64, deltas: &[f64]) -> Resampled {
        Resampled { base: 0.0, variant: delta, deltas: deltas.to_vec() }
    }

    /// First: differences 9, 10, 11, 10, deviation sqrt(2/3), t = 10 / sqrt(2/3) = 12.2; t* = 1.22, 0, 1.22, 0.
    /// Second: 3, -1, 1, 1, deviation sqrt(8/3), t = 1 / 1.63 = 0.61; t* = 1.22, 1.22, 0, 0. Its own p is 2 (1 + 1) / 5.
    /// The maxima of both, 1.22, 1.22, 1.22, 0, never reach 12.2: (1 + 0) / 5, but the first's own p is 2 / 5. Those of the
    /// second alone reach 0.61 twice: 3/5, but its own p is 4/5.
    #[test]
    fn maxima_run_over_the_tests_that_are_left() {
        let (first, second) = (test(10.0, &[9.0, 10.0, 11.0, 10.0]), test(1.0, &[3.0, -1.0, 1.0, 1.0]));
        assert_eq!(max_t(&[second.clone(), first.clone()]), [Some(0.8), Some(0.4)]);
        assert_eq!(max_t(&[first, second]), [Some(0.4), Some(0.8)]);
    }

    /// t of 2.4 and 2.3, each with a t* of 2.5 in a resample of its own: the first is reached in two of 99 by the maxima
    /// (3/100), the second in one (2/100), but no p falls below that of a larger t.
    #[test]
    fn no_p_is_below_that_of_a_larger_t() {
        // 98 values of ±1 and one of 2.6 around δ: the deviation is close to 1.03.
        let around = |delta: f64, far: usize| {
            let noise = |i: usize| {
                if i == far {
                    2.6
                } else if i.is_multiple_of(2) {
                    1.0
                } else {
                    -1.0
                }
            };
            test(delta, &(0..99).map(|i| delta + noise(i)).collect::<Vec<_>>())
        };
        let adjusted = max_t(&[around(2.5, 7), around(2.45, 50)]);
        assert_eq!(adjusted, [Some(0.03), Some(0.03)]);
    }

    /// First: δ = 30, noise of ±0.5, but of ±3 in ten of 99 resamples. The squares make 89 / 4 + 90 = 112.25, so
    /// s = sqrt(112.25 / 98) = 1.07 and t = 28; t* is 2.8 in those ten. Second: δ = 2, noise of ±1, s = sqrt(99 / 98) and
    /// t = 1.99; t* is 0.995. Nothing reaches 28, and the second's own t* never reach 1.99: both have 1 / 100, and their own
    /// p is 2 / 100. In a single step the first's ten t* of 2.8 would count against the second too: (1 + 10) / 100.
    #[test]
    fn a_test_that_is_decided_does_not_count_against_those_that_are_left() {
        let noisy = |delta: f64, size: fn(usize) -> f64| {
            let noise = |i: usize| if i.is_multiple_of(2) { size(i) } else { -size(i) };
            test(delta, &(0..99).map(|i| delta + noise(i)).collect::<Vec<_>>())
        };
        let first = noisy(30.0, |i| if i < 10 { 3.0 } else { 0.5 });
        let second = noisy(2.0, |_| 1.0);
        assert_eq!(max_t(&[first, second]), [Some(0.02), Some(0.02)]);
    }

    /// The tests of the first example, whose adjusted p are 0.4 and 0.8 with their own p of four resamples.
    #[test]
    fn an_own_p_of_more_resamples_floors_those_of_smaller_t_too() {
        let (first, second) = (test(10.0, &[9.0, 10.0, 11.0, 10.0]), test(1.0, &[3.0, -1.0, 1.0, 1.0]));
        assert_eq!(super::max_t(&[first, second], &[Some(0.9), Some(0.85)]), [Some(0.9), Some(0.9)]);
    }

    #[test]
    fn what_never_changes_is_clear_or_says_nothing() {
        assert_eq!(max_t(&[test(0.0, &[0.0; 9]), test(2.0, &[2.0; 9])]), [Some(1.0), Some(0.2)]);
        assert_eq!(max_t(&[test(1.0, &[]), test(0.0, &[])]), [None, None]);
        assert!(max_t(&[]).is_empty());
    }

    fn family() -> impl Strategy<Value = Vec<Resampled>> {
        (1..6_usize, 1..30_usize).prop_flat_map(|(tests, resamples)| {
            let one = (-3.0..3.0_f64, vec(-3.0..3.0_f64, resamples));
            vec(
                one.prop_map(|(delta, noise)| {
                    test(delta, &noise.iter().map(|n| n + delta).collect::<Vec<_>>())
                }),
                tests,
            )
        })
    }

    proptest! {
        #[test]
        fn adjusted_lies_between_own_and_one_and_a_larger_family_is_stricter(family in family()) {
            let adjusted = max_t(&family);
            for (test, adjusted) in family.iter().zip(&adjusted) {
                let (own, adjusted) = (test.p_value().unwrap(), adjusted.unwrap());
                prop_assert!(own <= adjusted && adjusted <= 1.0);
            }
            let fewer = max_t(&family[1..]);
            for (fewer, all) in fewer.iter().zip(&adjusted[1..]) {
                prop_assert!(fewer.unwrap() <= all.unwrap());
            }
        }
    }
}
