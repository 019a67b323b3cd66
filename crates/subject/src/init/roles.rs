//! Columns of tables, by their names and by what they contain.
use std::path::Path;

use corpus::tables::{Table, TableColumn};

use super::ask;
use crate::error::Error;

/// Names that columns of texts have, the most telling first.
pub(super) const TEXTS: &str =
    "text sentence review content document comment tweet body utterance message title";

/// Names that columns of classes have.
pub(super) const LABELS: &str = "label labels gold_label class category sentiment target verdict intent topic emotion \
    stance score rating stars";

/// Names that the columns of two texts have.
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

/// Names of the columns of a long text and its summary.
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

/// Words in a cell, on average, from which a column is one of texts.
const WORDS: f64 = 2.0;

/// The column with a name, ignoring case.
pub(super) fn named<'a>(table: &'a Table, name: &str) -> Option<&'a TableColumn> {
    table.columns.iter().find(|column| column.name().eq_ignore_ascii_case(name))
}

/// The column that an option names.
pub(super) fn told<'a>(table: &'a Table, file: &Path, name: &str) -> Result<&'a TableColumn, Error> {
    table.columns.iter().find(|column| column.name() == name).ok_or_else(|| {
        let known: Vec<String> = table.columns.iter().map(TableColumn::name).collect();
        let meant = words::did_you_mean(name, known.iter().map(String::as_str));
        Error::Invalid(format!(
            "`{}` has no column `{name}`: there are {}{meant}",
            file.display(),
            known.join(", ")
        ))
    })
}

/// The first column that has one of these names.
pub(super) fn by_name<'a>(table: &'a Table, names: &str) -> Option<&'a TableColumn> {
    names.split(' ').find_map(|name| named(table, name))
}

/// The first two columns that have one of these pairs of names.
pub(super) fn pair_by_name<'a>(table: &'a Table, names: &[[&str; 2]]) -> Option<[&'a TableColumn; 2]> {
    names.iter().find_map(|[first, second]| Some([named(table, first)?, named(table, second)?]))
}

/// Columns of texts, without these.
pub(super) fn texts<'a>(table: &'a Table, without: &[&TableColumn]) -> Vec<&'a TableColumn> {
    let is_text = |column: &&TableColumn| column.words() >= WORDS && !without.contains(column);
    table.columns.iter().filter(is_text).collect()
}

/// A request to name a column.
pub(super) fn which(table: &Table, file: &Path, what: &str, option: &str) -> Error {
    let known: Vec<String> = table.columns.iter().map(TableColumn::name).collect();
    ask(format!("`{}` has {}, and {what}", file.display(), columns(&known)), option)
}

fn columns(known: &[String]) -> String {
    match known {
        [one] if one.contains(';') => {
            format!("one column, `{one}`, since semicolons separate no columns here")
        }
        [one] => format!("one column, `{one}`"),
        several => format!("the columns {}", several.join(", ")),
    }
}
