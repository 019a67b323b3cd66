//! Tables and figures of `plotting` as templates need them.
use charts::chart::{COLUMN, Chart};
use charts::table::{Cell, Row, Table};
use serde::Serialize;
use words::one_line;

use crate::gather::Part;

/// Numbers with more characters than this are sentences, which stand to the left.
const SHORT: usize = 24;

/// Texts with more characters than this need a wide column.
const LONG: usize = 40;

/// A table of a page.
#[derive(Debug, Serialize)]
pub struct TableView {
    /// Unlike that of any other table of the page.
    id: String,
    name: &'static str,
    title: String,
    corner: String,
    groups: Vec<Group>,
    columns: Vec<Column>,
    rows: Vec<RowView>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Group {
    name: String,
    span: usize,
}

#[derive(Debug, Serialize)]
struct Column {
    name: String,
    is_numeric: bool,
}

#[derive(Debug, Serialize)]
struct RowView {
    label: String,
    href: Option<String>,
    cells: Vec<CellView>,
}

#[derive(Debug, Serialize)]
struct CellView {
    text: String,
    value: Option<f64>,
    is_marked: bool,
    is_numeric: bool,
    is_long: bool,
}

impl TableView {
    /// `prefix` keeps its id apart from those of other tables with the same label.
    pub fn new(prefix: &str, table: &Table) -> Self {
        let table = &table.visible();
        let corner = match table.headings {
            [rows, ""] => rows.to_owned(),
            [rows, columns] => format!("{rows} / {}", columns.to_lowercase()),
        };
        let numeric: Vec<_> = (0..table.columns.len()).map(|column| is_numeric(table, column)).collect();
        let column = |(name, &is_numeric): (&String, &bool)| Column { name: name.clone(), is_numeric };
        let mark = table.mark.iter().map(|mark| format!("marked with *: {mark}"));
        Self {
            id: id(&format!("{prefix}-{}", table.label)),
            name: table.name,
            title: sentence(&table.title),
            corner,
            groups: table
                .column_groups
                .iter()
                .map(|(name, span)| Group { name: name.clone(), span: *span })
                .collect(),
            columns: table.columns.iter().zip(&numeric).map(column).collect(),
            rows: table.rows.iter().map(|row| RowView::new(row, &numeric)).collect(),
            notes: mark
                .chain(table.summary.iter().chain(&table.remarks).cloned())
                .map(|note| sentence(&note))
                .collect(),
        }
    }

    /// The same whose rows lead to pages.
    pub fn linked(self, hrefs: impl IntoIterator<Item = String>) -> Self {
        let rows = self.rows.into_iter().zip(hrefs);
        Self { rows: rows.map(|(row, href)| RowView { href: Some(href), ..row }).collect(), ..self }
    }

    /// The text of the first cell of a row.
    pub fn first_cell(&self, label: &str) -> &str {
        let row = self.rows.iter().find(|row| row.label == label);
        row.and_then(|row| row.cells.first()).map_or("", |cell| &cell.text)
    }

    /// The name of the first column.
    pub fn first_column(&self) -> &str {
        self.columns.first().map_or("", |column| &column.name)
    }
}

impl RowView {
    fn new(row: &Row, numeric: &[bool]) -> Self {
        let cell = |(cell, &is_numeric): (&Cell, &bool)| CellView {
            text: typographic(&cell.text),
            is_long: cell.text.chars().count() > LONG,
            value: cell.value.filter(|value| value.is_finite()),
            is_marked: cell.marked,
            is_numeric,
        };
        Self {
            label: row.label.clone(),
            href: None,
            cells: row.cells.iter().zip(numeric).map(cell).collect(),
        }
    }
}

/// A figure of a page.
#[derive(Debug, Serialize)]
pub struct FigureView {
    name: &'static str,
    title: String,
    notes: Vec<String>,
    /// Markup that the painter made; all texts in it are escaped.
    svg: String,
    is_wide: bool,
    /// Those of a film, likewise.
    frames: Vec<String>,
}

impl FigureView {
    fn new(chart: &Chart, frames: &[Chart]) -> Self {
        let visible = |text: &String| sentence(&one_line(text));
        Self {
            name: chart.name,
            title: visible(&chart.title),
            notes: chart.notes.iter().map(visible).collect(),
            svg: image(chart),
            is_wide: chart.width > COLUMN,
            frames: frames.iter().map(image).collect(),
        }
    }
}

/// Markup that screen readers take for one image.
fn image(chart: &Chart) -> String {
    charts::svg(chart).replacen("<svg ", "<svg role=\"img\" ", 1)
}

/// A table or a figure of a page.
#[derive(Debug, Serialize)]
pub struct PartView {
    table: Option<TableView>,
    figure: Option<FigureView>,
}

impl PartView {
    /// All parts under one prefix.
    pub fn all(prefix: &str, parts: &[Part]) -> Vec<Self> {
        let view = |(place, part): (usize, &Part)| match part {
            Part::Table(table) => {
                Self { table: Some(TableView::new(&format!("{prefix}-{place}"), table)), figure: None }
            }
            Part::Figure(chart, frames) => Self { table: None, figure: Some(FigureView::new(chart, frames)) },
        };
        parts.iter().enumerate().map(view).collect()
    }
}

/// A text with a capital letter and a full stop.
pub fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase).into_iter().flatten();
    let stop = if text.is_empty() || text.ends_with(['.', '?', '!']) { "" } else { "." };
    first.chain(typographic(characters.as_str()).chars()).collect::<String>() + stop
}

/// The same with a minus sign where a number has a hyphen.
fn typographic(text: &str) -> String {
    let mut shown = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let begins = shown.is_empty() || shown.ends_with([' ', '(', '[']);
        let is_minus = character == '-' && begins && characters.peek().is_some_and(char::is_ascii_digit);
        shown.push(if is_minus { '\u{2212}' } else { character });
    }
    shown
}

/// Whether a column stands to the right: one of numbers with few words.
fn is_numeric(table: &Table, column: usize) -> bool {
    let cells = || table.rows.iter().filter_map(|row| row.cells.get(column));
    let is_short = cells().all(|cell| cell.text.chars().count() <= SHORT);
    is_short && table.is_numeric(column) && cells().any(|cell| cell.value.is_some())
}

/// A name that can be an id and a part of an address within a page.
pub fn id(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital_letter_and_end_with_a_stop() {
        assert_eq!(
            ["base BLEU 3", "ärgerlich", "why?", ""].map(sentence),
            ["Base BLEU 3.", "Ärgerlich.", "Why?", ""]
        );
        assert_eq!(typographic("-0.5 (-1 to +2) enc-enc-1"), "\u{2212}0.5 (\u{2212}1 to +2) enc-enc-1");
        assert_eq!(id("table1-<b>&X"), "table1--b--x");
    }
}
