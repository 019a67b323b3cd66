//! Sums over the segments of a test set.
use std::fmt;

use stats::Cell;

/// Sum of one number over all segments, which shows whether a block is complete.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sum {
    /// Exact sum of counts.
    Count(u64),
    /// Sum of decimal numbers, added in the order of the segments.
    Decimal(f64),
}

impl Sum {
    pub(crate) const ZERO: Self = Self::Count(0);

    pub(crate) fn plus(self, cell: Cell) -> Self {
        match (self, cell) {
            (Self::Count(sum), Cell::Count(count)) => Self::Count(sum + u64::from(count)),
            (Self::Count(sum), Cell::Decimal(number)) => Self::Decimal(sum as f64 + f64::from(number)),
            (Self::Decimal(sum), Cell::Count(count)) => Self::Decimal(sum + f64::from(count)),
            (Self::Decimal(sum), Cell::Decimal(number)) => Self::Decimal(sum + f64::from(number)),
        }
    }

    /// Parses what [`Display`](fmt::Display) wrote; `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Count);
        }
        let decimal = text.contains(['.', 'e']).then(|| text.parse().ok()).flatten();
        decimal.filter(|number: &f64| number.is_finite()).map(Self::Decimal)
    }

    /// Returns the sum as a number.
    pub fn value(self) -> f64 {
        match self {
            Self::Count(sum) => sum as f64,
            Self::Decimal(sum) => sum,
        }
    }
}

impl fmt::Display for Sum {
    /// Writes the shortest text that parses to an equal number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(sum) => write!(formatter, "{sum}"),
            // Debug keeps the point of whole numbers, which distinguishes them from counts.
            Self::Decimal(sum) => write!(formatter, "{sum:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sums_of_counts_stay_counts() {
        let sum = |cells: &[Cell]| cells.iter().fold(Sum::ZERO, |sum, &cell| sum.plus(cell));
        assert_eq!(sum(&[Cell::Count(u32::MAX), Cell::Count(1)]), Sum::Count(1 << 32));
        assert_eq!(sum(&[Cell::Count(2), Cell::Decimal(0.5), Cell::Count(1)]), Sum::Decimal(3.5));
    }

    proptest! {
        #[test]
        fn every_sum_reads_back(count: u64, bits in 0..f64::INFINITY.to_bits()) {
            let decimal = f64::from_bits(bits);
            for sum in [Sum::Count(count), Sum::Decimal(decimal), Sum::Decimal(-decimal)] {
                prop_assert_eq!(Sum::parse(&sum.to_string()), Some(sum));
            }
        }
    }
}
