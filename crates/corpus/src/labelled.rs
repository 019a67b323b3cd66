//! Labelled texts: one text, or a pair of texts, and the class that it belongs to.
//!
//! A [`Format`] describes how a file holds them, so that a data set needs no code of its own. Texts
//! and labels are kept as they stand in the file: nothing is trimmed, normalised or repaired (some
//! files of MultiNLI hold text that was decoded wrongly once, such as `â€œ` for `“`).
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Error;
use crate::foreign::listed;
use crate::rows::{self, Layout, Row, Table, kind_of};

/// One example of a classification data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The text, or the first of two.
    pub text: String,
    /// The second of two texts.
    pub pair: Option<String>,
    /// The name of its class, as it stands in the data.
    pub label: String,
}

/// How a file holds labelled examples; part of a subject's TOML.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// What the rows are.
    pub kind: Kind,
    /// Whether the first row of a table names its columns; true if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Whether cells of a table may stand in quotation marks; if not given, only in CSV. The TSV
    /// files of GLUE use them as plain characters, often an odd number in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoting: Option<bool>,
    /// Where the text is, or the first of two.
    pub text: Column,
    /// Where the second of two texts is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<Column>,
    /// Where the name of the class is.
    pub label: Column,
    /// Labels whose rows are left out, such as the `-` of MultiNLI pairs on which annotators agreed
    /// on no label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip_labels: Vec<String>,
}

/// What the rows of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A table whose cells are separated by tabs.
    Tsv,
    /// A table whose cells are separated by commas.
    Csv,
    /// A JSON object a line.
    Jsonl,
}

/// A column of a table, or a field of JSON objects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged, expecting = "a column is a name or a number, counted from 1")]
pub enum Column {
    /// By number, counted from 1.
    Number(usize),
    /// By its name in the header, or the name of a JSON field.
    Name(String),
}

impl fmt::Display for Column {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Name(name) => write!(formatter, "`{name}`"),
        }
    }
}

impl Format {
    /// Finds what is wrong with the description itself, before there is a file.
    pub fn validate(&self) -> Result<(), Error> {
        let reason = if self.kind == Kind::Jsonl { self.fault_of_jsonl() } else { self.fault_of_table() };
        reason.map_or(Ok(()), |reason| Err(Error::Format { reason }))
    }

    fn fault_of_jsonl(&self) -> Option<String> {
        if self.header.is_some() || self.quoting.is_some() {
            return Some("`header` and `quoting` are for tables, not for `jsonl`".to_owned());
        }
        let number = |column: &&Column| matches!(column, Column::Number(_));
        self.columns()
            .find(number)
            .map(|column| format!("`jsonl` has named fields, but column {column} is asked for"))
    }

    fn fault_of_table(&self) -> Option<String> {
        let zero = |column: &&Column| **column == Column::Number(0);
        if self.columns().any(|column| zero(&column)) {
            return Some("there is no column 0: columns are counted from 1".to_owned());
        }
        let name = |column: &&Column| matches!(column, Column::Name(_));
        let named = self.columns().find(name).filter(|_| !self.has_header())?;
        Some(format!(
            "without a header a column is given by its number, counted from 1, but {named} is a name"
        ))
    }

    fn columns(&self) -> impl Iterator<Item = &Column> {
        [&self.text].into_iter().chain(&self.pair).chain([&self.label])
    }

    fn has_header(&self) -> bool {
        self.header.unwrap_or(true)
    }

    fn layout(&self) -> Layout {
        let quoting = self.quoting.unwrap_or(self.kind == Kind::Csv);
        Layout { commas: self.kind == Kind::Csv, header: self.has_header(), quoting }
    }

    fn leaves_out(&self, label: &str) -> bool {
        self.skip_labels.iter().any(|skipped| skipped == label)
    }
}

/// Reads a file of labelled examples: UTF-8, plain or gzip (`.gz`), with or without byte-order mark
/// and carriage returns; blank lines do not count.
///
/// Lines end at `\n` only, as in [`crate::parallel::read_lines`].
pub fn read(path: &Path, format: &Format) -> Result<Vec<Example>, Error> {
    format.validate()?;
    let text = rows::read_text(path)?;
    let reader = Reader { path, format };
    let rows = if format.kind == Kind::Jsonl { reader.objects(&text)? } else { reader.table(&text)? };
    if rows.is_empty() {
        return Err(Error::NoExamples { path: path.to_owned() });
    }
    let kept: Vec<Example> = rows.into_iter().flatten().collect();
    if kept.is_empty() {
        return Err(Error::AllSkipped { path: path.to_owned(), labels: format.skip_labels.join(", ") });
    }
    Ok(kept)
}

/// A file that is being read, for its errors.
struct Reader<'a> {
    path: &'a Path,
    format: &'a Format,
}

impl Reader<'_> {
    /// The rows of a table; `None` for those that are left out.
    fn table(&self, text: &str) -> Result<Vec<Option<Example>>, Error> {
        let columns: Vec<&Column> = self.format.columns().collect();
        let table = Table::read(text, self.path, self.format.layout(), &columns)?;
        let example = |row: &Row| {
            let mut cells = table.places.iter().map(|&place| row.cells[place].as_str());
            let text = cells.next().unwrap_or_default();
            let pair = self.format.pair.as_ref().and_then(|_| cells.next());
            self.example(row.line, text, pair, cells.next().unwrap_or_default())
        };
        table.rows.iter().map(example).collect()
    }

    /// The lines of a file of JSON objects; `None` for those that are left out.
    fn objects(&self, text: &str) -> Result<Vec<Option<Example>>, Error> {
        rows::objects(text, self.path)?
            .iter()
            .map(|object| self.object(object.line, &object.fields))
            .collect()
    }

    fn object(&self, line: usize, object: &Map<String, Value>) -> Result<Option<Example>, Error> {
        let label = match self.field(line, object, &self.format.label)? {
            Value::String(label) => label.clone(),
            Value::Number(label) if label.is_i64() || label.is_u64() => label.to_string(),
            other => return Err(self.wrong_type(line, &self.format.label, other, "text or a whole number")),
        };
        let pair =
            self.format.pair.as_ref().map(|column| self.text_field(line, object, column)).transpose()?;
        self.example(line, self.text_field(line, object, &self.format.text)?, pair, &label)
    }

    fn field<'v>(
        &self,
        line: usize,
        object: &'v Map<String, Value>,
        name: &Column,
    ) -> Result<&'v Value, Error> {
        let Column::Name(key) = name else { unreachable!("`validate` refuses numbers") };
        object
            .get(key)
            .ok_or_else(|| self.fault(line, format!("no field {name}: there are {}", listed(object.keys()))))
    }

    fn text_field<'v>(
        &self,
        line: usize,
        object: &'v Map<String, Value>,
        name: &Column,
    ) -> Result<&'v str, Error> {
        let value = self.field(line, object, name)?;
        value.as_str().ok_or_else(|| self.wrong_type(line, name, value, "text"))
    }

    fn wrong_type(&self, line: usize, name: &Column, value: &Value, needed: &str) -> Error {
        self.fault(line, format!("field {name} is {}, but {needed} is needed", kind_of(value)))
    }

    /// The example of a row, or none if its label is one of those that are left out.
    fn example(
        &self,
        line: usize,
        text: &str,
        pair: Option<&str>,
        label: &str,
    ) -> Result<Option<Example>, Error> {
        if self.format.leaves_out(label) {
            return Ok(None);
        }
        let columns = [(&self.format.text, Some(text)), (&self.format.label, Some(label))];
        let pair_column = self.format.pair.as_ref().map(|column| (column, pair));
        for (column, cell) in columns.into_iter().chain(pair_column) {
            if cell.is_some_and(|cell| cell.trim().is_empty()) {
                let kind = if self.format.kind == Kind::Jsonl { "field" } else { "column" };
                return Err(self.fault(line, format!("{kind} {column} is empty")));
            }
        }
        Ok(Some(Example { text: text.to_owned(), pair: pair.map(str::to_owned), label: label.to_owned() }))
    }

    fn fault(&self, line: usize, reason: String) -> Error {
        rows::fault(self.path, line, reason)
    }
}

#[cfg(test)]
mod tests;
