//! Documents that language models are trained on, or whose perplexity is measured.
//!
//! A [`DocumentFormat`] describes how a file contains them, so that a data set needs no code. Texts are kept unchanged; what separates
//! two documents is dropped.
mod cut;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::markup;
use crate::pairs::{self, Member};
use crate::rows::{self, BadRows, Column, Layout, RowKind, Source};

/// A text that a model reads separately from the rest of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The text; never blank.
    pub text: String,
    /// Bytes at the beginning that are given as context and not predicted.
    pub given: usize,
    /// Index, among the texts read, of the text that a [block](Predicted::Blocks) was cut from; `None` for a whole text.
    pub source: Option<usize>,
}

impl From<String> for Document {
    /// Makes a document that is predicted in full.
    fn from(text: String) -> Self {
        Self { text, given: 0, source: None }
    }
}

/// Layout of a file of documents; part of a setup's TOML file.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentFormat {
    /// Unit that counts as one document.
    pub kind: DocumentKind,
    /// Column or field of the text, for tables and `jsonl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Column>,
    /// Whether the first row of a table names its columns; true if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Whether cells of a table may be quoted; if not given, only in CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoting: Option<bool>,
    /// Name of the file in a zip archive; optional if exactly one `.txt` or `.tsv` in it contains tabs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// Whether only the first of equal documents is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<bool>,
    /// Part of a text of n characters that is used: from ⌊from · n⌋ up to, but without, ⌊to · n⌋. nanoGPT trains on `[0.0, 0.9]` of
    /// Shakespeare and validates on `[0.9, 1.0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<[f64; 2]>,
    /// Random sample of the documents; if not given, all in file order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<DocumentSample>,
    /// Part of each document that is predicted; the whole document if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predict: Option<Predicted>,
}

/// Part of a document that is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predicted {
    /// The last word and the white space before it (LAMBADA; Paperno et al. 2016, <https://aclanthology.org/P16-1144>).
    LastWord,
    /// The whole document, in blocks of about 512 bytes, or about 128 tokens of English. Each block becomes a document and is predicted
    /// with its predecessor as context, so that a random sample of documents is spread over the file. Blocks are cut in the text, so that a
    /// sample has equal segments for every tokenizer.
    Blocks,
}

/// Approximate size of a block in bytes.
const BLOCK: usize = 512;

impl Predicted {
    /// Returns the documents of text number `source`.
    fn of(self, source: usize, text: String) -> Vec<Document> {
        match self {
            Self::LastWord => {
                let text = text.trim_end().to_owned();
                // a text of one word has no context
                let given = text.rfind(char::is_whitespace).map_or(0, |last| text[..last].trim_end().len());
                vec![Document { text, given, source: None }]
            }
            Self::Blocks => {
                let ends = cut::blocks(&text, BLOCK);
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let before = std::iter::once(0).chain(starts.clone());
                let block = |((before, start), &end): ((usize, usize), &usize)| Document {
                    text: text[before..end].to_owned(),
                    given: start - before,
                    source: Some(source),
                };
                before.zip(starts).zip(&ends).map(block).collect()
            }
        }
    }
}

/// Unit that counts as one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentKind {
    /// A line.
    Lines,
    /// A block of lines between blank lines.
    Paragraphs,
    /// The whole file.
    Text,
    /// An article of WikiText's raw files. It begins with a line ` = Title = `, which has blank lines around it in unaltered files.
    Wikitext,
    /// A field of a JSON object; objects are one per line, or all in a list.
    Jsonl,
    /// A cell of a tab-separated table.
    Tsv,
    /// A cell of a comma-separated table.
    Csv,
    /// A cell of a Parquet file.
    Parquet,
    /// A cell of an Arrow IPC file or stream, of Feather, or of a folder written by `save_to_disk`.
    Arrow,
}

impl From<RowKind> for DocumentKind {
    fn from(kind: RowKind) -> Self {
        match kind {
            RowKind::Tsv => Self::Tsv,
            RowKind::Csv => Self::Csv,
            RowKind::Jsonl => Self::Jsonl,
            RowKind::Parquet => Self::Parquet,
            RowKind::Arrow => Self::Arrow,
        }
    }
}

/// Random sample of documents. Splits of one file with equal seeds are slices of one random order, so slices that do not overlap have no
/// document in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentSample {
    /// Number of documents to draw.
    pub count: usize,
    /// Seed of the random order.
    pub seed: u64,
    /// Number of documents before the slice, which are left to other splits; 0 if not given.
    #[serde(default)]
    pub skip: usize,
}

impl DocumentFormat {
    /// Returns the format of a file of these units, all of which are kept.
    pub(crate) fn of(kind: DocumentKind) -> Self {
        let (text, header, quoting, inside) = (None, None, None, None);
        Self { kind, text, header, quoting, inside, distinct: None, share: None, sample: None, predict: None }
    }

    /// Checks the description before any file is read.
    pub fn validate(&self) -> Result<(), Error> {
        let reason = self.fault_of_text().or_else(|| self.fault_of_choice());
        reason.map_or(Ok(()), |reason| Err(Error::of_format(reason)))
    }

    fn fault_of_text(&self) -> Option<String> {
        let said = match (self.layout(), &self.text) {
            (Some(layout), Some(column)) => return layout.fault([column].into_iter()),
            (Some(_), None) => "`text` must name the column or field that holds the documents",
            (None, Some(_)) => "`text` is for tables and `jsonl`",
            (None, None) if self.header.is_some() || self.quoting.is_some() => {
                "`header` and `quoting` are for tables"
            }
            (None, None) => return None,
        };
        Some(said.to_owned())
    }

    fn fault_of_choice(&self) -> Option<String> {
        let in_order = |[from, to]: [f64; 2]| (0.0..to).contains(&from) && to <= 1.0;
        match (self.share, self.sample) {
            (Some(_), _) if self.layout().is_some() => {
                Some("`share` is for plain text, not for tables and `jsonl`".to_owned())
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

    fn layout(&self) -> Option<Layout> {
        let kind = match self.kind {
            DocumentKind::Tsv => RowKind::Tsv,
            DocumentKind::Csv => RowKind::Csv,
            DocumentKind::Jsonl => RowKind::Jsonl,
            DocumentKind::Parquet => RowKind::Parquet,
            DocumentKind::Arrow => RowKind::Arrow,
            DocumentKind::Lines | DocumentKind::Paragraphs | DocumentKind::Text | DocumentKind::Wikitext => {
                return None;
            }
        };
        Some(Layout { kind, header: self.header, quoting: self.quoting })
    }
}

/// Reads the documents of several files in order: UTF-8, plain, gzip, zstd or in a zip archive (`.zip`), with or without byte-order mark
/// and carriage returns. Skips blank documents; `distinct` and `sample` apply to all files together.
///
/// # Errors
/// If the description contradicts itself; if a file is missing, empty, truncated or not UTF-8, or has only blank documents; if a file of
/// lines is SGML or XML; if a WikiText file has no title; if a sample is larger than the number of documents.
///
/// # Panics
/// If a sample is asked for, but `files` is empty.
pub fn read<P: AsRef<Path>>(
    files: &[P],
    format: &DocumentFormat,
    bad: &mut BadRows,
) -> Result<Vec<Document>, Error> {
    format.validate()?;
    let mut all = Vec::new();
    if let Some(DocumentSample { count, seed, skip }) = format.sample {
        // read twice, so that memory never holds more texts than the sample
        let mut found = 0;
        each_text(files, format, bad, &mut |_| found += 1)?;
        let mut places: Vec<usize> = (0..found).collect();
        let last = files.last().expect("documents come from files").as_ref();
        pairs::draw(&mut places, (skip.saturating_add(count), seed), last, "documents")?;
        let slots: HashMap<usize, usize> = places.drain(..).skip(skip).zip(0..).collect();
        all.resize(slots.len(), String::new());
        let mut place = 0;
        each_text(files, format, &mut bad.again(), &mut |text| {
            if let Some(&slot) = slots.get(&place) {
                all[slot] = text;
            }
            place += 1;
        })?;
    } else {
        each_text(files, format, bad, &mut |text| all.push(text))?;
    }
    let documents = |(source, text)| match format.predict {
        Some(predicted) => predicted.of(source, text),
        None => vec![Document::from(text)],
    };
    Ok(all.into_iter().enumerate().flat_map(documents).collect())
}

/// Returns the number of words between white space, for perplexity per word.
pub fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Message for a file without articles.
const UNTITLED: &str = "`wikitext` expects articles that begin with a line ` = Title = `, but there is no such line: \
                        `kind` can also be \"text\", \"paragraphs\" or \"lines\"";

/// Calls `each` with the texts to keep: not blank and, if asked for, not repeated.
fn each_text<P: AsRef<Path>>(
    files: &[P],
    format: &DocumentFormat,
    bad: &mut BadRows,
    each: &mut dyn FnMut(String),
) -> Result<(), Error> {
    let mut seen = HashSet::new();
    for path in files {
        let Member { path, source } = pairs::content(path.as_ref(), format.inside.as_deref())?;
        let mut is_blank = true;
        let mut keep = |text: String| {
            if !text.trim().is_empty() {
                is_blank = false;
                if format.distinct != Some(true) || seen.insert(Sha256::digest(&text)) {
                    each(text);
                }
            }
        };
        texts(source, &path, format, bad, &mut keep)?;
        if is_blank {
            return Err(Error::Invalid(format!("`{}` contains only blank documents", path.display())));
        }
    }
    Ok(())
}

fn texts(
    source: Source,
    path: &Path,
    format: &DocumentFormat,
    bad: &mut BadRows,
    keep: &mut dyn FnMut(String),
) -> Result<(), Error> {
    if let (Some(layout), Some(column)) = (format.layout(), &format.text) {
        if matches!(&source, Source::Text(text) if text.trim().is_empty()) {
            return Ok(());
        }
        let key = column.key();
        let rows = layout.read(&source, path, &[column])?;
        let text = |record: rows::Record| record.text(&key).map_err(|reason| record.fault(path, reason));
        return bad.sift_all(rows.map(|row| row.and_then(text).map(&mut *keep))).map(drop);
    }
    let content = source.into_text(path)?;
    if content.trim().is_empty() {
        return Ok(());
    }
    if format.kind == DocumentKind::Lines {
        markup::refuse(&content, path)?;
    }
    let content = format.share.map_or(&content[..], |share| cut::share(&content, share));
    let texts = match format.kind {
        DocumentKind::Lines => cut::lines(content).collect(),
        DocumentKind::Paragraphs => cut::paragraphs(content),
        DocumentKind::Wikitext => cut::articles(content).ok_or_else(|| Error::of(path, UNTITLED))?,
        _ => vec![content],
    };
    texts.into_iter().map(str::to_owned).for_each(keep);
    Ok(())
}
