//! Tables as Markdown (the pipe tables of GitHub and pandoc), and captions of figures.
use records::visible::one_line;

use super::capitalised;
use crate::chart::Chart;
use crate::table::{Cell, Table};

/// A table with its notes.
pub fn render(table: &Table) -> String {
    let table = &table.visible();
    let notes = table.mark.iter().map(|mark| format!("bold: {mark}"));
    let notes = notes.chain(table.summary.iter().chain(&table.remarks).cloned());
    let corner = format!("{} / {}", table.headings[0], table.headings[1].to_lowercase());
    let mut lines = vec![format!("**{}.** {}", table.name, escape(&table.title)), String::new()];
    lines.extend(rows(table, &corner));
    lines.push(String::new());
    lines.extend(notes.map(|note| format!("- {}", escape(&note))));
    lines.join("\n") + "\n"
}

/// A table with its remarks alone, as part of a page.
pub fn grid(table: &Table) -> String {
    let table = &table.visible();
    let mut lines = rows(table, table.headings[0]);
    if !table.remarks.is_empty() {
        lines.push(String::new());
    }
    lines.extend(table.remarks.iter().map(|remark| format!("- {}", escape(remark))));
    lines.join("\n")
}

/// The figure with its caption.
pub fn caption(chart: &Chart, stem: &str) -> String {
    let title = escape(&capitalised(&one_line(&chart.title)));
    let notes = chart.notes.iter().map(|note| format!(" {}.", escape(&capitalised(&one_line(note)))));
    let alternative = title.replace(']', "\\]");
    let notes: String = notes.collect();
    format!("![{alternative}]({stem}.svg)\n\n**{}.** {title}.{notes}\n", chart.name)
}

fn rows(table: &Table, corner: &str) -> Vec<String> {
    let names = table.columns.iter().map(|name| escape(name));
    let rule = |is_numeric| if is_numeric { "--:" } else { "---" }.to_owned();
    let has_numbers = table.rows.iter().all(|row| row.label.starts_with(|c: char| c.is_ascii_digit()));
    let rules = (0..table.columns.len()).map(|column| rule(table.is_numeric(column)));
    let mut lines = vec![
        line(std::iter::once(escape(corner)).chain(names)),
        line(std::iter::once(rule(has_numbers)).chain(rules)),
    ];
    if !table.column_groups.is_empty() {
        lines.push(line(std::iter::once(String::new()).chain(groups(table))));
    }
    lines.extend(
        table
            .rows
            .iter()
            .map(|row| line(std::iter::once(escape(&row.label)).chain(row.cells.iter().map(marked)))),
    );
    lines
}

/// The name of each group in its first column; pipe tables have one line of names, so that this is a row below them.
fn groups(table: &Table) -> impl Iterator<Item = String> {
    table.column_groups.iter().flat_map(|(name, columns)| {
        let rest = (1..*columns).map(|_| String::new());
        std::iter::once(format!("*{}*", escape(name))).chain(rest)
    })
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let body: Vec<String> = cells.collect();
    format!("| {} |", body.join(" | "))
}

fn marked(cell: &Cell) -> String {
    let text = escape(&cell.text);
    if cell.marked { format!("**{text}**") } else { text }
}

/// `text` such that Markdown shows it as it is, HTML included.
pub fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            _ if r"\|*_`<[$".contains(character) => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}
