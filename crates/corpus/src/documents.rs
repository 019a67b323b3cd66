//! Documents that language models are trained on, and measured on by perplexity.
//!
//! A [`DocumentFormat`] describes how a file holds them, so that a data set needs no code of its own. Texts are kept as
//! they stand in the file; only what lies between two documents belongs to neither.
mod cut;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::labelled::Column;
use crate::pairs::{self, Member};
use crate::rows::{self, Layout, Table, kind_of};
use crate::{Error, parallel};

/// A text that is read from its beginning, without what stands before it in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The text; it is not blank.
    pub text: String,
}

/// How a file holds documents; part of a subject's TOML.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentFormat {
    /// What a document is.
    pub kind: DocumentKind,
    /// The column or field of the text, for tables and `jsonl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Column>,
    /// Whether the first row of a table names its columns; true if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Whether cells of a table may stand in quotation marks; if not given, only in CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoting: Option<bool>,
    /// The name of the file in a zip archive; not needed if a single `.txt` or `.tsv` there has tabs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// Whether of equal documents only the first is kept; false if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<bool>,
    /// The part of the file that counts, from 0 to 1, by characters: of n characters those from ⌊from · n⌋ on and before
    /// ⌊to · n⌋. nanoGPT trains on `[0.0, 0.9]` of Shakespeare and validates on `[0.9, 1.0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<[f64; 2]>,
    /// Which documents are drawn at random; all, in their order, if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<DocumentSample>,
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentKind {
    /// A line.
    Lines,
    /// Lines without a blank one between them.
    Paragraphs,
    /// The whole file.
    Text,
    /// An article of WikiText's raw files: it begins with a line ` = Title = ` between blank ones.
    Wikitext,
    /// A field of a JSON object; there is one a line.
    Jsonl,
    /// A column of a table whose cells are separated by tabs.
    Tsv,
    /// A column of a table whose cells are separated by commas.
    Csv,
}

/// Documents that are drawn at random. All splits of one file with one seed are parts of one order, so those that do not
/// overlap in it have no document in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentSample {
    /// How many are drawn.
    pub count: usize,
    /// Decides on the order.
    pub seed: u64,
    /// How many before them in that order are left to other splits; 0 if not given.
    #[serde(default)]
    pub skip: usize,
}

impl DocumentFormat {
    /// Finds what is wrong with the description itself, before there is a file.
    pub fn validate(&self) -> Result<(), Error> {
        let reason = self.fault_of_text().or_else(|| self.fault_of_choice());
        reason.map_or(Ok(()), |reason| Err(Error::Format { reason }))
    }

    fn fault_of_text(&self) -> Option<String> {
        let (has_columns, is_table) = (self.has_columns(), self.is_table());
        let said = match &self.text {
            None if has_columns => "`text` must name the column or field that holds the documents",
            Some(_) if !has_columns => "`text` is for tables and `jsonl`",
            _ if !is_table && (self.header.is_some() || self.quoting.is_some()) => {
                "`header` and `quoting` are for tables"
            }
            Some(Column::Number(0)) => "there is no column 0: columns are counted from 1",
            Some(Column::Number(_)) if !is_table => "`jsonl` has named fields, but `text` is a number",
            Some(Column::Name(_)) if is_table && self.header == Some(false) => {
                "without a header a column is given by its number, counted from 1"
            }
            _ => return None,
        };
        Some(said.to_owned())
    }

    fn fault_of_choice(&self) -> Option<String> {
        let in_order = |[from, to]: [f64; 2]| (0.0..to).contains(&from) && to <= 1.0;
        match (self.share, self.sample) {
            (Some(_), _) if self.has_columns() => {
                Some("`share` counts characters of a text, not of tables and `jsonl`".to_owned())
            }
            (Some(share), _) if !in_order(share) => Some(format!(
                "`share` is {share:?}, but must be two numbers from 0 to 1, the smaller one first"
            )),
            (_, Some(DocumentSample { count: 0, .. })) => {
                Some("`sample` must have a count of at least 1".to_owned())
            }
            _ => None,
        }
    }

    fn is_table(&self) -> bool {
        matches!(self.kind, DocumentKind::Tsv | DocumentKind::Csv)
    }

    fn has_columns(&self) -> bool {
        self.is_table() || self.kind == DocumentKind::Jsonl
    }

    fn layout(&self) -> Layout {
        let commas = self.kind == DocumentKind::Csv;
        Layout { commas, header: self.header.unwrap_or(true), quoting: self.quoting.unwrap_or(commas) }
    }
}

/// Reads the documents of files that follow each other: UTF-8, plain, gzip (`.gz`) or in a zip archive (`.zip`), with or
/// without byte-order mark and carriage returns. Blank documents are left out; which are distinct, and which are drawn, is
/// said of all files together.
///
/// # Errors
/// If the description contradicts itself; if a file is missing, empty, torn or not UTF-8, or all its documents are
/// blank; if there are too few for the sample.
///
/// # Panics
/// If there are no files.
pub fn read<P: AsRef<Path>>(files: &[P], format: &DocumentFormat) -> Result<Vec<Document>, Error> {
    format.validate()?;
    let mut all = Vec::new();
    for path in files {
        let Member { path, bytes } = content(path.as_ref(), format)?;
        if bytes.is_empty() {
            return Err(Error::NoDocuments { path });
        }
        let mut texts = texts(&rows::text(bytes, &path)?, &path, format)?;
        texts.retain(|text| !text.trim().is_empty());
        if texts.is_empty() {
            return Err(Error::NoDocuments { path });
        }
        all.append(&mut texts);
    }
    if format.distinct == Some(true) {
        let mut seen = HashSet::new();
        all.retain(|text| seen.insert(text.clone()));
    }
    if let Some(sample) = format.sample {
        let last = files.last().expect("documents come from files").as_ref();
        let DocumentSample { count, seed, skip } = sample;
        pairs::draw(&mut all, (skip.saturating_add(count), seed), last, "documents")?;
        all.drain(..skip);
    }
    Ok(all.into_iter().map(|text| Document { text }).collect())
}

/// The number of words of a text: what white space separates. Perplexity by word divides by it.
pub fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn content(path: &Path, format: &DocumentFormat) -> Result<Member, Error> {
    if pairs::is_zip(path) {
        return pairs::zipped(path, format.inside.as_deref());
    }
    if format.inside.is_some() {
        let reason = format!("`inside` is for archives, but `{}` is no .zip", path.display());
        return Err(Error::Format { reason });
    }
    let bytes = parallel::read_bytes(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(Member { path: path.to_owned(), bytes })
}

fn texts(content: &str, path: &Path, format: &DocumentFormat) -> Result<Vec<String>, Error> {
    let content = format.share.map_or(content, |share| cut::share(content, share));
    let owned = |texts: Vec<&str>| Ok(texts.into_iter().map(str::to_owned).collect());
    match (format.kind, &format.text) {
        (DocumentKind::Lines, _) => owned(cut::lines(content).collect()),
        (DocumentKind::Paragraphs, _) => owned(cut::paragraphs(content)),
        (DocumentKind::Wikitext, _) => owned(cut::articles(content)),
        (DocumentKind::Jsonl, Some(field)) => fields(content, path, field),
        (DocumentKind::Tsv | DocumentKind::Csv, Some(column)) => {
            let Table { places, rows } = Table::read(content, path, format.layout(), &[column])?;
            let cell = |mut cells: Vec<String>| places.first().map(|&place| cells.swap_remove(place));
            Ok(rows.into_iter().filter_map(|row| cell(row.cells)).collect())
        }
        (DocumentKind::Text | DocumentKind::Jsonl | DocumentKind::Tsv | DocumentKind::Csv, _) => {
            Ok(vec![content.to_owned()])
        }
    }
}

fn fields(content: &str, path: &Path, field: &Column) -> Result<Vec<String>, Error> {
    let text = |object: rows::Object| {
        let value = match field {
            Column::Name(name) => object.fields.get(name),
            Column::Number(_) => None,
        };
        match value {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(rows::fault(
                path,
                object.line,
                format!("field {field} is {}, but text is needed", kind_of(other)),
            )),
            None => Err(rows::fault(path, object.line, format!("no field {field}"))),
        }
    };
    rows::objects(content, path)?.into_iter().map(text).collect()
}
