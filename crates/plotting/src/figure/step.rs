//! Round steps (1, 2 or 5 times a power of ten) for axes and bins.

/// A step whose multiples are the nearest floats to round decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    mantissa: i64,
    exponent: i32,
}

impl Step {
    /// One.
    pub const ONE: Self = Self { mantissa: 1, exponent: 0 };

    /// The smallest round step that covers `span` in at most `parts` steps.
    ///
    /// A span of 0, or one too small to be told from rounding errors, counts as 1e-9.
    pub fn covering(span: f64, parts: usize) -> Self {
        let least = span.max(1e-9) / parts.max(1) as f64;
        let exponent = least.log10().floor() as i32;
        let candidates = [(1, exponent), (2, exponent), (5, exponent), (1, exponent + 1), (2, exponent + 1)];
        let steps = candidates.map(|(mantissa, exponent)| Self { mantissa, exponent });
        let fits = |step: &Self| step.multiple(1) >= least * (1.0 - 1e-9);
        steps.into_iter().find(fits).unwrap_or(steps[4])
    }

    /// As [`Step::covering`], but a whole number.
    pub fn covering_whole(span: f64, parts: usize) -> Self {
        let step = Self::covering(span, parts);
        if step.exponent < 0 { Self::ONE } else { step }
    }

    /// `index` steps from 0.
    pub fn multiple(self, index: i64) -> f64 {
        let units = (index * self.mantissa) as f64;
        let power = 10_f64.powi(self.exponent.abs());
        if self.exponent < 0 { units / power } else { units * power }
    }

    /// Number of the last multiple at or below `value`.
    pub fn index_below(self, value: f64) -> i64 {
        let guess = (value / self.multiple(1)).floor() as i64;
        let candidates = [guess + 1, guess, guess - 1];
        candidates.into_iter().find(|&index| self.multiple(index) <= value).unwrap_or(guess - 1)
    }

    /// The multiples from `low` to `high`.
    pub fn ticks(self, low: f64, high: f64) -> Vec<f64> {
        let first = self.index_below(low);
        let last = self.index_below(high);
        let multiples = (first..=last).map(|index| self.multiple(index));
        multiples.filter(|&tick| tick >= low).collect()
    }

    /// Digits after the point that a multiple needs.
    pub fn decimals(self) -> usize {
        usize::try_from(-self.exponent).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn multiples_are_the_decimals_that_one_would_type() {
        let step = Step::covering(1.2, 24);
        assert_eq!(step, Step { mantissa: 5, exponent: -2 });
        assert_eq!(step.multiple(721), 36.05); // 721.0 * 0.05 is 36.050000000000004
        assert_eq!(step.decimals(), 2);
        assert_eq!(step.ticks(36.0, 36.1), [36.0, 36.05, 36.1]);
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(Step::covering(10.0, 10), Step::ONE);
        assert_eq!(Step::covering(11.0, 10).multiple(1), 2.0);
        assert_eq!(Step::covering(21.0, 10).multiple(1), 5.0);
        assert_eq!(Step::covering(51.0, 10).multiple(1), 10.0);
        assert_eq!(Step::covering_whole(2.0, 5), Step::ONE);
    }

    proptest! {
        #[test]
        fn a_step_covers_its_span_without_waste(span in 1e-6_f64..1e6, parts in 1_usize..30) {
            let width = Step::covering(span, parts).multiple(1);
            prop_assert!(width * parts as f64 >= span * 0.999_999);
            prop_assert!(width * parts as f64 <= span * 2.51, "{width} for {span} in {parts}");
        }

        #[test]
        fn ticks_lie_inside(low in -1e3_f64..1e3, span in 1e-3_f64..1e3) {
            let step = Step::covering(span, 6);
            let ticks = step.ticks(low, low + span);
            prop_assert!(ticks.iter().all(|tick| (low..=low + span).contains(tick)));
            prop_assert!(ticks.len() <= 7, "{ticks:?}");
        }
    }
}
