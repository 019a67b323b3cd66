//! Numbers of a segment as result files store them.
use std::fmt;

/// One number of a segment: a count, or a decimal number if nothing can be counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// A count, written with digits only.
    Count(u32),
    /// A finite number in single precision, to keep files small; always written with a point or an exponent.
    Decimal(f32),
}

impl Cell {
    /// Parses what [`Display`](fmt::Display) wrote; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Count);
        }
        // whole numbers are counts, which have no sign
        let decimal = text.contains(['.', 'e']).then(|| text.parse().ok()).flatten();
        decimal.filter(|number: &f32| number.is_finite()).map(Self::Decimal)
    }

    /// Returns the number.
    pub fn value(self) -> f32 {
        match self {
            Self::Count(count) => count as f32,
            Self::Decimal(value) => value,
        }
    }

    /// Returns the count; `None` for a decimal number.
    pub fn count(self) -> Option<u32> {
        match self {
            Self::Count(count) => Some(count),
            Self::Decimal(_) => None,
        }
    }
}

impl fmt::Display for Cell {
    /// Writes the shortest text that parses to an equal number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(formatter, "{count}"),
            // Debug keeps the point of whole numbers, which distinguishes them from counts.
            Self::Decimal(number) => write!(formatter, "{number:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_texts_are_not_cells_and_decimal_numbers_differ_from_counts() {
        assert_eq!([Cell::Count(12), Cell::Decimal(12.0)].map(|cell| cell.to_string()), ["12", "12.0"]);
        for text in ["", "x", "-1", "+1.5.", "NaN", "inf", "1e39", "4294967296", " 1"] {
            assert_eq!(Cell::parse(text), None, "`{text}`");
        }
    }

    proptest! {
        #[test]
        fn every_cell_reads_back_bit_by_bit(count: u32, bits in 0..f32::INFINITY.to_bits(), is_negative: bool) {
            let decimal = f32::from_bits(bits | u32::from(is_negative) << 31);
            prop_assert_eq!(Cell::parse(&Cell::Count(count).to_string()), Some(Cell::Count(count)));
            let Some(Cell::Decimal(read)) = Cell::parse(&Cell::Decimal(decimal).to_string()) else {
                panic!("{decimal:?} does not read back");
            };
            prop_assert_eq!(read.to_bits(), decimal.to_bits());
        }
    }
}
