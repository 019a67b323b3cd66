//! Setups of token classifiers: columns or lists of words and tags.
use std::collections::BTreeSet;
use std::path::Path;

use corpus::labelled::{self, Column, Example, FileKind, Format, RowKind, Scheme};
use corpus::splits::BadRows;
use corpus::tables;
use stats::entities;

use super::classification::{finish, number, one};
use super::files::Splits;
use super::model::{Classes, InitialModel};
use super::toml_text::{self, Because, TomlText, column, list, quoted};
use super::{Known, ask};
use crate::error::Error;

/// Common names of word lists and of tag lists.
const LISTS: [&[&str]; 2] = [&["tokens", "words"], &["ner_tags", "tags", "labels", "pos_tags", "chunk_tags"]];

pub(super) fn describe(
    toml: &mut TomlText,
    model: &InitialModel,
    classes: &Classes,
    known: &Known,
    splits: &Splits,
) -> Result<(), Error> {
    let file = one(splits.test())?;
    let labels = labels(classes, known)?;
    let (format, because) = format(&file.path, known, labels)?;
    let mut examples = labelled::read(&file.path, &format, &mut BadRows::default())?;
    let are_numbers = {
        let tags: BTreeSet<&str> = examples.iter().flat_map(Example::tags).collect();
        tags.iter().all(|tag| number(labels.len(), tag))
            && !labels.iter().any(|label| tags.contains(label.as_str()))
    };

    toml.model("classification", model, file);
    toml.section("data");
    if known.labels.is_some() {
        toml.raw("labels", &list(labels), Because::Told);
    }
    if are_numbers {
        let names = (0..labels.len()).map(|place| place.to_string()).zip(labels.iter().cloned()).collect();
        examples.iter_mut().for_each(|example| example.rename(&names));
        let pairs: Vec<String> =
            names.iter().map(|(number, label)| format!("{} = {}", quoted(number), quoted(label))).collect();
        let why = "numbers count the outputs of the model".to_owned();
        toml.raw("rename", &format!("{{ {} }}", pairs.join(", ")), Because::Assumed(why));
    }
    let words = [column(&format.text), column(&format.label)];
    let kind = tables::kind_of(&file.path).filter(|_| format.kind != FileKind::Conll);
    let kind = kind.map_or(quoted("conll"), toml_text::kind);
    let written = format!("{{ kind = {kind}, text = {}, label = {} }}", words[0], words[1]);
    toml.raw("format", &written, because);
    let are_entities = labels.iter().all(|label| label == "O" || entities::parse(label).is_some());
    let is_iob1 = examples.iter_mut().any(|example| Scheme::Iob2.apply(example).is_err());
    if are_entities && is_iob1 {
        let why = "entities begin with I- tags, which become B-".to_owned();
        toml.entry("scheme", "iob1", Because::Assumed(why));
    }
    let metrics = ["entity-f1", "token-accuracy"];
    let [metric, other] = if are_entities { metrics } else { [metrics[1], metrics[0]] };
    finish(toml, (metric, &format!("{other} is the alternative")), splits)
}

/// Returns the tags in the order of the model's outputs.
fn labels<'a>(classes: &'a Classes, known: &'a Known) -> Result<&'a [String], Error> {
    match (&known.labels, classes) {
        (Some(labels), _) | (None, Classes::Named(labels)) => Ok(labels),
        _ => {
            let what = "the tags of the model have no names in config.json";
            Err(ask(what, "--labels A,B,… names them in the order of the model's outputs"))
        }
    }
}

fn format(path: &Path, known: &Known, labels: &[String]) -> Result<(Format, Because), Error> {
    let told = known.text.as_deref().zip(known.label.as_deref());
    let of_fields = match tables::kind_of(path) {
        Some(RowKind::Jsonl) => Some(FileKind::Jsonl),
        Some(RowKind::Parquet) => Some(FileKind::Parquet),
        Some(RowKind::Arrow) => Some(FileKind::Arrow),
        _ => None,
    };
    if let Some(kind) = of_fields {
        return of_lists(path, kind, told);
    }
    let text = tables::read_text(path)?;
    let Some((words, tags)) = told else { return of_columns(path, &text, labels) };
    match (words.parse(), tags.parse()) {
        (Ok(words), Ok(tags)) => Ok((columns(words, tags), Because::Told)),
        _ => {
            Err(ask("columns of words and tags are numbers", "--text and --label give them, counted from 1"))
        }
    }
}

fn entry(kind: FileKind, text: Column, label: Column) -> Format {
    Format { kind, header: None, quoting: None, text, pair: None, label, skip_labels: Vec::new() }
}

fn columns(words: usize, tags: usize) -> Format {
    entry(FileKind::Conll, Column::Number(words), Column::Number(tags))
}

/// Uses the fields that were given, or those with common names in the first row.
fn of_lists(path: &Path, kind: FileKind, told: Option<(&str, &str)>) -> Result<(Format, Because), Error> {
    let fields = tables::fields(path)?;
    let is_there = |name: &&&str| fields.iter().any(|field| field == **name);
    let [words, tags] = LISTS.map(|names| names.iter().find(is_there).copied());
    let because = if told.is_some() { Because::Told } else { Because::Found("the first row".to_owned()) };
    let (words, tags) = told.or(words.zip(tags)).ok_or_else(|| {
        let [words, tags] = LISTS.map(|names| names.join(", "));
        let what = format!("`{}` has no lists named {words} and {tags}", path.display());
        ask(what, "--text and --label name them")
    })?;
    let [words, tags] = [words, tags].map(|name| Column::Name(name.to_owned()));
    Ok((entry(kind, words, tags), because))
}

/// Uses the first column for words (the second if the first contains numbers) and the last one with the model's tags.
fn of_columns(path: &Path, text: &str, labels: &[String]) -> Result<(Format, Because), Error> {
    let has_tabs = text.contains('\t');
    let cells =
        |line: &str| if has_tabs { line.split('\t').count() } else { line.split_whitespace().count() };
    let widest = text.lines().take(100).map(cells).max().unwrap_or(1);
    let are_numbered = widest > 2 && text.lines().any(|line| line.starts_with("1\t"));
    let words = if are_numbered { 2 } else { 1 };
    let fits = |tags: &usize| {
        let examples =
            labelled::read(path, &columns(words, *tags), &mut BadRows::default()).unwrap_or_default();
        let is_known = |tag: &str| labels.iter().any(|label| label == tag) || number(labels.len(), tag);
        !examples.is_empty() && examples.iter().flat_map(Example::tags).all(is_known)
    };
    let (tags, because) = match (words + 1..=widest).rev().find(fits) {
        Some(tags) => (tags, Because::Found("the model's tags in the last column that has them".to_owned())),
        None if widest > words => (widest, Because::Assumed("the last column".to_owned())),
        None => {
            let what =
                format!("`{}` has one column, but a word and a tag are needed in each line", path.display());
            return Err(ask(what, "name another file with --test FILE"));
        }
    };
    Ok((columns(words, tags), because))
}
