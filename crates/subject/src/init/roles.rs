//! Columns of tables, found by name or content.
use std::path::Path;

use corpus::tables::{Table, TableColumn};

use super::ask;
use crate::error::Error;

/// Common names of text columns, in order of preference.
pub(super) const TEXTS: &[&str] = &[
    "text",
    "sentence",
    "review",
    "content",
    "document",
    "comment",
    "tweet",
    "body",
    "utterance",
    "message",
    "title",
];

/// Common names of class columns.
pub(super) const LABELS: &[&str] = &[
    "label",
    "labels",
    "gold_label",
    "class",
    "category",
    "sentiment",
    "target",
    "verdict",
    "intent",
    "topic",
    "emotion",
    "stance",
    "score",
    "rating",
    "stars",
];

/// Common names of the columns of text pairs.
pub(super) const PAIRS: &[[&str; 2]] = &[
    ["premise", "hypothesis"],
    ["sentence1", "sentence2"],
    ["question1", "question2"],
    ["question", "sentence"],
    ["query", "passage"],
    ["text_a", "text_b"],
    ["text1", "text2"],
    ["sentence_a", "sentence_b"],
    ["#1 string", "#2 string"],
];

/// Common names of the columns of long texts and summaries.
pub(super) const SUMMARIES: &[[&str; 2]] = &[
    ["article", "highlights"],
    ["document", "summary"],
    ["dialogue", "summary"],
    ["article", "summary"],
    ["text", "summary"],
    ["input", "output"],
    ["source", "target"],
    ["src", "tgt"],
];

/// Minimum mean number of words per cell in a text column.
const WORDS: f64 = 2.0;

/// Returns the column with this name, ignoring case.
pub(super) fn named<'a>(table: &'a Table, name: &str) -> Option<&'a TableColumn> {
    table.columns.iter().find(|column| column.name().eq_ignore_ascii_case(name))
}

pub(super) fn told<'a>(table: &'a Table, file: &Path, name: &str) -> Result<&'a TableColumn, Error> {
    table.columns.iter().find(|column| column.name() == name).ok_or_else(|| {
        let known: Vec<String> = table.columns.iter().map(TableColumn::name).collect();
        let meant = words::did_you_mean(name, known.iter().map(String::as_str));
        Error::Invalid(format!(
            "`{}` has no column `{name}`: its columns are {}{meant}",
            file.display(),
            known.join(", ")
        ))
    })
}

/// Returns the first column that has one of these names.
pub(super) fn by_name<'a>(table: &'a Table, names: &[&str]) -> Option<&'a TableColumn> {
    names.iter().find_map(|name| named(table, name))
}

/// Returns the first two columns whose names are one of these pairs.
pub(super) fn pair_by_name<'a>(table: &'a Table, names: &[[&str; 2]]) -> Option<[&'a TableColumn; 2]> {
    names.iter().find_map(|[first, second]| Some([named(table, first)?, named(table, second)?]))
}

pub(super) fn texts<'a>(table: &'a Table, without: &[&TableColumn]) -> Vec<&'a TableColumn> {
    let is_text = |column: &&TableColumn| column.words() >= WORDS && !without.contains(column);
    table.columns.iter().filter(is_text).collect()
}

/// Returns the error that asks for a column.
pub(super) fn which(table: &Table, file: &Path, what: &str, option: &str) -> Error {
    let known: Vec<String> = table.columns.iter().map(TableColumn::name).collect();
    ask(format!("`{}` has {}, and {what}", file.display(), columns(&known)), option)
}

fn columns(known: &[String]) -> String {
    match known {
        [one] if one.contains(';') => {
            format!("one column, `{one}`, since semicolons do not separate columns here")
        }
        [one] => format!("one column, `{one}`"),
        several => format!("the columns {}", several.join(", ")),
    }
}
