//! A table as a plain value, which each writer renders in its own way.
use serde::Serialize;
use words::one_line;

use crate::sentences::Sentences;

/// A table of numbers with marked cells and what must be said about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// The table of the paper that this is, such as `Table 1`, or what it shows if the paper has none.
    pub name: &'static str,
    /// Short name for references, such as `table1-enc-enc`.
    pub label: String,
    /// What the numbers are: one sentence without a full stop.
    pub title: String,
    /// What the rows and the columns are, such as `Layer` and `Head`.
    pub headings: [&'static str; 2],
    /// Their names.
    pub columns: Vec<String>,
    /// What neighbouring columns have in common, such as a key-value head, and how many they are; together all, or none.
    pub column_groups: Vec<(String, usize)>,
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// What a marked cell means; absent where nothing could be marked.
    pub mark: Option<String>,
    /// What belongs to the numbers themselves; part of the caption.
    pub summary: Vec<String>,
    /// Comparisons and advice: below the table, comments in LaTeX.
    pub remarks: Vec<String>,
}

/// One row of a table, with a cell for each column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub label: String,
    /// One for each column.
    pub cells: Vec<Cell>,
}

/// One cell of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// What is printed.
    pub text: String,
    /// The number to sort by.
    pub value: Option<f64>,
    /// Whether it stands out.
    pub marked: bool,
}

impl Cell {
    /// A number as it is printed.
    pub fn number(text: impl Into<String>, value: f64) -> Self {
        Self { text: text.into(), value: Some(value), marked: false }
    }

    /// Words, by which nothing is sorted.
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The same, standing out if `marked`.
    pub fn marked(self, marked: bool) -> Self {
        Self { marked, ..self }
    }
}

/// A text that does not stand out; the number that it begins with is the one to sort by.
impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { value: leading(&text), text, marked: false }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        count.to_string().into()
    }
}

/// An empty cell for nothing.
impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(found: Option<T>) -> Self {
        found.map(Into::into).unwrap_or_default()
    }
}

/// The number that a text begins with: 20 for `≥ 20 %`, 0.001 for `p < 0.001`.
fn leading(text: &str) -> Option<f64> {
    let plain = text.replace('\u{2212}', "-");
    let rest = ["\u{2265} ", "p < ", "p = "].iter().find_map(|prefix| plain.strip_prefix(prefix));
    let rest = rest.unwrap_or(&plain);
    let end = rest.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(rest.len());
    let is_word = rest[end..].starts_with(|c: char| c.is_alphanumeric() || c == ':');
    rest[..end].parse().ok().filter(|_| !is_word)
}

impl Row {
    /// Of cells, or of texts.
    pub fn new<T: Into<Cell>>(label: impl Into<String>, cells: impl IntoIterator<Item = T>) -> Self {
        Self { label: label.into(), cells: cells.into_iter().map(Into::into).collect() }
    }

    /// With so many cells: further ones are left out, missing ones empty.
    pub fn cut(mut self, cells: usize) -> Self {
        self.cells.resize(cells, Cell::default());
        self
    }

    /// The same without control characters and line breaks, which texts may have taken over from files.
    pub fn visible(mut self) -> Self {
        let texts = self.cells.iter_mut().map(|cell| &mut cell.text).chain([&mut self.label]);
        texts.for_each(|text| *text = one_line(text));
        self
    }
}

impl Table {
    /// A caption, and nothing below it yet.
    pub fn new(name: &'static str, label: impl Into<String>, title: impl Into<String>) -> Self {
        Self { name, label: label.into(), title: title.into(), ..Self::default() }
    }

    /// With what rows and columns are, and the names of the columns.
    pub fn columns<T: Into<String>>(
        self,
        headings: [&'static str; 2],
        names: impl IntoIterator<Item = T>,
    ) -> Self {
        Self { headings, columns: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// With these rows.
    pub fn rows(self, rows: impl IntoIterator<Item = Row>) -> Self {
        Self { rows: rows.into_iter().collect(), ..self }
    }

    /// With what a marked cell means.
    pub fn mark(self, mark: impl Into<Option<String>>) -> Self {
        Self { mark: mark.into(), ..self }
    }

    /// With more sentences in the caption.
    pub fn note(mut self, sentences: impl Sentences) -> Self {
        self.summary.extend(sentences.all());
        self
    }

    /// With more sentences below it.
    pub fn remark(mut self, sentences: impl Sentences) -> Self {
        self.remarks.extend(sentences.all());
        self
    }

    /// The same without control characters and line breaks, which texts may have taken over from files.
    pub fn visible(&self) -> Self {
        let mut table = self.clone();
        let lists = [&mut table.columns, &mut table.summary, &mut table.remarks].into_iter().flatten();
        let groups = table.column_groups.iter_mut().map(|(name, _)| name);
        let texts = lists.chain(groups).chain([&mut table.title]).chain(&mut table.mark);
        texts.for_each(|text| *text = one_line(text));
        table.rows = table.rows.into_iter().map(Row::visible).collect();
        table
    }

    /// Whether a column holds numbers.
    pub fn is_numeric(&self, column: usize) -> bool {
        is_numeric(&self.rows, column)
    }
}

/// Whether a column of these rows holds numbers, which stand to the right; empty cells tell nothing.
pub fn is_numeric(rows: &[Row], column: usize) -> bool {
    let mut cells = rows.iter().filter_map(|row| row.cells.get(column));
    cells.all(|cell| cell.value.is_some() || cell.text.len() <= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_to_sort_by_is_the_one_that_a_text_begins_with() {
        let texts =
            ["\u{2265} 20 %", "p < 0.001", "-0.53 (7)", "\u{2212}13.0", "4 of 6 layers", "100.0 \u{b1} 2"];
        let found: Vec<_> = texts.into_iter().map(|text| Cell::from(text).value.unwrap()).collect();
        assert_eq!(found, [20.0, 0.001, -0.53, -13.0, 4.0, 100.0]);
        for text in ["", "self:1:2 -80.0", "epoch 3", "n/a", "?", "2nd", "1:2"] {
            assert_eq!(Cell::from(text).value, None, "{text}");
        }
    }
}
