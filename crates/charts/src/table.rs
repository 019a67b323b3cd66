//! A table as a plain value, which each writer renders in its own way.
use serde::Serialize;
use words::range;

use crate::sentences::Sentences;

/// A table of numbers with marked cells and what must be said about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// Its name, such as `Table 1`.
    pub name: &'static str,
    /// Short name for references, such as `table1`.
    pub label: String,
    /// Meaning of the numbers: one sentence without a full stop.
    pub title: String,
    /// Headings of the rows and of the columns, such as `Layer` and `Head`.
    pub headings: [&'static str; 2],
    /// Their names.
    pub columns: Vec<String>,
    /// Name of neighbouring columns, and their number; together all, or none.
    pub column_groups: Vec<(String, usize)>,
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// Meaning of a marked cell; absent where nothing could be marked.
    pub mark: Option<String>,
    /// Sentences on the numbers themselves; part of the caption.
    pub summary: Vec<String>,
    /// Comparisons and advice: below the table, comments in LaTeX.
    pub remarks: Vec<String>,
}

/// One row of a table: its name or number, with a cell for each column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Row {
    pub label: Cell,
    pub cells: Vec<Cell>,
}

/// One cell of a table, with the number to sort by.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Cell {
    pub text: String,
    pub value: Option<f64>,
    /// `true` if it stands in the place of a number that is not known.
    pub is_gap: bool,
    /// `true` if it stands out.
    pub marked: bool,
}

impl Cell {
    /// A number as it is printed; one that is not finite is a gap.
    pub fn number(text: impl Into<String>, value: f64) -> Self {
        let is_gap = !value.is_finite();
        Self { text: text.into(), value: (!is_gap).then_some(value), is_gap, marked: false }
    }

    /// A number as `print` prints it.
    pub fn printed(value: f64, print: impl Fn(f64) -> String) -> Self {
        Self::number(print(value), value)
    }

    /// An interval whose ends `print` prints; the lower end is the number to sort by.
    pub fn interval(ends: (f64, f64), print: impl Fn(f64) -> String) -> Self {
        Self::number(range(ends, print), ends.0)
    }

    /// Text in the place of a number that is not known.
    pub fn gap(text: &str) -> Self {
        Self::number(text, f64::NAN)
    }

    /// The same, standing out if `marked`.
    pub fn marked(self, marked: bool) -> Self {
        Self { marked, ..self }
    }
}

/// Words: no column is sorted by them.
impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::number(count.to_string(), count as f64)
    }
}

/// An empty cell for nothing.
impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(found: Option<T>) -> Self {
        found.map(Into::into).unwrap_or_default()
    }
}

impl Row {
    /// Of cells, texts or counts.
    pub fn new<T: Into<Cell>>(label: impl Into<Cell>, cells: impl IntoIterator<Item = T>) -> Self {
        Self { label: label.into(), cells: cells.into_iter().map(Into::into).collect() }
    }

    /// With this many cells: further ones are left out, missing ones empty.
    pub fn cut(mut self, cells: usize) -> Self {
        self.cells.resize(cells, Cell::default());
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

    /// `true` if a column holds numbers.
    pub fn is_numeric(&self, column: usize) -> bool {
        are_numbers(self.rows.iter().filter_map(|row| row.cells.get(column)))
    }

    /// Text in the first row over the names of the rows: the heading of rows and, where there is one, that of columns.
    pub fn corner(&self) -> String {
        match self.headings {
            [rows, ""] => rows.to_owned(),
            [rows, columns] => format!("{rows} / {}", columns.to_lowercase()),
        }
    }
}

/// `true` if these cells hold numbers, which stand to the right; empty ones and gaps tell nothing.
pub(crate) fn are_numbers<'a>(mut cells: impl Iterator<Item = &'a Cell>) -> bool {
    cells.all(|cell| cell.value.is_some() || cell.is_gap || cell.text.is_empty())
}
