//! Documents that language models are trained on, and measured on by perplexity.
//!
//! A [`DocumentFormat`] describes how a file holds them, so that a data set needs no code of its own. Texts are kept as
//! they stand in the file; only what lies between two documents belongs to neither.
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

/// A text that is read from its beginning, without what stands before it in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The text; it is not blank.
    pub text: String,
    /// Bytes at its beginning that are given, and not predicted.
    pub given: usize,
    /// The text of the file that a [block](Predicted::Blocks) is part of, counted from 0; `None` if it is a text of its own.
    pub source: Option<usize>,
}

impl From<String> for Document {
    /// A text all of which is predicted.
    fn from(text: String) -> Self {
        Self { text, given: 0, source: None }
    }
}

/// Layout of a file of documents; part of a subject's TOML.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentFormat {
    /// The unit that is a document.
    pub kind: DocumentKind,
    /// The column or field of the text, for tables and `jsonl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Column>,
    /// True if the first row of a table names its columns, or if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// True if cells of a table may stand in quotation marks; if not given, only in CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoting: Option<bool>,
    /// The name of the file in a zip archive; not needed if a single `.txt` or `.tsv` there has tabs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// True if of equal documents only the first is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<bool>,
    /// The part of the file that counts, from 0 to 1, by characters: of n characters those from ⌊from · n⌋ on and before
    /// ⌊to · n⌋. nanoGPT trains on `[0.0, 0.9]` of Shakespeare and validates on `[0.9, 1.0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<[f64; 2]>,
    /// The documents that are drawn at random; all, in their order, if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<DocumentSample>,
    /// The part of each document that is predicted; all of it if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predict: Option<Predicted>,
}

/// The part of a document that is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predicted {
    /// The last word, with the white space before it (LAMBADA; Paperno et al. 2016, <https://aclanthology.org/P16-1144>).
    LastWord,
    /// All of it, in blocks of about 512 bytes, which are about 128 tokens of English. Each block is a document of its own, predicted
    /// after the block before it, so that a random sample of documents is spread over the file. Blocks are cut in the text, so that a
    /// sample has the same segments for every tokenizer.
    Blocks,
}

/// Bytes of a block, more or less.
const BLOCK: usize = 512;

impl Predicted {
    /// The documents of a text.
    ///
    /// - `source`: place of the text in the files
    fn of(self, source: usize, text: String) -> Vec<Document> {
        match self {
            Self::LastWord => {
                let text = text.trim_end().to_owned();
                // without white space before its last word there is nothing to give
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

/// The unit that is a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentKind {
    /// A line.
    Lines,
    /// Lines without a blank one between them.
    Paragraphs,
    /// The whole file.
    Text,
    /// An article of WikiText's raw files: it begins with a line ` = Title = `, in unaltered files between blank ones.
    Wikitext,
    /// A field of a JSON object; there is one a line.
    Jsonl,
    /// A column of a table whose cells are separated by tabs.
    Tsv,
    /// A column of a table whose cells are separated by commas.
    Csv,
    /// A column of a Parquet file.
    Parquet,
    /// A column of an Arrow IPC file or stream, of Feather, or of a folder of `save_to_disk`.
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

/// Documents that are drawn at random. All splits of one file with one seed are parts of one order, so those that do not
/// overlap in it have no document in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentSample {
    /// The number that is drawn.
    pub count: usize,
    /// Decides on the order.
    pub seed: u64,
    /// The number before them in that order that is left to other splits; 0 if not given.
    #[serde(default)]
    pub skip: usize,
}

impl DocumentFormat {
    /// A file of these units, all of which count.
    pub(crate) fn of(kind: DocumentKind) -> Self {
        let (text, header, quoting, inside) = (None, None, None, None);
        Self { kind, text, header, quoting, inside, distinct: None, share: None, sample: None, predict: None }
    }

    /// Finds what is wrong with the description itself, before there is a file.
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

    /// Layout of the rows, of a file that has rows.
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

/// Reads the documents of files that follow each other: UTF-8, plain, gzip, zstd or in a zip archive (`.zip`), with or
/// without byte-order mark and carriage returns. Blank documents are left out; which are distinct, and which are drawn, is
/// said of all files together.
///
/// # Errors
/// If the description contradicts itself; if a file is missing, empty, torn or not UTF-8, or all its documents are
/// blank; if a file of lines is SGML or XML; if a file of WikiText has no title; if there are too few for the sample.
///
/// # Panics
/// If there are no files.
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

/// The number of words of a text: what white space separates. Perplexity by word divides by it.
pub fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The fault of a file that holds no articles.
const UNTITLED: &str = "`wikitext` expects articles that begin with a line ` = Title = `, and there is no such line: \
                        `kind` can also be \"text\", \"paragraphs\" or \"lines\"";

/// Calls `each` with the texts that count, but for blank ones and, if asked for, repeated ones.
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
            return Err(Error::Invalid(format!("`{}` holds no documents but blank ones", path.display())));
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
