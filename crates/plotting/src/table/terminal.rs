//! Tables for a terminal.
use std::fmt::Write;

use super::{Cell, Table};

const MARKED: &str = "\x1b[1;4m";
const PLAIN: &str = "\x1b[0m";

pub(super) fn render(table: &Table) -> String {
    let first = first_width(table);
    let width = cell_width(table);
    let mut text = format!("{}. {}\n\n", table.name, table.title);
    let _ = writeln!(text, "{:first$}  {:>width$}", "", table.column_heading);
    if !table.column_groups.is_empty() {
        let names = table.column_groups.iter().map(|group| {
            let span = group.columns * (width + 3) - 2;
            format!("  {:-<span$}", format!("{} ", group.name))
        });
        push_line(&mut text, &format!("{:first$}{}", "", names.collect::<String>()));
    }
    let header = table.columns.iter().map(|name| format!("  {name:>width$} "));
    push_line(&mut text, &format!("{:>first$}{}", table.row_heading, header.collect::<String>()));
    for row in &table.rows {
        let cells = row.cells.iter().map(|cell| styled(cell, width));
        push_line(&mut text, &format!("{:>first$}{}", row.label, cells.collect::<String>()));
    }
    text.push('\n');
    for note in table.mark.iter().map(|mark| format!("* {mark}")) {
        push_line(&mut text, &note);
    }
    for note in table.summary.iter().chain(&table.remarks) {
        push_line(&mut text, note);
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

fn first_width(table: &Table) -> usize {
    let labels = table.rows.iter().map(|row| row.label.chars().count());
    labels.chain([table.row_heading.len()]).max().unwrap_or(0)
}

fn cell_width(table: &Table) -> usize {
    let cells = table.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.text.chars().count());
    let names = table.columns.iter().map(|name| name.chars().count());
    cells.chain(names).chain([table.column_heading.len()]).max().unwrap_or(0)
}

/// The cell, padded on the left; the padding is not underlined.
fn styled(cell: &Cell, width: usize) -> String {
    let padding = " ".repeat(width.saturating_sub(cell.text.chars().count()));
    match cell.marked {
        true => format!("  {padding}{MARKED}{}{PLAIN}*", cell.text),
        false => format!("  {padding}{} ", cell.text),
    }
}

#[cfg(test)]
mod tests {
    use crate::table::{example, grouped};

    /// Columns of six characters and a place for the mark, two spaces before each.
    #[test]
    fn groups_stand_above_their_columns() {
        let expected = "       kv 1 --  kv 2 --\nLayer";
        assert!(grouped().terminal().contains(expected), "{}", grouped().terminal());
    }

    #[test]
    fn columns_line_up_and_marks_survive_without_styles() {
        let styled = example().terminal();
        assert!(styled.contains("\u{1b}[1;4m-10.53\u{1b}[0m*"), "{styled:?}");
        let expected = "\
Table 1. BLEU of a_b & c

         Head
Layer       1        2
    1   +0.03   -10.53*
    2             0.00

* p < 0.01
1 of 3 heads
100 % of the paper's
";
        let plain = anstream::adapter::strip_str(&styled).to_string();
        assert_eq!(plain, expected, "\n{plain}");
    }
}
