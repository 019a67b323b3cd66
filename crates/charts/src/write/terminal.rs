//! Tables for a terminal.
use std::fmt::Write;

use words::one_line;

use crate::table::{Cell, Row, Table};

const MARKED: &str = "\x1b[1;4m";
const PLAIN: &str = "\x1b[0m";

/// Renders a table. Marked cells are bold, underlined and followed by `*` in case styles are stripped.
pub fn render(table: &Table) -> String {
    let rows: Vec<Row> = table.rows.iter().map(on_one_line).collect();
    let columns: Vec<String> = table.columns.iter().map(|name| one_line(name)).collect();
    let [first, width] = widths(table.headings, &columns, &rows);
    let mut text = one_line(&format!("{}. {}", table.name, table.title)) + "\n\n";
    let _ = writeln!(text, "{:first$}  {:>width$}", "", table.headings[1]);
    if !table.column_groups.is_empty() {
        let names = table.column_groups.iter().map(|(name, columns)| {
            let span = columns * (width + 3) - 2;
            format!("  {:-<span$}", one_line(name) + " ")
        });
        push_line(&mut text, &format!("{:first$}{}", "", names.collect::<String>()));
    }
    let header = columns.iter().map(|name| format!("  {name:>width$} "));
    push_line(&mut text, &format!("{:>first$}{}", table.headings[0], header.collect::<String>()));
    for row in &rows {
        let cells = row.cells.iter().map(|cell| styled(cell, width));
        push_line(&mut text, &format!("{:>first$}{}", row.label.text, cells.collect::<String>()));
    }
    text.push('\n');
    let mark = table.mark.iter().map(|mark| format!("* {mark}"));
    for note in table.summary.iter().cloned().chain(mark).chain(table.remarks.iter().cloned()) {
        push_line(&mut text, &one_line(&note));
    }
    text
}

fn on_one_line(row: &Row) -> Row {
    let cell = |cell: &Cell| Cell { text: one_line(&cell.text), ..cell.clone() };
    Row { label: cell(&row.label), cells: row.cells.iter().map(cell).collect() }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Returns the width of the row names, and the common width of all other columns.
fn widths([first, others]: [&str; 2], columns: &[String], rows: &[Row]) -> [usize; 2] {
    let labels = rows.iter().map(|row| &row.label.text[..]).chain([first]);
    let cells = rows.iter().flat_map(|row| &row.cells).map(|cell| &cell.text[..]);
    let cells = cells.chain(columns.iter().map(String::as_str)).chain([others]);
    let widest = |width: usize, text: &str| width.max(text.chars().count());
    [labels.fold(0, widest), cells.fold(0, widest)]
}

/// Pads the cell on the left; the padding is not underlined.
fn styled(cell: &Cell, width: usize) -> String {
    let padding = " ".repeat(width.saturating_sub(cell.text.chars().count()));
    if cell.marked {
        return format!("  {padding}{MARKED}{}{PLAIN}*", cell.text);
    }
    format!("  {padding}{} ", cell.text)
}
