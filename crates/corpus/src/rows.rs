//! Rows of data sets in text tables, JSON, Parquet and Arrow.
mod columnar;
mod json;
mod record;

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use words::excerpt;

pub(crate) use self::record::Record;
use crate::Error;
use crate::compressed::{self, Content};
use crate::foreign::listed;

/// Format of a file of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// A table with tab-separated cells.
    Tsv,
    /// A table with comma-separated cells.
    Csv,
    /// JSON objects, one per line or all in one list.
    Jsonl,
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC file or stream, Feather, or a folder written by `save_to_disk`.
    Arrow,
}

impl RowKind {
    /// Returns true if fields may be lists.
    pub(crate) fn has_lists(self) -> bool {
        !matches!(self, Self::Tsv | Self::Csv)
    }
}

/// Treatment of bad rows: those with missing, empty or surplus cells, or values of the wrong type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BadRowRule {
    /// Fail at the first bad row.
    #[default]
    Refuse,
    /// Skip and count bad rows.
    Skip,
}

/// Bad rows found in all files of a split.
#[derive(Debug, Default)]
pub struct BadRows {
    rule: BadRowRule,
    /// Number of rows read, good or bad.
    pub rows: usize,
    /// Number of rows skipped.
    pub skipped: usize,
    /// Fault of the first skipped row, with its file and line.
    pub first: Option<Error>,
}

impl BadRows {
    /// Starts with no rows read.
    pub fn new(rule: BadRowRule) -> Self {
        Self { rule, ..Self::default() }
    }

    /// Starts over with the current rule.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.rule)
    }

    /// Returns the good rows, and skips or refuses bad ones by the rule.
    pub(crate) fn sift_all<T>(
        &mut self,
        rows: impl Iterator<Item = Result<T, Error>>,
    ) -> Result<Vec<T>, Error> {
        let sift = |row| {
            self.rows += 1;
            match row {
                // only an invalid row can be skipped, not a file that cannot be read further
                Err(fault @ Error::Invalid(_)) if self.rule == BadRowRule::Skip => {
                    self.skipped += 1;
                    self.first.get_or_insert(fault);
                    None
                }
                row => Some(row),
            }
        };
        rows.filter_map(sift).collect()
    }
}

/// A column of a table, or a field of JSON objects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged, expecting = "a column must be a name or a number, counted from 1")]
pub enum Column {
    /// By number, counted from 1.
    Number(usize),
    /// By name: of a table's header or of a JSON field.
    Name(String),
}

impl Column {
    /// Returns the name of the column's cell in a [`Record`].
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Name(name) => name.clone(),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Name(name) => write!(formatter, "`{}`", excerpt(name)),
        }
    }
}

/// Layout of rows, as set in the formats of data sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) kind: RowKind,
    /// True if the first row names the columns; defaults to true.
    pub(crate) header: Option<bool>,
    /// True if cells may be quoted; by default only in CSV. GLUE's TSV files contain quotation marks as plain characters, often an odd
    /// number in a row.
    pub(crate) quoting: Option<bool>,
}

impl Layout {
    fn is_table(self) -> bool {
        !self.kind.has_lists()
    }

    fn has_header(self) -> bool {
        self.header.unwrap_or(true)
    }

    fn is_quoting(self) -> bool {
        self.quoting.unwrap_or(self.kind == RowKind::Csv)
    }

    /// Returns the contradiction between the layout and the requested columns; `None` if they agree.
    pub(crate) fn fault<'a>(self, mut columns: impl Iterator<Item = &'a Column>) -> Option<String> {
        if !self.is_table() && (self.header.is_some() || self.quoting.is_some()) {
            return Some("`header` and `quoting` are for `tsv` and `csv`".to_owned());
        }
        columns.find_map(|column| match column {
            Column::Number(_) if self.kind == RowKind::Jsonl => {
                Some(format!("fields of `jsonl` have names, but column {column} is given"))
            }
            Column::Number(0) => Some("there is no column 0: columns are counted from 1".to_owned()),
            Column::Name(_) if self.is_table() && !self.has_header() => {
                Some(format!("without a header, columns are numbers, counted from 1, but {column} is a name"))
            }
            _ => None,
        })
    }

    /// Returns the number of cells in a table's first row; `None` if the table is empty.
    pub(crate) fn width(self, text: &str) -> Option<usize> {
        Rows::new(text, self).next().map(|row| row.cells.len())
    }

    /// Reads the rows of a file, with an error for each bad one. Returns only `columns`, unless they are empty or the file is JSON. Parquet
    /// and Arrow are detected by content, regardless of the kind; `path` is for messages about text.
    pub(crate) fn read(
        self,
        source: &Source,
        path: &Path,
        columns: &[&Column],
    ) -> Result<Box<dyn Iterator<Item = Result<Record, Error>>>, Error> {
        Ok(match (source, self.kind) {
            (Source::Columns(content), _) => Box::new(columnar::rows(path, *content, columns)?),
            (Source::Text(text), RowKind::Tsv | RowKind::Csv) => {
                Box::new(self.cells(text, path, columns)?.into_iter())
            }
            (Source::Text(text), RowKind::Jsonl) => Box::new(json::objects(text, path).into_iter()),
            (Source::Text(_), RowKind::Parquet | RowKind::Arrow) => {
                return Err(Error::of(
                    path,
                    "it is neither Parquet nor Arrow, although its kind or file name says so",
                ));
            }
        })
    }

    pub(crate) fn cells(
        self,
        text: &str,
        path: &Path,
        columns: &[&Column],
    ) -> Result<Vec<Result<Record, Error>>, Error> {
        let mut rows = Rows::new(text, self);
        let header = match self.has_header() {
            true => rows.next().ok_or_else(|| Error::no_examples(path))?.cells,
            false => Vec::new(),
        };
        let all: Vec<Column> = header.iter().cloned().map(Column::Name).collect();
        let all: Vec<&Column> = all.iter().collect();
        let columns = if columns.is_empty() { &all } else { columns };
        let places = columns.iter().map(|column| place(column, &header)).collect::<Result<Vec<_>, _>>();
        let places = places.map_err(|reason| Error::Invalid(format!("`{}` {reason}", path.display())))?;
        let least = places.iter().max().map_or(0, |place| place + 1);
        let (mut records, mut last) = (Vec::new(), 1);
        for Row { line, cells } in rows.by_ref() {
            last = line;
            let cell = |(column, &place): (&&Column, &usize)| (column.key(), cells[place].clone().into());
            records.push(match misfit(cells.len(), header.len(), least, self) {
                Some(reason) => Err(Error::of_line(path, line, reason)),
                None => Ok(Record::new(line, columns.iter().zip(&places).map(cell).collect())),
            });
        }
        if self.is_quoting() && rows.ends_within_quotes() {
            return Err(Error::of_line(path, last, "a quotation mark is never closed"));
        }
        Ok(records)
    }
}

pub(crate) enum Source {
    Text(String),
    /// Parquet or Arrow, whose rows are read on demand.
    Columns(Content),
}

impl Source {
    /// Reads a text file, or checks that a file is Parquet or Arrow.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let content = Content::of(path)?;
        if content.is_columnar() { Ok(Self::Columns(content)) } else { read_text(path).map(Self::Text) }
    }

    /// Returns the text; refuses Parquet and Arrow.
    pub(crate) fn into_text(self, path: &Path) -> Result<String, Error> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Columns(_) => read_text(path),
        }
    }
}

/// Reads UTF-8 from a plain, gzip or zstd file, without the byte-order mark.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    text(compressed::read(path)?, path)
}

/// Decodes decompressed UTF-8, without the byte-order mark; `path` is for messages.
pub(crate) fn text(bytes: Vec<u8>, path: &Path) -> Result<String, Error> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Error::of_line(path, 1 + line_breaks(before), "not valid UTF-8")
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

fn line_breaks(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

struct Row {
    /// The row's first line, counted from 1.
    line: usize,
    cells: Vec<String>,
}

/// Returns the index of a column, counted from 0. Fails if the header does not name it exactly once; the error lists the header's names.
fn place(column: &Column, header: &[String]) -> Result<usize, String> {
    let found: Vec<usize> = match column {
        Column::Number(number) if !header.is_empty() && *number > header.len() => Vec::new(),
        Column::Number(number) => vec![number - 1],
        Column::Name(name) => (0..header.len()).filter(|&index| header[index] == *name).collect(),
    };
    match found[..] {
        [index] => Ok(index),
        _ => {
            let count = if found.is_empty() { "no" } else { "more than one" };
            Err(format!("has {count} column {column}: its header names {}", listed(header)))
        }
    }
}

/// Returns the fault of a row. If it is shorter or longer than the header, its texts are in the wrong columns. `header` is 0 without one.
fn misfit(found: usize, header: usize, least: usize, layout: Layout) -> Option<String> {
    let count = match found {
        1 => "1 column".to_owned(),
        found => format!("{found} columns"),
    };
    let fault = if layout.has_header() && found != header {
        format!("{count}, but the header has {header}")
    } else if found < least {
        format!("{count}, but column {least} is needed")
    } else {
        return None;
    };
    let hint = "; if quotation marks are part of the text, set `quoting = false`";
    Some(fault + if layout.is_quoting() { hint } else { "" })
}

struct Rows<'a> {
    text: &'a str,
    reader: csv::Reader<&'a [u8]>,
    record: csv::StringRecord,
    /// Bytes of `text` whose line breaks are already counted in `lines`.
    counted: usize,
    lines: usize,
}

impl<'a> Rows<'a> {
    fn new(text: &'a str, layout: Layout) -> Self {
        let reader = csv::ReaderBuilder::new()
            .has_headers(false) // the header is read as a row
            .flexible(true)
            .delimiter(if layout.kind == RowKind::Csv { b',' } else { b'\t' })
            .quoting(layout.is_quoting())
            .terminator(csv::Terminator::Any(b'\n'))
            .from_reader(text.as_bytes());
        Self { text, reader, record: csv::StringRecord::new(), counted: 0, lines: 0 }
    }

    /// Returns true if the last record runs to the end of the file because a quotation mark is never closed. The reader silently takes the
    /// rest of the file for one cell.
    fn ends_within_quotes(&self) -> bool {
        let record = &self.text[self.counted..];
        record.trim_end().contains('\n') && record.matches('"').count() % 2 == 1
    }

    fn line(&mut self) -> usize {
        let start = self.record.position().map_or(0, csv::Position::byte) as usize;
        // The reader skips blank lines, but reports that the record starts before them.
        let text = &self.text.as_bytes()[start..];
        let start = start + text.iter().take_while(|&&byte| byte == b'\n').count();
        self.lines += line_breaks(&self.text.as_bytes()[self.counted..start]);
        self.counted = start;
        self.lines + 1
    }
}

impl Iterator for Rows<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        loop {
            let more = self.reader.read_record(&mut self.record);
            if !more.expect("UTF-8 in memory, rows of any length: nothing can fail") {
                return None;
            }
            let line = self.line();
            let mut cells: Vec<String> = self.record.iter().map(str::to_owned).collect();
            if let Some(last) = cells.last_mut().filter(|last| last.ends_with('\r')) {
                last.pop();
            }
            if cells.iter().any(|cell| !cell.is_empty()) || cells.len() > 1 {
                return Some(Row { line, cells });
            }
        }
    }
}
