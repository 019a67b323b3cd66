//! Tables that no format describes yet: their kind, columns and cells.
use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use crate::Error;
use crate::rows::{self, Column, Layout, RowKind, Source};

/// Minimum average number of occurrences of a class in its column; texts and numbers repeat less.
const REPEATS: usize = 2;

/// A table with all cells as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Kind of rows.
    pub kind: RowKind,
    /// Whether the first row names the columns; always true for JSON objects.
    pub has_header: bool,
    /// The columns, in order.
    pub columns: Vec<TableColumn>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// Name, or number if the table has no header; `a.b` is field `b` in field `a` of JSON objects.
    pub column: Column,
    /// Cells; empty if a JSON object lacks the field, or it is a list or null.
    pub cells: Vec<String>,
}

impl TableColumn {
    /// Returns the name or the number as text.
    pub fn name(&self) -> String {
        self.column.key()
    }

    /// Returns the distinct cells that are not empty, in ascending order.
    pub fn values(&self) -> BTreeSet<&str> {
        self.cells.iter().map(String::as_str).filter(|cell| !cell.is_empty()).collect()
    }

    /// Returns the mean number of words per cell.
    pub fn words(&self) -> f64 {
        let words: usize = self.cells.iter().map(|cell| cell.split_whitespace().count()).sum();
        words as f64 / self.cells.len().max(1) as f64
    }
}

/// Role of the first row of a CSV or TSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Header, unless it contains a class.
    Likely,
    /// A row like the others.
    Absent,
}

/// Returns the kind of rows of a file, by its name before `.gz` or `.zst`, or of a folder written by `save_to_disk`; `None` if it is no
/// table.
pub fn kind_of(path: &Path) -> Option<RowKind> {
    if path.join("state.json").is_file() {
        return Some(RowKind::Arrow);
    }
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    match name.rsplit_once('.')?.1 {
        "csv" => Some(RowKind::Csv),
        "tsv" => Some(RowKind::Tsv),
        "jsonl" | "ndjson" | "json" => Some(RowKind::Jsonl),
        "parquet" => Some(RowKind::Parquet),
        "arrow" | "feather" => Some(RowKind::Arrow),
        _ => None,
    }
}

/// Reads a table. With [`Header::Likely`], the first row of a CSV or TSV file is a header unless one of its cells occurs again in a column
/// with few values, as a class does.
pub fn read(path: &Path, kind: RowKind, header: Header) -> Result<Table, Error> {
    let source = Source::open(path)?;
    let found = match &source {
        Source::Text(text) if !kind.has_lists() => of_cells(text, path, (kind, header))?,
        _ => of_objects(&source, path, kind)?,
    };
    match found.columns.first() {
        Some(column) if !column.cells.is_empty() => Ok(found),
        Some(_) => Err(Error::Invalid(format!("`{}` has a header and no rows", path.display()))),
        None => Err(Error::no_examples(path)),
    }
}

/// Reads UTF-8 text, plain, gzip or zstd.
pub fn read_text(path: &Path) -> Result<String, Error> {
    rows::read_text(path)
}

fn of_cells(text: &str, path: &Path, (kind, header): (RowKind, Header)) -> Result<Table, Error> {
    let layout = Layout { kind, header: Some(false), quoting: None };
    let Some(width) = layout.width(text) else { return Err(Error::no_examples(path)) };
    let numbers: Vec<Column> = (1..=width).map(Column::Number).collect();
    let rows = layout.cells(text, path, &numbers.iter().collect::<Vec<_>>())?;
    let rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
    let cell = |row: &rows::Record, column: &Column| row.text(&column.key()).unwrap_or_default();
    let of = |column: Column| {
        let cells = rows.iter().map(|row| cell(row, &column)).collect();
        TableColumn { column, cells }
    };
    let mut columns: Vec<TableColumn> = numbers.into_iter().map(of).collect();
    let has_header = header == Header::Likely && !columns.iter().any(|column| is_class(&column.cells));
    if has_header {
        for column in &mut columns {
            column.column = Column::Name(column.cells.remove(0));
        }
    }
    Ok(Table { kind, has_header, columns })
}

/// Returns true if the first cell is a class of its column: it occurs again, and values repeat.
fn is_class(cells: &[String]) -> bool {
    let distinct: BTreeSet<&String> = cells.iter().collect();
    !cells[0].is_empty() && cells[1..].contains(&cells[0]) && distinct.len() * REPEATS <= cells.len()
}

/// Returns the names of the fields in the first row of a file of JSON objects, Parquet or Arrow.
pub fn fields(path: &Path) -> Result<Vec<String>, Error> {
    let layout = Layout { kind: RowKind::Jsonl, header: None, quoting: None };
    let first = layout.read(&Source::open(path)?, path, &[])?.next().transpose()?;
    Ok(first.map(|row| row.fields().keys().cloned().collect()).unwrap_or_default())
}

fn of_objects(source: &Source, path: &Path, kind: RowKind) -> Result<Table, Error> {
    let layout = Layout { kind, header: None, quoting: None };
    let rows = layout.read(source, path, &[])?.collect::<Result<Vec<_>, _>>()?;
    let mut columns: Vec<TableColumn> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        for (name, cell) in flat("", row.fields()) {
            let cell = row.class(&name, cell);
            let place = columns.iter().position(|column| column.name() == name).unwrap_or_else(|| {
                columns.push(TableColumn { column: Column::Name(name), cells: Vec::new() });
                columns.len() - 1
            });
            columns[place].cells.resize(number, String::new());
            columns[place].cells.push(cell);
        }
    }
    columns.iter_mut().for_each(|column| column.cells.resize(rows.len(), String::new()));
    Ok(Table { kind, has_header: true, columns })
}

/// Returns the texts, numbers and booleans of an object and of the objects nested in it.
fn flat(prefix: &str, fields: &Map<String, Value>) -> Vec<(String, String)> {
    let of = |(name, value): (&String, &Value)| match value {
        Value::Object(inner) => flat(&format!("{prefix}{name}."), inner),
        Value::String(text) => vec![(format!("{prefix}{name}"), text.clone())],
        Value::Number(number) => vec![(format!("{prefix}{name}"), number.to_string())],
        Value::Bool(value) => vec![(format!("{prefix}{name}"), value.to_string())],
        _ => Vec::new(),
    };
    fields.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(name: &str, text: &str) -> Result<Table, String> {
        crate::test_files::read_as(name, text, |path| read(path, kind_of(path).unwrap(), Header::Likely))
    }

    fn columns(table: &Table) -> Vec<(String, Vec<&str>)> {
        table
            .columns
            .iter()
            .map(|column| (column.name(), column.cells.iter().map(String::as_str).collect()))
            .collect()
    }

    #[test]
    fn a_first_row_is_a_header_unless_a_class_is_in_it() {
        let table = read_as("a.csv", "text,label\n\"Good, really\",1\nBad,0\nFine,1\n").unwrap();
        assert!(table.has_header);
        let expected = [
            ("text".to_owned(), vec!["Good, really", "Bad", "Fine"]),
            ("label".to_owned(), vec!["1", "0", "1"]),
        ];
        assert_eq!(columns(&table), expected);
        let table = read_as("a.csv", "v1,v2,\nham,Go,\nspam,Win,\nham,Ok,\n").unwrap();
        assert!(table.has_header, "an empty name is no class");
        let table = read_as("a.tsv", "Good\t1\nBad\t0\nFine\t1\nPoor\t0\n").unwrap();
        assert!(!table.has_header);
        assert_eq!(columns(&table)[1], ("2".to_owned(), vec!["1", "0", "1", "0"]));
    }

    #[test]
    fn fields_of_objects_have_dots_and_may_be_absent() {
        let table = read_as(
            "a.jsonl",
            "{\"t\": {\"en\": \"Go\"}, \"n\": 1, \"l\": []}\n{\"t\": {\"en\": \"Run\", \"fr\": \"Cours\"}}\n",
        );
        let expected = [
            ("n".to_owned(), vec!["1", ""]),
            ("t.en".to_owned(), vec!["Go", "Run"]),
            ("t.fr".to_owned(), vec!["", "Cours"]),
        ];
        let table = table.unwrap();
        let mut found = columns(&table);
        found.sort();
        assert_eq!(found, expected);
    }
}
