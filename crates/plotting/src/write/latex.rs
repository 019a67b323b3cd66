//! Tables as LaTeX floats, which need `\usepackage{booktabs}`, and captions of figures, which need `graphicx`.
use records::visible::one_line;

use super::capitalised;
use crate::chart::{Chart, TEXT};
use crate::table::{Cell, Table};

/// With more columns than this a table spans both text columns in small type.
const NARROW: usize = 8;

/// A table in a float; marked cells are underlined.
pub fn render(table: &Table) -> String {
    let table = &table.visible();
    let float = if table.columns.len() > NARROW { "table*" } else { "table" };
    let mut lines: Vec<String> = table.remarks.iter().map(|remark| format!("% {remark}")).collect();
    lines.push(format!(r"\begin{{{float}}}[t]"));
    lines.push(r"  \centering".to_owned());
    lines.push(format!(r"  \caption{{{}}}", described(table)));
    lines.push(format!(r"  \label{{tab:{}}}", key(&table.label)));
    lines.push(r"  \smallskip".to_owned());
    lines.push(r"  \renewcommand{\arraystretch}{1.2}% room for the underlines".to_owned());
    lines.push(size(table.columns.len()).to_owned());
    let columns = (0..table.columns.len()).map(|column| if table.is_numeric(column) { 'r' } else { 'l' });
    lines.push(format!(r"  \begin{{tabular}}{{@{{}}r{}@{{}}}}", columns.collect::<String>()));
    lines.extend(head(table));
    lines.extend(table.rows.iter().map(|row| {
        let cells: String = row.cells.iter().map(|cell| format!(" & {}", marked(cell))).collect();
        format!(r"    {}{cells} \\", escape(&row.label))
    }));
    lines.push(r"    \bottomrule".to_owned());
    lines.push(r"  \end{tabular}".to_owned());
    lines.push(format!(r"\end{{{float}}}"));
    lines.join("\n") + "\n"
}

/// The figure in a float.
pub fn caption(chart: &Chart, stem: &str) -> String {
    let float = if chart.width < TEXT { "figure" } else { "figure*" };
    let notes = chart.notes.iter().map(|note| format!(" {}.", escape(&capitalised(&one_line(note)))));
    let title = escape(&capitalised(&one_line(&chart.title)));
    let (width, label, notes) = (chart.width, key(&chart.label), notes.collect::<String>());
    format!(
        "\\begin{{{float}}}[t]\n  \\centering\n  \\includegraphics[width={width}in]{{{stem}}}\n  \
         \\caption{{{title}.{notes}}}\n  \\label{{fig:{label}}}\n\\end{{{float}}}\n"
    )
}

/// Type size and column gap with which 16 columns of four digits fit a text width of 5.5 in.
fn size(columns: usize) -> &'static str {
    match columns {
        0..=8 => r"  \small",
        9..=12 => r"  \footnotesize\setlength{\tabcolsep}{4pt}",
        _ => r"  \scriptsize\setlength{\tabcolsep}{1.4pt}",
    }
}

fn described(table: &Table) -> String {
    let mark = table.mark.iter().map(|mark| format!("Underlined: {}.", escape(mark)));
    let title = format!("{}.", escape(&table.title));
    let summary = table.summary.iter().map(|note| format!("{}.", escape(&capitalised(note))));
    std::iter::once(title).chain(mark).chain(summary).collect::<Vec<_>>().join(" ")
}

fn head(table: &Table) -> Vec<String> {
    let columns = table.columns.len();
    let names: String = table.columns.iter().map(|name| format!(" & {}", escape(name))).collect();
    let mut lines = vec![
        r"    \toprule".to_owned(),
        format!(r"    & \multicolumn{{{columns}}}{{c}}{{{}}} \\", escape(table.headings[1])),
        format!(r"    \cmidrule(l){{2-{}}}", columns + 1),
    ];
    lines.extend(groups(table));
    lines.push(format!(r"    {}{names} \\", escape(table.headings[0])));
    lines.push(r"    \midrule".to_owned());
    lines
}

/// The names of the groups, with a line below each over its columns.
fn groups(table: &Table) -> Vec<String> {
    if table.column_groups.is_empty() {
        return Vec::new();
    }
    let (mut names, mut rules, mut next) = (String::new(), String::new(), 2);
    for (name, columns) in &table.column_groups {
        names += &format!(r" & \multicolumn{{{columns}}}{{c}}{{{}}}", escape(name));
        rules += &format!(r"\cmidrule(lr){{{next}-{}}}", next + columns - 1);
        next += columns;
    }
    vec![format!(r"   {names} \\"), format!("    {rules}")]
}

fn marked(cell: &Cell) -> String {
    let text = escape(&cell.text).replace('-', "$-$").replace('+', "$+$");
    if cell.marked { format!(r"\underline{{{text}}}") } else { text }
}

/// A key for `\label`, which may not hold special characters.
fn key(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// `text` such that LaTeX prints it as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str(r"\textbackslash{}"),
            '~' => escaped.push_str(r"\textasciitilde{}"),
            '^' => escaped.push_str(r"\textasciicircum{}"),
            '\u{2212}' => escaped.push_str("$-$"),
            '\u{3c1}' => escaped.push_str(r"$\rho$"),
            '\u{3c4}' => escaped.push_str(r"$\tau$"),
            '<' | '>' | '|' => escaped.push_str(&format!("${character}$")),
            '\u{2265}' => escaped.push_str(r"$\geq$"),
            '\u{b1}' => escaped.push_str(r"$\pm$"),
            '\u{2013}' => escaped.push_str("--"),
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}
