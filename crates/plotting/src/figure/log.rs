//! A logarithmic axis of whole numbers, with a place for 0.
use super::axes::Scale;

/// Room for 0 to the left of all others, as a share of what these cover.
const ZERO: f64 = 0.12;

/// Where numbers stand on a logarithmic axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogAxis {
    /// Common logarithms of the least number above 0 and of the greatest.
    low: f64,
    high: f64,
    has_zero: bool,
}

impl LogAxis {
    /// An axis for these numbers.
    pub fn of(numbers: impl Iterator<Item = usize> + Clone) -> Self {
        let logarithms = numbers.clone().filter(|&number| number > 0).map(|number| (number as f64).log10());
        let low = logarithms.clone().min_by(f64::total_cmp).unwrap_or(0.0);
        let high = logarithms.max_by(f64::total_cmp).unwrap_or(0.0);
        Self { low, high, has_zero: numbers.min() == Some(0) }
    }

    /// Place of a number: its logarithm, or for 0 one that is left of all others.
    pub fn place(self, number: usize) -> f64 {
        if number == 0 { self.low - self.room() } else { (number as f64).log10() }
    }

    /// From the first number to the last.
    pub fn scale(self) -> Scale {
        let first = if self.has_zero { self.place(0) } else { self.low };
        Scale::around(first, self.high)
    }

    /// Where the axis leaves out what is between 0 and the next number, if it has 0.
    pub fn gap(self) -> Option<f64> {
        self.has_zero.then(|| self.low - self.room() / 2.0)
    }

    fn room(self) -> f64 {
        (ZERO * (self.high - self.low)).max(0.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_factors_are_equal_distances() {
        let axis = LogAxis::of([1, 10, 100].into_iter());
        assert_eq!([1, 10, 100].map(|number| axis.place(number)), [0.0, 1.0, 2.0]);
        assert_eq!(axis.gap(), None);
        assert!(axis.scale().low < 0.0 && axis.scale().low > -0.2);
    }

    /// 0 has no logarithm; it stands 12 % of two decades before the first number that has one.
    #[test]
    fn zero_stands_beyond_a_gap() {
        let axis = LogAxis::of([0, 10, 1000].into_iter());
        assert!((axis.place(0) - 0.76).abs() < 1e-12 && (axis.gap().unwrap() - 0.88).abs() < 1e-12);
        assert!(axis.scale().low < axis.place(0));
        let alone = LogAxis::of([0].into_iter());
        assert!(alone.place(0) < 0.0 && alone.scale().low < alone.scale().high);
    }
}
