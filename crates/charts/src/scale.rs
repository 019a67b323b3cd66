//! Round steps (1, 2 or 5 times a power of ten) for axes, histogram bins that meet at an edge, and logarithmic axes.
use serde::Serialize;

/// A step whose multiples are the floats nearest to round decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Step {
    mantissa: i64,
    exponent: i32,
}

impl Step {
    pub(crate) const ONE: Self = Self { mantissa: 1, exponent: 0 };

    /// Returns the smallest round step that covers `span` in at most `parts` steps; spans below 1e-9 (rounding errors) count as 1e-9.
    pub fn covering(span: f64, parts: usize) -> Self {
        let least = span.max(1e-9) / parts.max(1) as f64;
        let exponent = least.log10().floor() as i32;
        let candidates = [(1, exponent), (2, exponent), (5, exponent), (1, exponent + 1), (2, exponent + 1)];
        let steps = candidates.map(|(mantissa, exponent)| Self { mantissa, exponent });
        let fits = |step: &Self| step.multiple(1) >= least * (1.0 - 1e-9);
        steps.into_iter().find(fits).unwrap_or(steps[4])
    }

    /// Like [`Step::covering`], but returns a whole number.
    pub fn covering_whole(span: f64, parts: usize) -> Self {
        let step = Self::covering(span, parts);
        if step.exponent < 0 { Self::ONE } else { step }
    }

    /// Returns `index` steps from 0.
    pub fn multiple(self, index: i64) -> f64 {
        let units = index as f64 * self.mantissa as f64;
        let power = 10_f64.powi(self.exponent.abs());
        if self.exponent < 0 { units / power } else { units * power }
    }

    /// Returns the index of the largest multiple at or below `value`.
    pub fn index_below(self, value: f64) -> i64 {
        let guess = (value / self.multiple(1)).floor() as i64;
        let (above, below) = (guess.saturating_add(1), guess.saturating_sub(1));
        [above, guess].into_iter().find(|&index| self.multiple(index) <= value).unwrap_or(below)
    }

    /// Returns the multiples from `low` to `high`.
    pub fn ticks(self, low: f64, high: f64) -> Vec<f64> {
        let (first, last) = (self.index_below(low), self.index_below(high));
        (first..=last).map(|index| self.multiple(index)).filter(|&tick| tick >= low).collect()
    }

    /// Returns the decimal places that a multiple needs.
    pub fn decimals(self) -> usize {
        usize::try_from(-self.exponent).unwrap_or(0)
    }
}

/// Maximum number of bins between the smallest and largest value or edge.
const MAX_BINS: usize = 24;

/// Bins of equal, round width, two of which meet at an edge, so that no bin holds values from both sides of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bins {
    edge: f64,
    /// Width of each bin.
    pub width: f64,
}

impl Bins {
    /// Returns bins wide enough to be visible on an axis that covers all `values` and the edge.
    pub fn around(edge: f64, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = extent(values.chain([edge]));
        // equal values get one bin of a width that suits their size
        let span = (high - low).max(low.abs().max(high.abs()) * 1e-3).max(1e-3);
        Self { edge, width: Step::covering(span, MAX_BINS).multiple(1) }
    }

    /// Returns the ends of the bin that contains a value; bins contain their lower end.
    pub fn of(self, value: f64) -> (f64, f64) {
        let index = ((value - self.edge) / self.width + 1e-9).floor();
        (self.edge + index * self.width, self.edge + (index + 1.0) * self.width)
    }
}

/// Returns the minimum and maximum; 0 and 1 if there are no values.
pub fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (f64::min(low, value), f64::max(high, value))
    });
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Room for 0 to the left of all other numbers, as a share of their range.
const ZERO: f64 = 0.12;

/// A logarithmic axis for whole numbers that also has a place for 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogAxis {
    low: f64,
    high: f64,
    has_zero: bool,
}

impl LogAxis {
    /// Returns an axis for these numbers.
    pub fn of(numbers: &[usize]) -> Self {
        let above = numbers.iter().filter(|&&number| number > 0);
        let (low, high) = extent(above.map(|&number| (number as f64).log10()));
        Self { low, high, has_zero: numbers.contains(&0) }
    }

    /// Returns the logarithm of a number, and for 0 a place left of all others.
    pub fn place(self, number: usize) -> f64 {
        if number == 0 { self.low - self.room() } else { (number as f64).log10() }
    }

    /// Returns the places of the first and last number.
    pub fn extent(self) -> (f64, f64) {
        (if self.has_zero { self.place(0) } else { self.low }, self.high)
    }

    /// Returns the place of the axis break between 0 and the next number; `None` without 0.
    pub fn gap(self) -> Option<f64> {
        self.has_zero.then(|| self.low - self.room() / 2.0)
    }

    fn room(self) -> f64 {
        (ZERO * (self.high - self.low)).max(0.1)
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
        assert_eq!((step.decimals(), step.ticks(36.0, 36.1)), (2, vec![36.0, 36.05, 36.1]));
        assert_eq!(
            [10.0, 11.0, 21.0, 51.0].map(|span| Step::covering(span, 10).multiple(1)),
            [1.0, 2.0, 5.0, 10.0]
        );
        assert_eq!(Step::covering_whole(2.0, 5), Step::ONE);
    }

    #[test]
    fn equal_factors_are_equal_distances_and_0_is_beyond_a_gap() {
        let axis = LogAxis::of(&[1, 10, 100]);
        assert_eq!(([1, 10, 100].map(|number| axis.place(number)), axis.gap()), ([0.0, 1.0, 2.0], None));
        // 12% of two decades to the left of the first number above 0
        let axis = LogAxis::of(&[0, 10, 1000]);
        assert!((axis.place(0) - 0.76).abs() < 1e-12 && (axis.gap().unwrap() - 0.88).abs() < 1e-12);
    }

    /// 0.9 / 24 is 0.0375, so bins are 0.05 wide.
    #[test]
    fn two_bins_meet_at_the_edge() {
        let bins = Bins::around(36.05, [35.5, 36.4].into_iter());
        for (value, low, high) in [(36.05, 36.05, 36.1), (36.049, 36.0, 36.05), (36.0, 36.0, 36.05)] {
            let found = bins.of(value);
            assert!((found.0 - low).abs() < 1e-9 && (found.1 - high).abs() < 1e-9, "{value}: {found:?}");
        }
        assert_eq!(Bins::around(0.0, [0.0; 3].into_iter()).of(0.0), (0.0, 5e-5));
    }

    proptest! {
        #[test]
        fn a_step_covers_its_span_without_waste(span in 1e-6_f64..1e6, parts in 1_usize..30) {
            let width = Step::covering(span, parts).multiple(1);
            prop_assert!(width * parts as f64 >= span * 0.999_999);
            prop_assert!(width * parts as f64 <= span * 2.51, "{width} for {span} in {parts}");
        }

        #[test]
        fn every_value_is_inside_its_bin_on_its_side_of_the_edge(value in -1e3_f64..1e3, edge in -1e3_f64..1e3) {
            let bins = Bins::around(edge, [value].into_iter());
            let (low, high) = bins.of(value);
            let slack = 1e-6 * bins.width;
            prop_assert!(low - slack <= value && value <= high + slack, "{value} in {low}..{high}");
            prop_assert!(low >= edge - slack || high <= edge + slack, "{edge} in {low}..{high}");
        }
    }
}
