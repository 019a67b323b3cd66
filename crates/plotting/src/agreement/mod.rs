//! How far the orders in which heads can be masked agree, by rank correlation over all heads.
//!
//! The paper has no such table; it compares orders by what they do to the score (Michel et al. 2019, Section 4.2).
mod matrix;
mod table;

pub use matrix::figure;
pub use table::table;

use stats::correlation::{kendall, spearman};

use crate::Error;
use crate::importance::{HeadScore, Importance};

/// Name of its files, without extension.
pub const FILE_STEM: &str = "importance-agreement";

/// The rank correlation of each two orders.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// Subject and data as a reader should see them.
    pub title: String,
    /// Sentences on data and settings that the title does not cover.
    pub notes: Vec<String>,
    /// A sentence where the data is not known, or the signature cannot vouch for the rows.
    pub unknown: Option<String>,
    /// What gives the orders, from the top and from the left.
    pub scores: Vec<HeadScore>,
    /// Number of heads.
    pub heads: usize,
    /// Heads without a value for the oracle, where that order is left out.
    pub without_oracle: usize,
    subject: String,
    cells: Vec<Vec<Cell>>,
}

/// One cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// An order and itself.
    Diagonal,
    /// All heads are equal in one of the orders.
    Undefined,
    /// Kendall's tau-b above the diagonal, Spearman's rho below.
    Correlation(f64),
}

impl Agreement {
    /// Compares all orders that know every head.
    ///
    /// # Errors
    /// With fewer than three heads.
    pub fn of(importance: &Importance) -> Result<Self, Error> {
        let known = HeadScore::ALL.into_iter().filter_map(|score| Some((score, importance.values(score)?)));
        let (scores, values): (Vec<_>, Vec<_>) = known.unzip();
        let cells = (0..scores.len())
            .map(|row| (0..scores.len()).map(|column| cell(&values, row, column)).collect::<Result<_, _>>());
        let cells = cells.collect::<Result<_, _>>();
        let cells = cells.map_err(|source| Error::Compare { path: importance.path().to_owned(), source })?;
        let without_oracle = importance.rows().iter().filter(|row| row.oracle.is_none()).count();
        Ok(Self {
            title: importance.title(),
            notes: importance.notes(),
            unknown: importance.unknown(),
            scores,
            heads: importance.rows().len(),
            without_oracle,
            subject: importance.file.subject.clone(),
            cells,
        })
    }

    /// Whether all heads are equal in one of the orders.
    pub fn has_undefined(&self) -> bool {
        self.cells.iter().flatten().any(|cell| *cell == Cell::Undefined)
    }

    /// The cell in a row and column, both counted from 0.
    pub fn cell(&self, row: usize, column: usize) -> Cell {
        self.cells[row][column]
    }
}

fn cell(values: &[Vec<f64>], row: usize, column: usize) -> Result<Cell, stats::Error> {
    if row == column {
        return Ok(Cell::Diagonal);
    }
    let correlate = if row < column { kendall } else { spearman };
    match correlate(&values[row], &values[column]) {
        Ok(found) => Ok(Cell::Correlation(found.coefficient)),
        Err(stats::Error::NoSpread) => Ok(Cell::Undefined),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importance::tests::{importance, row};
    use records::ImportanceRow;

    /// Ranks 1, 2, 3, 4 in all orders but confidence, which has 2, 1, 4, 3.
    pub(crate) fn example() -> Agreement {
        let heads = [(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0)];
        let row = |(head, (rank, confidence))| ImportanceRow { confidence, ..row(head, rank) };
        Agreement::of(&importance((1..).zip(heads).map(row).collect()).unwrap()).unwrap()
    }

    /// Two of six pairs are inverted: tau = (4 - 2) / 6. Σ d² = 4: rho = 1 - 6 * 4 / (4 * 15).
    #[test]
    fn tau_is_above_the_diagonal_and_rho_below() {
        let found = example();
        let confidence = found.scores.iter().position(|&score| score == HeadScore::Confidence).unwrap();
        let value = |row, column| match found.cell(row, column) {
            Cell::Correlation(value) => value,
            other => panic!("{other:?}"),
        };
        assert!((value(0, confidence) - 1.0 / 3.0).abs() < 1e-12);
        assert!((value(confidence, 0) - 0.6).abs() < 1e-12);
        assert_eq!(found.cell(0, 0), Cell::Diagonal);
    }

    /// The entropy of these heads falls where all else rises, so its negative is the same order.
    #[test]
    fn entropy_counts_negative() {
        let found = example();
        let entropy = found.scores.iter().position(|&score| score == HeadScore::NegativeEntropy).unwrap();
        assert_eq!(found.cell(0, entropy), Cell::Correlation(1.0));
    }

    #[test]
    fn equal_heads_are_undefined_and_two_heads_too_few() {
        let equal = (1..=3).map(|head| ImportanceRow { confidence: 0.5, ..row(head, head as f64) });
        let found = Agreement::of(&importance(equal.collect()).unwrap()).unwrap();
        assert_eq!(found.cell(0, 4), Cell::Undefined);
        assert!(found.has_undefined() && !example().has_undefined());
        let two = importance(vec![row(1, 1.0), row(2, 2.0)]).unwrap();
        let message = Agreement::of(&two).unwrap_err().to_string();
        assert_eq!(message, "cannot compare the numbers of `importance.csv`");
    }

    #[test]
    fn an_oracle_with_gaps_is_left_out() {
        let rows = (1..=3).map(|head| row(head, head as f64));
        let rows = rows.chain([ImportanceRow { oracle: None, ..row(4, 4.0) }]).collect();
        let found = Agreement::of(&importance(rows).unwrap()).unwrap();
        assert_eq!((found.scores.len(), found.without_oracle), (6, 1));
    }
}
