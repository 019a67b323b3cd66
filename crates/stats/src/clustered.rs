//! Intervals of a mean over tokens whose sampling units are segments, such as documents.
//!
//! The difference in nats per token is Σ d_i / Σ m_i over segments with m_i tokens each. Its standard error is cluster-robust with the
//! CR2 correction, and its degrees of freedom are Satterthwaite's: Bell and McCaffrey (2002), *Bias Reduction in Standard Errors for Linear
//! Regression with Multi-Stage Samples*, Survey Methodology 28, 169-181. The working model has independent tokens of equal variance, so
//! three long documents with 95% of the tokens count as about three segments, however many short ones are added.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::Interval;

/// Minimum number of segments that shows how effects vary.
const MIN_SEGMENTS: usize = 5;

/// A difference per token with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClusteredMean {
    difference: f64,
    error: f64,
    degrees_of_freedom: f64,
}

impl ClusteredMean {
    /// Estimates Σ d / Σ m from pairs (d, m): the change of a segment in nats, and its number of tokens. `None` with fewer than five
    /// segments that have tokens.
    ///
    /// With shares p_i = m_i / Σ m and residuals u_i = d_i - m_i Σ d / Σ m the variance is Σ u_i² / (1 - p_i) / (Σ m)². In the working
    /// model the terms u_i / √(1 - p_i) have the covariances p_i on the diagonal and -p_i p_j / √((1 - p_i)(1 - p_j)) elsewhere, up to
    /// a common factor; the degrees of freedom are the squared trace of that matrix over the trace of its square, which is n - 1 for n
    /// segments of equal length.
    ///
    /// Assumes that segments are drawn independently and that the estimate is normally distributed.
    pub(crate) fn new(segments: &[(f64, f64)]) -> Option<Self> {
        let segments: Vec<(f64, f64)> =
            segments.iter().copied().filter(|&(_, tokens)| tokens > 0.0).collect();
        if segments.len() < MIN_SEGMENTS {
            return None;
        }
        let tokens: f64 = segments.iter().map(|&(_, tokens)| tokens).sum();
        let difference = segments.iter().map(|&(change, _)| change).sum::<f64>() / tokens;
        // Σ_{i≠j} f_i f_j is (Σ f)² - Σ f² with f = p² / (1 - p)
        let (mut variance, mut diagonal, mut sum, mut squares) = (0.0, 0.0, 0.0, 0.0);
        for &(change, own) in &segments {
            let share = own / tokens;
            let residual = change - own * difference;
            variance += residual * residual / (1.0 - share);
            diagonal += share * share;
            let factor = share * share / (1.0 - share);
            sum += factor;
            squares += factor * factor;
        }
        Some(Self {
            difference,
            error: variance.sqrt() / tokens,
            degrees_of_freedom: 1.0 / (diagonal + sum * sum - squares),
        })
    }

    pub(crate) fn degrees_of_freedom(&self) -> f64 {
        self.degrees_of_freedom
    }

    /// Returns the interval that misses the difference in a share `error` of the samples, half of them on each side.
    pub(crate) fn interval(&self, error: f64) -> Option<Interval> {
        let distribution = StudentsT::new(0.0, 1.0, self.degrees_of_freedom).ok()?;
        let reach = distribution.inverse_cdf(1.0 - error / 2.0) * self.error;
        Some(Interval { low: self.difference - reach, high: self.difference + reach })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use proptest::prelude::*;

    /// Segments of equal length have n - 1 degrees of freedom. The changes 1 to 5 nats over 2 tokens each have the mean 1.5 nats per token
    /// and the standard error √(2.5 / 5) / 2.
    #[test]
    fn five_segments_of_equal_length_give_students_t_and_four_with_tokens_nothing() {
        let found = ClusteredMean::new(&[1.0, 2.0, 3.0, 4.0, 5.0].map(|change| (change, 2.0))).unwrap();
        assert_close(found.difference, 1.5, 1e-12);
        assert_close(found.error, 0.5_f64.sqrt() / 2.0, 1e-12);
        assert_close(found.degrees_of_freedom, 4.0, 1e-12);
        // the 0.975 quantile of t with 4 degrees of freedom is 2.776445
        assert_close(found.interval(0.05).unwrap().high, 1.5 + 2.776_445 * found.error, 1e-6);
        assert!(ClusteredMean::new(&[(1.0, 2.0), (2.0, 2.0), (1.5, 2.0), (0.5, 2.0), (0.0, 0.0)]).is_none());
    }

    /// Degrees of freedom by brute force: the regression of single tokens on a constant, whose residuals are (I - J / n) ε, with the
    /// adjustment (I - H)^(-1/2) of each segment, which on the constant is (1 - p)^(-1/2). Returns tr(G)² / tr(G²) for G_ij = g_i · g_j.
    fn brute_force(lengths: &[usize]) -> f64 {
        let tokens: usize = lengths.iter().sum();
        let mut start = 0;
        let vectors: Vec<Vec<f64>> = lengths
            .iter()
            .map(|&length| {
                let scale = (1.0 - length as f64 / tokens as f64).powf(-0.5);
                let own = start..start + length;
                start += length;
                let at = |token: usize| f64::from(own.contains(&token)) - length as f64 / tokens as f64;
                (0..tokens).map(|token| scale * at(token)).collect()
            })
            .collect();
        let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
        let trace: f64 = vectors.iter().map(|own| dot(own, own)).sum();
        let squares: f64 =
            vectors.iter().flat_map(|one| vectors.iter().map(move |other| dot(one, other).powi(2))).sum();
        trace * trace / squares
    }

    proptest! {
        #[test]
        fn degrees_of_freedom_are_between_one_and_the_number_of_segments(
            lengths in prop::collection::vec(1_usize..40, 5..9),
        ) {
            let segments: Vec<(f64, f64)> = lengths.iter().map(|&own| (1.0, own as f64)).collect();
            let found = ClusteredMean::new(&segments).unwrap().degrees_of_freedom;
            prop_assert!(found > 1.0 - 1e-9 && found < lengths.len() as f64 - 1.0 + 1e-9);
            prop_assert!((found - brute_force(&lengths)).abs() < 1e-9 * found);
        }
    }
}
