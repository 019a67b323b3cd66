//! Tables and figures as template values, with additions for HTML.
use charts::chart::{COLUMN, Chart};
use charts::table::Table;
use charts::write::Sheet;
use minijinja::{Value, context};
use words::{capitalised, with_minus};

/// Numbers with more characters than this are sentences, which are aligned left.
const SHORT: usize = 24;

/// Returns a table for a page; `prefix` makes its id unique among tables with equal labels.
pub fn of_table(prefix: &str, table: &Table) -> Value {
    let numeric: Vec<bool> = (0..table.columns.len()).map(|column| is_numeric(table, column)).collect();
    let mark = table.mark.iter().map(|mark| format!("marked with *: {mark}"));
    let notes: Vec<String> =
        table.summary.iter().cloned().chain(mark).chain(table.remarks.iter().cloned()).collect();
    let id = id(&format!("{prefix}-{}", table.label));
    let own = context! { id, numeric, notes, corner => table.corner() };
    context! { ..own, ..Value::from_serialize(table) }
}

/// Returns a figure for a page. Its markup is trusted, since the painter escapes all texts.
fn of_figure(chart: &Chart) -> Value {
    let (name, title, notes) = (chart.name, &chart.title, &chart.notes);
    context! { name, title, notes, svg => image(chart), is_wide => chart.width > COLUMN }
}

/// Returns SVG markup that screen readers treat as one image.
fn image(chart: &Chart) -> Value {
    Value::from_safe_string(charts::svg(chart).replacen("<svg ", "<svg role=\"img\" ", 1))
}

pub fn of_sheets<'a>(prefix: &str, sheets: impl IntoIterator<Item = &'a Sheet>) -> Vec<Value> {
    let mut parts = Vec::new();
    for sheet in sheets {
        parts.extend(sheet.chart.iter().map(|chart| context! { figure => of_figure(chart) }));
        for table in &sheet.tables {
            parts.push(context! { table => of_table(&format!("{prefix}-{}", parts.len()), table) });
        }
    }
    parts
}

/// Capitalises a text and adds a full stop.
pub fn sentence(text: &str) -> String {
    let stop = if text.is_empty() || text.ends_with(['.', '?', '!']) { "" } else { "." };
    with_minus(&capitalised(text)) + stop
}

/// `true` if a column is right-aligned: one of short numbers.
fn is_numeric(table: &Table, column: usize) -> bool {
    let cells = || table.rows.iter().filter_map(|row| row.cells.get(column));
    let is_short = cells().all(|cell| cell.text.chars().count() <= SHORT);
    is_short && table.is_numeric(column) && cells().any(|cell| cell.value.is_some())
}

/// Turns a text into an id that can be part of a link within the page.
pub fn id(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital_letter_and_end_with_a_stop() {
        assert_eq!(
            ["base BLEU -3", "\u{e4}rgerlich", "why?", ""].map(sentence),
            ["Base BLEU \u{2212}3.", "\u{c4}rgerlich.", "Why?", ""]
        );
        assert_eq!(id("table1-<b>&X"), "table1--b--x");
    }
}
