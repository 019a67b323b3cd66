//! One abstract table, rendered for a terminal, as Markdown and as LaTeX.
mod latex;
mod markdown;
mod terminal;

use records::visible::one_line;

/// A table of numbers with marked cells and what must be said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The table of the paper that this is, such as `Table 1`, or what it shows if the paper has none.
    pub name: &'static str,
    /// Short name for references, such as `table1-enc-enc`.
    pub label: String,
    /// What the numbers are: one sentence without a full stop.
    pub title: String,
    /// What the rows are, such as `Layer`.
    pub row_heading: &'static str,
    /// What the columns are, such as `Head`.
    pub column_heading: &'static str,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// What neighbouring columns have in common, such as a key-value head; together all columns, or none.
    pub column_groups: Vec<ColumnGroup>,
    /// The rows, from the top.
    pub rows: Vec<Row>,
    /// What a marked cell means; absent where nothing could be marked.
    pub mark: Option<String>,
    /// What belongs to the numbers themselves; part of the caption.
    pub summary: Vec<String>,
    /// Comparisons and advice: below the table, comments in LaTeX.
    pub remarks: Vec<String>,
}

/// Some neighbouring columns.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnGroup {
    /// Its name, such as `kv 1`.
    pub name: String,
    /// How many columns there are, at least one.
    pub columns: usize,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name of the row.
    pub label: String,
    /// One cell for each column.
    pub cells: Vec<Cell>,
}

/// One cell of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// The number as printed; empty where there is none.
    pub text: String,
    /// Whether the cell stands out.
    pub marked: bool,
}

impl Cell {
    /// A cell that does not stand out.
    pub fn plain(text: String) -> Self {
        Self { text, marked: false }
    }
}

impl Table {
    /// The same without control characters and line breaks, which texts may have taken over from files.
    fn visible(&self) -> Self {
        let all = |texts: &[String]| texts.iter().map(|text| one_line(text)).collect();
        let cell = |cell: &Cell| Cell { text: one_line(&cell.text), marked: cell.marked };
        let row =
            |row: &Row| Row { label: one_line(&row.label), cells: row.cells.iter().map(cell).collect() };
        Self {
            title: one_line(&self.title),
            columns: all(&self.columns),
            rows: self.rows.iter().map(row).collect(),
            mark: self.mark.as_deref().map(one_line),
            summary: all(&self.summary),
            remarks: all(&self.remarks),
            ..self.clone()
        }
    }

    /// For a terminal: marked cells bold and underlined with `*` behind them, so that the mark
    /// survives where the styles are stripped.
    pub fn terminal(&self) -> String {
        terminal::render(&self.visible())
    }

    /// As Markdown, marked cells bold.
    pub fn markdown(&self) -> String {
        markdown::render(&self.visible())
    }

    /// As LaTeX for the packages `booktabs` and nothing else, marked cells underlined.
    pub fn latex(&self) -> String {
        latex::render(&self.visible())
    }
}

#[cfg(test)]
pub(crate) fn example() -> Table {
    let cell = |text: &str, marked| Cell { text: text.to_owned(), marked };
    let row = |label: &str, cells| Row { label: label.to_owned(), cells };
    Table {
        name: "Table 1",
        label: "table1-enc-enc".to_owned(),
        title: "BLEU of a_b & c".to_owned(),
        row_heading: "Layer",
        column_heading: "Head",
        columns: vec!["1".to_owned(), "2".to_owned()],
        column_groups: Vec::new(),
        rows: vec![
            row("1", vec![cell("+0.03", false), cell("-10.53", true)]),
            row("2", vec![cell("", false), cell("0.00", false)]),
        ],
        mark: Some("p < 0.01".to_owned()),
        summary: vec!["1 of 3 heads".to_owned()],
        remarks: vec!["100 % of the paper's".to_owned()],
    }
}

/// The same whose columns are of two groups.
#[cfg(test)]
pub(crate) fn grouped() -> Table {
    let group = |name: &str| ColumnGroup { name: name.to_owned(), columns: 1 };
    Table { column_groups: vec![group("kv 1"), group("kv 2")], ..example() }
}
