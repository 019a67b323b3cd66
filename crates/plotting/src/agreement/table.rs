//! The matrix as a table.
use super::{Agreement, Cell, FILE_STEM};
use crate::number::{count, signed};
use crate::table::{self, Row, Table};

/// Digits after the point.
const DECIMALS: usize = 2;

const DIRECTION: &str = "heads with the least value are masked first; entropy counts negative, so that heads of spread \
                         attention come first";

/// The matrix with numbered columns, since the names are long.
pub fn table(agreement: &Agreement) -> Table {
    let size = agreement.scores.len();
    let row = |index: usize| Row {
        label: format!("{} {}", index + 1, agreement.scores[index].label()),
        cells: (0..size).map(|column| cell(agreement.cell(index, column))).collect(),
    };
    let heads = count(agreement.heads, "head");
    Table {
        name: "Agreement of orders",
        label: format!("{FILE_STEM}-{}", agreement.subject),
        title: format!(
            "Kendall's \u{3c4}-b above the diagonal and Spearman's \u{3c1} below, between what heads can be ordered by; \
             {}, {heads}",
            agreement.title
        ),
        row_heading: "Order",
        column_heading: "Order",
        columns: (1..=size).map(|number| number.to_string()).collect(),
        rows: (0..size).map(row).collect(),
        column_groups: Vec::new(),
        mark: None,
        summary: std::iter::once(DIRECTION.to_owned()).chain(agreement.notes.clone()).collect(),
        remarks: remarks(agreement),
    }
}

fn cell(cell: Cell) -> table::Cell {
    let text = match cell {
        Cell::Diagonal => String::new(),
        Cell::Undefined => "n/a".to_owned(),
        Cell::Correlation(value) => signed(value, DECIMALS),
    };
    table::Cell::plain(text)
}

fn remarks(agreement: &Agreement) -> Vec<String> {
    let undefined = "n/a: all heads are equal in one of the two orders".to_owned();
    let (missing, heads) = (agreement.without_oracle, count(agreement.heads, "head"));
    let oracle = format!("oracle left out: {missing} of {heads} without it, `ablate-one` measures it");
    let remarks = [
        agreement.has_undefined().then_some(undefined),
        (missing > 0).then_some(oracle),
        agreement.unknown.clone(),
    ];
    remarks.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::tests::example;

    #[test]
    fn the_table_has_numbered_columns_and_true_symbols() {
        let table = table(&example());
        let plain = table.terminal();
        assert!(
            plain.contains("5 confidence  +0.60   +0.60   +0.60   +0.60           +0.33   +0.33"),
            "{plain}"
        );
        assert!(table.markdown().contains("| 4 \u{2212}entropy | +1.00 | +1.00 | +1.00 |  | +0.33 |"));
        let latex = table.latex();
        assert!(latex.contains(r"4 $-$entropy & $+$1.00"), "{latex}");
        assert!(latex.contains(r"Kendall's $\tau$-b above") && latex.contains(r"Spearman's $\rho$ below"));
    }

    #[test]
    fn a_missing_oracle_and_unknown_data_are_said() {
        let partial = Agreement { without_oracle: 2, unknown: None, ..example() };
        assert!(table(&partial).remarks[0].starts_with("oracle left out: 2 of 4 heads without it"));
        assert!(table(&example()).remarks[0].starts_with("split unknown: no signature"));
        assert!(table(&Agreement { unknown: None, ..example() }).remarks.is_empty());
    }

    #[test]
    fn notes_belong_to_the_caption() {
        let noted = Agreement { notes: vec!["oracle: score lost on test".to_owned()], ..example() };
        assert_eq!(table(&noted).summary[1], "oracle: score lost on test");
    }
}
