//! Tables as Markdown (the pipe tables of GitHub and pandoc).
use super::{Cell, Table};

pub(super) fn render(table: &Table) -> String {
    let corner = format!("{} / {}", table.row_heading, table.column_heading.to_lowercase());
    let names = table.columns.iter().map(|name| escape(name));
    let mut lines = vec![format!("**{}.** {}", table.name, escape(&table.title)), String::new()];
    lines.push(line(std::iter::once(escape(&corner)).chain(names)));
    lines.push(line((0..=table.columns.len()).map(|_| "--:".to_owned())));
    if !table.column_groups.is_empty() {
        lines.push(line(std::iter::once(String::new()).chain(groups(table))));
    }
    for row in &table.rows {
        let cells = row.cells.iter().map(marked);
        lines.push(line(std::iter::once(escape(&row.label)).chain(cells)));
    }
    lines.push(String::new());
    let mark = table.mark.iter().map(|mark| format!("bold: {mark}"));
    let notes = mark.chain(table.summary.iter().chain(&table.remarks).cloned());
    lines.extend(notes.map(|note| format!("- {}", escape(&note))));
    lines.join("\n") + "\n"
}

/// The name of each group in its first column; pipe tables have one line of names, so that this is a row below them.
fn groups(table: &Table) -> impl Iterator<Item = String> {
    table.column_groups.iter().flat_map(|group| {
        let rest = (1..group.columns).map(|_| String::new());
        std::iter::once(format!("*{}*", escape(&group.name))).chain(rest)
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

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if r"\|*_`<[".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crate::table::{example, grouped};

    #[test]
    fn groups_are_named_below_the_columns() {
        let expected = "| --: | --: | --: |\n|  | *kv 1* | *kv 2* |\n| 1 | +0.03 |";
        assert!(grouped().markdown().contains(expected), "{}", grouped().markdown());
    }

    #[test]
    fn marked_cells_are_bold_and_special_characters_escaped() {
        let expected = r"**Table 1.** BLEU of a\_b & c

| Layer / head | 1 | 2 |
| --: | --: | --: |
| 1 | +0.03 | **-10.53** |
| 2 |  | 0.00 |

- bold: p \< 0.01
- 1 of 3 heads
- 100 % of the paper's
";
        assert_eq!(example().markdown(), expected);
    }
}
