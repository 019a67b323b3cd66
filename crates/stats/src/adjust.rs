//! p-values adjusted for multiple testing.
//!
//! Of 96 tests at p < 0.01 one is a false alarm by chance. An adjusted p-value can be compared with the threshold of a single test. NaN
//! marks a test that could not be made: it stays NaN and does not count towards the size of the family.

use statrs::function::erf::erfc;

/// Returns p-values adjusted for the chance of even one false alarm in the family (family-wise error rate); valid under any dependence.
///
/// Holm (1979), *A Simple Sequentially Rejective Multiple Test Procedure*, Scandinavian Journal of Statistics 6, 65-70: with p ascending,
/// the i-th of m becomes max over j <= i of (m - j + 1) p_j, at most 1.
///
/// # Panics
/// If a p-value is outside 0 to 1.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let order = ascending(p_values);
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let mut floor = 0.0_f64;
    for (smaller, &index) in order.iter().enumerate() {
        floor = floor.max(p_values[index] * (order.len() - smaller) as f64).min(1.0);
        adjusted[index] = floor;
    }
    adjusted
}

/// Returns p-values adjusted for the expected share of false alarms among the rejected hypotheses (false discovery rate); valid for
/// independent tests.
///
/// Benjamini and Hochberg (1995), *Controlling the False Discovery Rate*, Journal of the Royal Statistical Society B 57, 289-300: with p
/// ascending, the i-th of m becomes min over j >= i of (m / j) p_j.
///
/// # Panics
/// If a p-value is outside 0 to 1.
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let order = ascending(p_values);
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let mut ceiling = 1.0_f64;
    for (smaller, &index) in order.iter().enumerate().rev() {
        // m / j first: it is at least 1, so rounding cannot take the result below p.
        ceiling = ceiling.min(p_values[index] * (order.len() as f64 / (smaller + 1) as f64));
        adjusted[index] = ceiling;
    }
    adjusted
}

/// Returns the two-sided p-value of the hypothesis that the true value is `limit`, from a normal approximation. `end` is the end of the 95%
/// interval on the side of `limit`: p is 0.05 if `limit` equals `end`, and 1 if `limit` is on the other side of the estimate. For intervals
/// from Student's t with few degrees of freedom the result is too small.
pub fn p_of_limit(estimate: f64, end: f64, limit: f64) -> f64 {
    const QUANTILE: f64 = 1.959_963_984_540_054;
    let (reach, distance) = (end - estimate, limit - estimate);
    if distance == 0.0 || distance.signum() != reach.signum() {
        // an interval without width excludes all but its estimate
        return if reach == 0.0 && distance != 0.0 { 0.0 } else { 1.0 };
    }
    erfc(QUANTILE * (distance / reach) / std::f64::consts::SQRT_2)
}

/// Returns the indices of the p-values that are not NaN, smallest p first.
fn ascending(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).filter(|&index| !p_values[index].is_nan()).collect();
    for &index in &order {
        let p = p_values[index];
        assert!((0.0..=1.0).contains(&p), "a p-value must be between 0 and 1, found {p}");
    }
    order.sort_by(|&left, &right| p_values[left].total_cmp(&p_values[right]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Holm: 2 * 0.04 = 0.08 is above 1 * 0.05, which must not overtake it. Benjamini and Hochberg: 0.08 comes down to 0.05.
    #[test]
    fn nan_stays_and_does_not_count() {
        for (adjust, expected) in [(holm as fn(&[f64]) -> Vec<f64>, 0.08), (benjamini_hochberg, 0.05)] {
            let adjusted = adjust(&[0.05, f64::NAN, 0.04]);
            assert!(adjusted[1].is_nan());
            for found in [adjusted[0], adjusted[2]] {
                assert_close(found, expected, 1e-12);
            }
        }
        assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
    }

    /// p-values that are on a coarse grid now and then, which makes ties.
    fn family() -> impl Strategy<Value = Vec<f64>> {
        vec(prop_oneof![0.0..=1.0_f64, (0..=10_u8).prop_map(|tenths| f64::from(tenths) / 10.0)], 0..40)
    }

    proptest! {
        #[test]
        fn adjusted_values_are_between_raw_and_one_and_holm_is_stricter(raw in family()) {
            let (strict, lenient) = (holm(&raw), benjamini_hochberg(&raw));
            for index in 0..raw.len() {
                prop_assert!(raw[index] <= lenient[index]);
                prop_assert!(lenient[index] <= strict[index]);
                prop_assert!(strict[index] <= 1.0);
            }
        }

        #[test]
        fn a_permuted_family_gets_the_same_values((raw, order) in family().prop_flat_map(|raw| {
            let order: Vec<usize> = (0..raw.len()).collect();
            (Just(raw), Just(order).prop_shuffle())
        })) {
            let permute = |values: &[f64]| order.iter().map(|&index| values[index]).collect::<Vec<_>>();
            prop_assert_eq!(holm(&permute(&raw)), permute(&holm(&raw)));
            prop_assert_eq!(benjamini_hochberg(&permute(&raw)), permute(&benjamini_hochberg(&raw)));
        }
    }

    /// p is 0.05 at the end of the 95% interval, and 0.01 at 1.314 times the distance, which is 2.5758 standard errors.
    #[test]
    fn the_end_of_an_interval_has_p_of_five_percent() {
        assert_close(p_of_limit(3.0, 1.0, 1.0), 0.05, 1e-9);
        assert_close(p_of_limit(-3.0, -1.0, -3.0 + 2.0 * 2.575_829 / 1.959_964), 0.01, 1e-6);
        assert_eq!(p_of_limit(3.0, 1.0, 4.0), 1.0);
        assert_eq!((p_of_limit(3.0, 3.0, 2.0), p_of_limit(3.0, 3.0, 3.0)), (0.0, 1.0));
    }
}
