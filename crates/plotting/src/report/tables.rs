//! Tables and figures as templates need them, beside what they print as it is.
use charts::chart::{COLUMN, Chart};
use charts::table::Table;
use charts::write::Sheet;
use minijinja::{Value, context};
use words::{capitalised, with_minus};

/// Numbers with more characters than this are sentences, which stand to the left.
const SHORT: usize = 24;

/// A table of a page; `prefix` keeps its id apart from those of other tables with the same label.
pub fn of_table(prefix: &str, table: &Table) -> Value {
    let numeric: Vec<bool> = (0..table.columns.len()).map(|column| is_numeric(table, column)).collect();
    let mark = table.mark.iter().map(|mark| format!("marked with *: {mark}"));
    let notes: Vec<String> =
        table.summary.iter().cloned().chain(mark).chain(table.remarks.iter().cloned()).collect();
    let id = id(&format!("{prefix}-{}", table.label));
    let own = context! { id, numeric, notes, corner => table.corner() };
    context! { ..own, ..Value::from_serialize(table) }
}

/// A figure of a page. Its markup is the painter's, which escapes all texts.
fn of_figure(chart: &Chart, frames: &[Chart]) -> Value {
    let (svg, frames) = (image(chart), frames.iter().map(image).collect::<Vec<_>>());
    let (name, title, notes) = (chart.name, &chart.title, &chart.notes);
    context! { name, title, notes, svg, frames, is_wide => chart.width > COLUMN }
}

/// Markup that screen readers take for one image.
fn image(chart: &Chart) -> Value {
    Value::from_safe_string(charts::svg(chart).replacen("<svg ", "<svg role=\"img\" ", 1))
}

/// The figures and tables of some sheets, under one prefix.
pub fn of_sheets<'a>(prefix: &str, sheets: impl IntoIterator<Item = &'a Sheet>) -> Vec<Value> {
    let mut parts = Vec::new();
    for sheet in sheets {
        parts.extend(sheet.chart.iter().map(|chart| context! { figure => of_figure(chart, &sheet.frames) }));
        for table in &sheet.tables {
            parts.push(context! { table => of_table(&format!("{prefix}-{}", parts.len()), table) });
        }
    }
    parts
}

/// A text with a capital letter and a full stop.
pub fn sentence(text: &str) -> String {
    let stop = if text.is_empty() || text.ends_with(['.', '?', '!']) { "" } else { "." };
    with_minus(&capitalised(text)) + stop
}

/// `true` if a column stands to the right: one of numbers with few words.
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
            ["base BLEU -3", "\u{e4}rgerlich", "why?", ""].map(sentence),
            ["Base BLEU \u{2212}3.", "\u{c4}rgerlich.", "Why?", ""]
        );
        assert_eq!(id("table1-<b>&X"), "table1--b--x");
    }
}
