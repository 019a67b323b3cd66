//! Tables for a terminal.
use std::fmt::Write;

use crate::table::{Cell, Table};

const MARKED: &str = "\x1b[1;4m";
const PLAIN: &str = "\x1b[0m";

/// Marked cells are bold and underlined with `*` behind them, so that the mark survives where the styles are stripped.
pub fn render(table: &Table) -> String {
    let table = &table.visible();
    let first = first_width(table);
    let width = cell_width(table);
    let mut text = format!("{}. {}\n\n", table.name, table.title);
    let _ = writeln!(text, "{:first$}  {:>width$}", "", table.headings[1]);
    if !table.column_groups.is_empty() {
        let names = table.column_groups.iter().map(|(name, columns)| {
            let span = columns * (width + 3) - 2;
            format!("  {:-<span$}", format!("{name} "))
        });
        push_line(&mut text, &format!("{:first$}{}", "", names.collect::<String>()));
    }
    let header = table.columns.iter().map(|name| format!("  {name:>width$} "));
    push_line(&mut text, &format!("{:>first$}{}", table.headings[0], header.collect::<String>()));
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
    labels.chain([table.headings[0].len()]).max().unwrap_or(0)
}

fn cell_width(table: &Table) -> usize {
    let cells = table.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.text.chars().count());
    let names = table.columns.iter().map(|name| name.chars().count());
    cells.chain(names).chain([table.headings[1].len()]).max().unwrap_or(0)
}

/// The cell, padded on the left; the padding is not underlined.
fn styled(cell: &Cell, width: usize) -> String {
    let padding = " ".repeat(width.saturating_sub(cell.text.chars().count()));
    if cell.marked {
        return format!("  {padding}{MARKED}{}{PLAIN}*", cell.text);
    }
    format!("  {padding}{} ", cell.text)
}
