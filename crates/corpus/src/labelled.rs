//! Labelled examples: a text, a pair of texts or an image with its class or value, or the words of a sentence with a tag each.
//!
//! A [`Format`] describes how a file contains them, so that a data set needs no code. Texts and labels are kept unchanged, including
//! wrongly decoded text in some files of MultiNLI, such as `â€œ` for `“`.
mod conll;
mod scheme;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use words::excerpt;

use crate::Error;
use crate::images::ImageFile;
use crate::rows::{self, BadRows, Layout, Record, Source};
pub use crate::rows::{Column, RowKind};
pub use scheme::Scheme;

/// One example of a classification data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Input of the classifier.
    pub input: Input,
    /// Name of the class, or value, as in the data; for words, all tags joined by spaces.
    pub label: String,
}

/// Input of a classifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A text.
    Text(String),
    /// Two texts.
    Pair(String, String),
    /// The words of a sentence, each with a tag.
    Words(Vec<String>),
    /// An image.
    Image(ImageFile),
}

impl Input {
    /// Returns the text, the first of two texts, all words joined by spaces, or the path of the image.
    pub fn first(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) | Self::Pair(text, _) => Cow::Borrowed(text),
            Self::Words(words) => Cow::Owned(words.join(" ")),
            Self::Image(image) => image.path.to_string_lossy(),
        }
    }

    /// Returns the texts: one, two, all words, or none for an image.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        let (texts, words): ([Option<&String>; 2], &[String]) = match self {
            Self::Text(text) => ([Some(text), None], &[]),
            Self::Pair(first, second) => ([Some(first), Some(second)], &[]),
            Self::Words(words) => ([None, None], words),
            Self::Image(_) => ([None, None], &[]),
        };
        texts.into_iter().flatten().chain(words)
    }
}

impl Example {
    /// Makes an example of words with one tag each. The error is a message.
    pub fn tagged(words: Vec<String>, tags: &[String]) -> Result<Self, String> {
        if words.is_empty() {
            return Err("the sentence has no words".to_owned());
        }
        if words.len() != tags.len() {
            let (words, tags) = (words::count(words.len(), "word"), words::count(tags.len(), "tag"));
            return Err(format!(
                "{words}, but {tags}: each word needs one tag, even if the tokenizer splits it"
            ));
        }
        if let Some(place) = words.iter().position(|word| word.trim().is_empty()) {
            return Err(format!("word {} is blank", place + 1));
        }
        if let Some(tag) = tags.iter().find(|tag| tag.is_empty() || tag.contains(char::is_whitespace)) {
            return Err(format!("tag `{}` is empty or contains white space", excerpt(tag)));
        }
        Ok(Self { input: Input::Words(words), label: tags.join(" ") })
    }

    /// Returns the words if they have tags; empty otherwise.
    pub fn words(&self) -> &[String] {
        if let Input::Words(words) = &self.input { words } else { &[] }
    }

    /// Returns the tags of the words.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.label.split(' ').filter(|_| !self.words().is_empty())
    }

    /// Replaces the label, or each tag, by its entry in `names`; others stay.
    pub fn rename(&mut self, names: &BTreeMap<String, String>) {
        let other = |label: &str| names.get(label).cloned();
        if self.words().is_empty() {
            self.label = other(&self.label).unwrap_or_else(|| std::mem::take(&mut self.label));
        } else if !names.is_empty() {
            let tags: Vec<String> =
                self.tags().map(|tag| other(tag).unwrap_or_else(|| tag.to_owned())).collect();
            self.label = tags.join(" ");
        }
    }

    /// Returns the label as a number; `None` if it is not a finite number.
    pub fn value(&self) -> Option<f32> {
        self.label.trim().parse().ok().filter(|value: &f32| value.is_finite())
    }
}

/// Kind of a file of labelled examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A tab-separated table.
    Tsv,
    /// A comma-separated table.
    Csv,
    /// JSON objects, one per line or all in a list.
    Jsonl,
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC file or stream, Feather, or a folder written by `save_to_disk`.
    Arrow,
    /// Sentences with one word per line and a blank line after each sentence: CoNLL-2003, CoNLL-U and the like.
    Conll,
}

/// Layout of a file of labelled examples; part of a setup's TOML file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// Kind of the file.
    pub kind: FileKind,
    /// Whether the first row of a table names its columns; true if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// Whether cells of a table may be quoted; if not given, only in CSV. The TSV files of GLUE use quotation marks as plain characters,
    /// often an odd number in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoting: Option<bool>,
    /// Column of the text, of the first of two texts, or of the words: lists, or in `conll` one word per line.
    pub text: Column,
    /// Column of the second of two texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<Column>,
    /// Column of the class or value, or of the tags of the words.
    pub label: Column,
    /// Labels whose rows are skipped, such as `-` for MultiNLI pairs without a label that annotators agreed on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip_labels: Vec<String>,
}

/// Message for entries that do not apply to words with tags.
const OF_TEXTS: &str = "`pair` and `skip_labels` are for texts, not for words with tags";

impl Format {
    /// Checks the description before any file is read.
    pub fn validate(&self) -> Result<(), Error> {
        let has_tables = self.header.is_some() || self.quoting.is_some();
        let fault = match self.layout() {
            Some(layout) => layout.fault(self.columns()),
            None if has_tables => Some("`header` and `quoting` are for tables, not for `conll`".to_owned()),
            None if self.pair.is_some() || !self.skip_labels.is_empty() => Some(OF_TEXTS.to_owned()),
            None => conll::fault(self.columns()),
        };
        fault.map_or(Ok(()), |reason| Err(Error::of_format(reason)))
    }

    fn columns(&self) -> impl Iterator<Item = &Column> {
        [&self.text].into_iter().chain(&self.pair).chain([&self.label])
    }

    /// Returns the layout of the rows; `None` for `conll`.
    fn layout(&self) -> Option<Layout> {
        let kind = match self.kind {
            FileKind::Tsv => RowKind::Tsv,
            FileKind::Csv => RowKind::Csv,
            FileKind::Jsonl => RowKind::Jsonl,
            FileKind::Parquet => RowKind::Parquet,
            FileKind::Arrow => RowKind::Arrow,
            FileKind::Conll => return None,
        };
        Some(Layout { kind, header: self.header, quoting: self.quoting })
    }

    /// Returns the example of a row, or `None` if its label is skipped. The error is a message.
    fn example(&self, record: &Record) -> Result<Option<Example>, String> {
        let class = |label| record.class(&self.label.key(), label);
        if record.is_list(&self.text.key()) {
            if self.pair.is_some() || !self.skip_labels.is_empty() {
                return Err(OF_TEXTS.to_owned());
            }
            let list = |column: &Column| record.texts(&column.key());
            let tags: Vec<String> = list(&self.label)?.into_iter().map(class).collect();
            return Example::tagged(list(&self.text)?, &tags).map(Some);
        }
        let label = class(record.text(&self.label.key())?);
        if self.skip_labels.contains(&label) {
            return Ok(None);
        }
        let filled = |column| record.filled(column);
        let text = filled(&self.text)?;
        filled(&self.label)?; // blank labels are faults, unless they are skipped
        let input = match &self.pair {
            Some(pair) => Input::Pair(text, filled(pair)?),
            None => Input::Text(text),
        };
        Ok(Some(Example { input, label }))
    }
}

/// Reads a file of labelled examples. Text is UTF-8, plain, gzip or zstd, with or without byte-order mark and carriage returns; blank lines
/// do not count. Lines end at `\n` only, as in [`crate::parallel::read_lines`].
pub fn read(path: &Path, format: &Format, bad: &mut BadRows) -> Result<Vec<Example>, Error> {
    read_checked(path, format, bad, |_| Ok(()))
}

/// Reads examples whose labels must be numbers; otherwise like [`read`].
pub fn read_values(path: &Path, format: &Format, bad: &mut BadRows) -> Result<Vec<Example>, Error> {
    read_checked(path, format, bad, |example| match example.value() {
        Some(_) => Ok(()),
        None => Err(format!("label `{}` is not a finite number", excerpt(&example.label))),
    })
}

fn read_checked(
    path: &Path,
    format: &Format,
    bad: &mut BadRows,
    check: impl Fn(&Example) -> Result<(), String>,
) -> Result<Vec<Example>, Error> {
    format.validate()?;
    let columns: Vec<&Column> = format.columns().collect();
    let rows: Box<dyn Iterator<Item = Result<Record, Error>>> = match format.layout() {
        Some(layout) => layout.read(&Source::open(path)?, path, &columns)?,
        None => Box::new(conll::sentences(&rows::read_text(path)?, path, &columns).into_iter()),
    };
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Err(Error::no_examples(path));
    }
    let example = |record: Record| {
        let example = format.example(&record).and_then(|example| {
            example.iter().try_for_each(&check)?;
            Ok(example)
        });
        example.map_err(|reason| record.fault(path, reason))
    };
    let kept = bad.sift_all(rows.filter_map(|row| row.and_then(example).transpose()))?;
    if kept.is_empty() {
        let left_out = match &bad.first {
            Some(fault) => format!("with faults, the first: {fault}"),
            None => format!("with labels to skip ({})", format.skip_labels.join(", ")),
        };
        let path = path.display();
        return Err(Error::Invalid(format!("`{path}` has no examples but those {left_out}")));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests;
