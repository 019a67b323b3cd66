//! A table as a plain value, which each writer renders differently.
use serde::Serialize;
use words::range;

use crate::sentences::Sentences;

/// A table with marked cells, a caption and remarks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// Name, such as `Table 1`.
    pub name: &'static str,
    /// Short name for references, such as `table1`.
    pub label: String,
    /// Meaning of the numbers: one sentence without a full stop.
    pub title: String,
    /// Headings of the rows and the columns, such as `Layer` and `Head`.
    pub headings: [&'static str; 2],
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of neighbouring columns and how many each spans; covers all columns or is empty.
    pub column_groups: Vec<(String, usize)>,
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// Meaning of a marked cell; `None` if no cell can be marked.
    pub mark: Option<String>,
    /// Sentences on the numbers themselves; part of the caption.
    pub summary: Vec<String>,
    /// Comparisons and advice: below the table; comments in LaTeX.
    pub remarks: Vec<String>,
}

/// One row of a table: its name or number, with a cell for each column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Row {
    pub label: Cell,
    pub cells: Vec<Cell>,
}

/// One cell of a table, with its number for sorting.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Cell {
    pub text: String,
    pub value: Option<f64>,
    /// `true` if it replaces an unknown number.
    pub is_gap: bool,
    /// `true` if it is highlighted.
    pub marked: bool,
}

impl Cell {
    /// Returns a printed number; a number that is not finite is a gap.
    pub fn number(text: impl Into<String>, value: f64) -> Self {
        let is_gap = !value.is_finite();
        Self { text: text.into(), value: (!is_gap).then_some(value), is_gap, marked: false }
    }

    /// Returns a number formatted by `print`.
    pub fn printed(value: f64, print: impl Fn(f64) -> String) -> Self {
        Self::number(print(value), value)
    }

    /// Returns an interval with ends formatted by `print`; it is sorted by its lower end.
    pub fn interval(ends: (f64, f64), print: impl Fn(f64) -> String) -> Self {
        Self::number(range(ends, print), ends.0)
    }

    /// Returns a text that replaces an unknown number.
    pub fn gap(text: &str) -> Self {
        Self::number(text, f64::NAN)
    }

    /// Highlights the cell if `marked`.
    pub fn marked(self, marked: bool) -> Self {
        Self { marked, ..self }
    }
}

/// A text, which has no number to sort by.
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

/// An empty cell for `None`.
impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(found: Option<T>) -> Self {
        found.map(Into::into).unwrap_or_default()
    }
}

impl Row {
    /// Returns a row of cells, texts or counts.
    pub fn new<T: Into<Cell>>(label: impl Into<Cell>, cells: impl IntoIterator<Item = T>) -> Self {
        Self { label: label.into(), cells: cells.into_iter().map(Into::into).collect() }
    }

    /// Truncates or pads the row to this many cells.
    pub fn cut(mut self, cells: usize) -> Self {
        self.cells.resize(cells, Cell::default());
        self
    }
}

impl Table {
    /// Returns a table with a caption only.
    pub fn new(name: &'static str, label: impl Into<String>, title: impl Into<String>) -> Self {
        Self { name, label: label.into(), title: title.into(), ..Self::default() }
    }

    /// Sets the headings and the names of the columns.
    pub fn columns<T: Into<String>>(
        self,
        headings: [&'static str; 2],
        names: impl IntoIterator<Item = T>,
    ) -> Self {
        Self { headings, columns: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the rows.
    pub fn rows(self, rows: impl IntoIterator<Item = Row>) -> Self {
        Self { rows: rows.into_iter().collect(), ..self }
    }

    /// Sets the meaning of a marked cell.
    pub fn mark(self, mark: impl Into<Option<String>>) -> Self {
        Self { mark: mark.into(), ..self }
    }

    /// Adds sentences to the caption.
    pub fn note(mut self, sentences: impl Sentences) -> Self {
        self.summary.extend(sentences.all());
        self
    }

    /// Adds sentences below the table.
    pub fn remark(mut self, sentences: impl Sentences) -> Self {
        self.remarks.extend(sentences.all());
        self
    }

    /// `true` if a column contains numbers.
    pub fn is_numeric(&self, column: usize) -> bool {
        are_numbers(self.rows.iter().filter_map(|row| row.cells.get(column)))
    }

    /// Returns the text above the row names: the heading of the rows, with that of the columns if not empty.
    pub fn corner(&self) -> String {
        match self.headings {
            [rows, ""] => rows.to_owned(),
            [rows, columns] => format!("{rows} / {}", columns.to_lowercase()),
        }
    }
}

/// `true` if the cells are numbers, which are aligned right; empty cells and gaps are ignored.
pub(crate) fn are_numbers<'a>(mut cells: impl Iterator<Item = &'a Cell>) -> bool {
    cells.all(|cell| cell.value.is_some() || cell.is_gap || cell.text.is_empty())
}
