//! What heads can be ordered by, summed over those that share keys and values: what `iterative-prune --unit group` orders by.
use records::ImportanceRow;

use crate::importance::{HeadScore, Importance};
use crate::table::{Cell, Row, Table};

/// What the labels of its tables begin with.
const LABEL: &str = "importance-by-group";

/// Heads that share keys and values, with their scores.
struct Group<'a> {
    layer: usize,
    /// Counted from 1.
    number: usize,
    rows: Vec<&'a ImportanceRow>,
}

impl Group<'_> {
    /// Sum over the heads; absent where one was not measured.
    fn sum(&self, score: HeadScore) -> Option<f64> {
        self.rows.iter().map(|row| score.value(row)).sum()
    }

    fn label(&self) -> String {
        let heads = self.rows.iter().map(|row| row.head);
        let (first, last) = (heads.clone().min().unwrap_or(0), heads.max().unwrap_or(0));
        format!("layer {}, group {}: heads {first} to {last}", self.layer, self.number)
    }
}

/// The table; none for a model whose heads all have keys and values of their own.
pub fn table(importance: &Importance) -> Option<Table> {
    let groups = groups(importance)?;
    let scores: Vec<HeadScore> =
        HeadScore::ALL.into_iter().filter(|&score| importance.values(score).is_some()).collect();
    let columns: Vec<Vec<f64>> =
        scores.iter().map(|&score| groups.iter().filter_map(|group| group.sum(score)).collect()).collect();
    let row = |(place, group): (usize, &Group<'_>)| Row {
        label: group.label(),
        cells: columns.iter().map(|column| cell(column, place)).collect(),
    };
    Some(Table {
        name: "Importance by group",
        label: format!("{LABEL}-{}", importance.file.subject),
        title: format!("Sums over the heads that share keys and values; {}", importance.title()),
        row_heading: "Group",
        column_heading: "Score",
        columns: scores.iter().map(|score| score.label().to_owned()).collect(),
        rows: groups.iter().enumerate().map(row).collect(),
        column_groups: Vec::new(),
        mark: Some(
            "the least of its column: the group that `iterative-prune --unit group` masks first".to_owned(),
        ),
        summary: importance.notes(),
        remarks: importance.unknown().into_iter().collect(),
    })
}

/// Groups by layer, if the signature says how many there are.
fn groups(importance: &Importance) -> Option<Vec<Group<'_>>> {
    let key_values = importance.file.origin.key_value_heads()?;
    let rows = importance.rows();
    let heads = rows.iter().map(|row| row.head).max()?;
    let size = heads.checked_div(key_values).filter(|_| heads.is_multiple_of(key_values))?;
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in rows {
        let (layer, number) = (row.layer, (row.head - 1) / size + 1);
        match groups.iter_mut().find(|group| (group.layer, group.number) == (layer, number)) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { layer, number, rows: vec![row] }),
        }
    }
    groups.sort_by_key(|group| (group.layer, group.number));
    Some(groups)
}

/// As many digits for a whole column, three that count in its greatest number.
fn cell(column: &[f64], place: usize) -> Cell {
    let greatest = column.iter().copied().map(f64::abs).fold(0.0, f64::max);
    let least = column.iter().copied().fold(f64::INFINITY, f64::min);
    let digits = (2.0 - greatest.max(f64::MIN_POSITIVE).log10().floor()).clamp(0.0, 9.0) as usize;
    let value = column[place];
    Cell { text: format!("{value:.digits$}").replace('-', "\u{2212}"), marked: value == least }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importance::tests::row;
    use crate::origin::tests::of_language_model;
    use crate::test_rows::file;

    /// Four heads in two groups, ranked 1, 4, 2 and 8: sums of 5 and 10.
    fn importance(key_value_heads: u64) -> Importance {
        let mut file = file();
        file.origin = of_language_model(key_value_heads);
        let rows = [(1, 1.0), (2, 4.0), (3, 2.0), (4, 8.0)].map(|(head, rank)| row(head, rank));
        Importance::from_rows(file, rows.to_vec()).unwrap()
    }

    #[test]
    fn scores_are_summed_over_the_heads_of_a_group() {
        let table = table(&importance(2)).unwrap();
        let labels: Vec<&str> = table.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["layer 1, group 1: heads 1 to 2", "layer 1, group 2: heads 3 to 4"]);
        let cells = |row: usize| table.rows[row].cells[0].clone();
        assert_eq!((cells(0).text.as_str(), cells(0).marked), ("5.0", true));
        assert_eq!((cells(1).text.as_str(), cells(1).marked), ("10.0", false));
        // spread of 9 less each rank, negative: -(8 + 5) and -(7 + 1)
        let entropy = table.columns.iter().position(|name| name.ends_with("entropy")).unwrap();
        assert_eq!(table.rows[0].cells[entropy].text, "\u{2212}13.0");
    }

    #[test]
    fn heads_without_groups_have_no_table() {
        assert!(table(&importance(0)).is_none());
        assert!(table(&importance(3)).is_none(), "3 does not divide 4 heads");
        let plain = Importance::from_rows(file(), vec![row(1, 1.0)]).unwrap();
        assert!(table(&plain).is_none());
    }
}
