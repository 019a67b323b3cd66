//! McNemar's test of two classifiers on one test set.
//!
//! McNemar (1947), *Note on the Sampling Error of the Difference between Correlated Proportions or Percentages*, Psychometrika 12, 153-157;
//! here with the exact binomial distribution instead of the χ² approximation.

use statrs::distribution::{Binomial, Discrete, DiscreteCDF};

/// Returns the two-sided p-value, 0 to 1, from the numbers of segments that only one of two systems has right.
///
/// Without a difference, each of these n segments is right in either system with probability 1/2, so p = min(1, 2 P(X <= min(b, c))) with X
/// binomial of n and 1/2; p is 1 if n is 0.
///
/// Assumes that segments are independent. Segments that both systems have right, or both wrong, carry no information.
pub fn exact(base_only: usize, variant_only: usize) -> f64 {
    // The smaller tail is at least one half here, but rounding would make p just less than 1.
    if base_only.abs_diff(variant_only) <= 1 {
        return 1.0;
    }
    let fewer = base_only.min(variant_only) as u64;
    let binomial = Binomial::new(0.5, (base_only + variant_only) as u64).expect("1/2 is a probability");
    (2.0 * binomial.cdf(fewer)).min(1.0)
}

/// Returns the mid-p value, which counts the observed outcome only half: 2 P(X < min(b, c)) + P(X = min(b, c)).
///
/// The exact p is too large on average because few segments allow few p-values; mid-p is closer to the nominal error. Fagerland, Lydersen
/// and Laake (2013), *The McNemar Test for Binary Matched-Pairs Data: Mid-p and Asymptotic Are Better than Exact Conditional*, BMC Medical
/// Research Methodology 13, 91.
pub fn mid_p(base_only: usize, variant_only: usize) -> f64 {
    if base_only == variant_only {
        return 1.0;
    }
    let fewer = base_only.min(variant_only) as u64;
    let binomial = Binomial::new(0.5, (base_only + variant_only) as u64).expect("1/2 is a probability");
    (exact(base_only, variant_only) - binomial.pmf(fewer)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use proptest::prelude::*;

    /// 2 of 7: (2 (1 + 7) + 21) / 2^7. References for many segments: the sum as an exact fraction in Python. Twice the tail of an even split
    /// counts its middle twice; with one more segment on one side each tail is one half.
    #[test]
    fn p_is_twice_the_smaller_tail_and_mid_p_counts_half_of_what_was_observed() {
        assert_close(exact(200, 260), 0.005_883_922_473_103_979, 1e-12);
        assert_close(exact(5100, 5000), 0.324_581_546_331_393_9, 1e-10);
        assert_close(mid_p(5, 2), 37.0 / 128.0, 1e-12);
        assert_eq!((mid_p(0, 0), mid_p(7, 7)), (1.0, 1.0));
        assert_close(mid_p(1, 0), 0.5, 1e-12);
        for count in [0, 1, 2, 500] {
            assert_eq!((exact(count, count), exact(count, count + 1)), (1.0, 1.0), "{count}");
        }
    }

    proptest! {
        #[test]
        fn swapping_the_systems_keeps_p_and_a_clearer_split_lowers_it(fewer in 0..200_usize, more in 0..200_usize) {
            let (fewer, more) = (fewer.min(more), fewer.max(more));
            let p = exact(fewer, more);
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert_eq!(p, exact(more, fewer));
            prop_assert!(exact(fewer, more + 1) < p || p == 1.0);
            let mid = mid_p(fewer, more);
            prop_assert!(mid == mid_p(more, fewer) && mid <= p && (0.0..=1.0).contains(&mid));
        }
    }
}
