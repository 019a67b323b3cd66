//! Tables as LaTeX floats. They need `\usepackage{booktabs}` and no other package.
use super::{Cell, ColumnGroup, Table};

/// With more columns than this a table spans both text columns in small type.
const NARROW: usize = 8;

pub(super) fn render(table: &Table) -> String {
    let float = if table.columns.len() > NARROW { "table*" } else { "table" };
    let mut lines: Vec<String> = table.remarks.iter().map(|remark| format!("% {remark}")).collect();
    lines.push(format!(r"\begin{{{float}}}[t]"));
    lines.push(r"  \centering".to_owned());
    lines.push(format!(r"  \caption{{{}}}", caption(table)));
    lines.push(format!(r"  \label{{tab:{}}}", label(&table.label)));
    lines.push(r"  \smallskip".to_owned());
    lines.push(r"  \renewcommand{\arraystretch}{1.2}% room for the underlines".to_owned());
    lines.push(size(table.columns.len()).to_owned());
    lines.push(format!(r"  \begin{{tabular}}{{@{{}}r*{{{}}}{{r}}@{{}}}}", table.columns.len()));
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

/// Type size and column gap with which 16 columns of four digits fit a text width of 5.5 in.
fn size(columns: usize) -> &'static str {
    match columns {
        0..=8 => r"  \small",
        9..=12 => r"  \footnotesize\setlength{\tabcolsep}{4pt}",
        _ => r"  \scriptsize\setlength{\tabcolsep}{1.4pt}",
    }
}

fn caption(table: &Table) -> String {
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
        format!(r"    & \multicolumn{{{columns}}}{{c}}{{{}}} \\", escape(table.column_heading)),
        format!(r"    \cmidrule(l){{2-{}}}", columns + 1),
    ];
    lines.extend(groups(table));
    lines.push(format!(r"    {}{names} \\", escape(table.row_heading)));
    lines.push(r"    \midrule".to_owned());
    lines
}

/// The names of the groups, with a line below each over its columns.
fn groups(table: &Table) -> Vec<String> {
    if table.column_groups.is_empty() {
        return Vec::new();
    }
    let (mut names, mut rules, mut next) = (String::new(), String::new(), 2);
    for ColumnGroup { name, columns } in &table.column_groups {
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

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

/// A key for `\label`, which may not hold special characters.
fn label(text: &str) -> String {
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
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{example, grouped};

    #[test]
    fn groups_span_their_columns() {
        let expected = r"    \cmidrule(l){2-3}
    & \multicolumn{1}{c}{kv 1} & \multicolumn{1}{c}{kv 2} \\
    \cmidrule(lr){2-2}\cmidrule(lr){3-3}
    Layer & 1 & 2 \\
";
        assert!(grouped().latex().contains(expected), "{}", grouped().latex());
    }

    #[test]
    fn every_special_character_is_escaped() {
        let expected =
            concat!(r"\textbackslash{}\{\}\$\&\#\_\%", r"\textasciicircum{}\textasciitilde{}$<$$>$$|$ a");
        assert_eq!(escape("\\{}$&#_%^~<>| a"), expected);
        assert_eq!(escape("\u{2265} 25 \u{b1} 2"), r"$\geq$ 25 $\pm$ 2");
    }

    #[test]
    fn the_float_is_complete() {
        let expected = r"% 100 % of the paper's
\begin{table}[t]
  \centering
  \caption{BLEU of a\_b \& c. Underlined: p $<$ 0.01. 1 of 3 heads.}
  \label{tab:table1-enc-enc}
  \smallskip
  \renewcommand{\arraystretch}{1.2}% room for the underlines
  \small
  \begin{tabular}{@{}r*{2}{r}@{}}
    \toprule
    & \multicolumn{2}{c}{Head} \\
    \cmidrule(l){2-3}
    Layer & 1 & 2 \\
    \midrule
    1 & $+$0.03 & \underline{$-$10.53} \\
    2 &  & 0.00 \\
    \bottomrule
  \end{tabular}
\end{table}
";
        assert_eq!(example().latex(), expected);
    }
}
