//! Tables as Markdown (the pipe tables of GitHub and pandoc).
use super::{Cell, Table};

pub(super) fn render(table: &Table) -> String {
    let corner = format!("{} / {}", table.row_heading, table.column_heading.to_lowercase());
    let names = table.columns.iter().map(|name| escape(name));
    let mut lines = vec![format!("**{}.** {}", table.name, escape(&table.title)), String::new()];
    lines.push(line(std::iter::once(escape(&corner)).chain(names)));
    lines.push(line((0..=table.columns.len()).map(|_| "--:".to_owned())));
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
    use crate::table::example;

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
