//! Classifiers of tokens: columns or lists of words and of their tags.
use std::collections::BTreeSet;
use std::path::Path;

use corpus::labelled::{self, Column, Example, FileKind, Format, RowKind, Scheme};
use corpus::splits::BadRows;
use corpus::tables;
use stats::entities;

use super::classification::{finish, number, one};
use super::files::Splits;
use super::model::{Classes, InitialModel};
use super::toml_text::{Because, TomlText, column, list, quoted};
use super::{Known, ask};
use crate::error::Error;

/// Fields of JSON that usually list words, and those that list tags.
const LISTS: [&[&str]; 2] = [&["tokens", "words"], &["ner_tags", "tags", "labels", "pos_tags", "chunk_tags"]];

/// Describes a classifier of tokens.
pub(super) fn describe(
    toml: &mut TomlText,
    model: &InitialModel,
    classes: &Classes,
    known: &Known,
    splits: &Splits,
) -> Result<(), Error> {
    let file = one(splits.test())?;
    let labels = match (&known.labels, classes) {
        (Some(labels), _) | (None, Classes::Named(labels)) => labels,
        _ => {
            let what = "the tags of the model have no names in config.json";
            return Err(ask(what, "--labels A,B,… names them in the order of the model's outputs"));
        }
    };
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
    let kind = if format.kind == FileKind::Conll { "conll" } else { "jsonl" };
    let entry = format!("{{ kind = \"{kind}\", text = {}, label = {} }}", words[0], words[1]);
    toml.raw("format", &entry, because);
    let are_entities = labels.iter().all(|label| label == "O" || entities::parse(label).is_some());
    let is_iob1 = examples.iter_mut().any(|example| Scheme::Iob2.apply(example).is_err());
    if are_entities && is_iob1 {
        let why = "I- tags begin entities, which becomes B-".to_owned();
        toml.entry("scheme", "iob1", Because::Assumed(why));
    }
    let metrics = ["entity-f1", "token-accuracy"];
    let [metric, other] = if are_entities { metrics } else { [metrics[1], metrics[0]] };
    finish(toml, (metric, &format!("{other} is the alternative")), splits)
}

/// The columns of words and of tags.
fn format(path: &Path, known: &Known, labels: &[String]) -> Result<(Format, Because), Error> {
    let with = |kind, text, label| Format {
        kind,
        header: None,
        quoting: None,
        text,
        pair: None,
        label,
        skip_labels: Vec::new(),
    };
    let text = tables::read_text(path)?;
    let told = known.text.as_ref().zip(known.label.as_ref());
    if tables::kind_of(path) == Some(RowKind::Jsonl) {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let is_there = |name: &&&str| first.contains(&format!("\"{name}\""));
        let [words, tags] = LISTS.map(|names| names.iter().find(is_there).map(|name| (*name).to_owned()));
        let found = told.map(|(text, label)| (text.clone(), label.clone())).or(words.zip(tags));
        let (words, tags) = found.ok_or_else(|| {
            let what = format!(
                "`{}` has no lists named {} and {}",
                path.display(),
                LISTS[0].join(", "),
                LISTS[1].join(", ")
            );
            ask(what, "--text and --label name them")
        })?;
        let because =
            if told.is_some() { Because::Told } else { Because::Found("the first line".to_owned()) };
        return Ok((with(FileKind::Jsonl, Column::Name(words), Column::Name(tags)), because));
    }
    if let Some((text, label)) = told {
        let [text, label] = [text, label].map(|number| number.parse().map(Column::Number));
        let numbers = text.and_then(|text| label.map(|label| (text, label)));
        let (text, label) = numbers.map_err(|_| {
            ask("columns of words and tags have numbers", "--text and --label give them, counted from 1")
        })?;
        return Ok((with(FileKind::Conll, text, label), Because::Told));
    }
    let has_tabs = text.contains('\t');
    let cells =
        |line: &str| line.split(|c: char| if has_tabs { c == '\t' } else { c.is_whitespace() }).count();
    let widest = text.lines().take(100).map(cells).max().unwrap_or(1);
    let numbered = text.lines().filter(|line| line.starts_with("1\t")).count() > 0 && widest > 2;
    let words = if numbered { 2 } else { 1 };
    let fits = |tags: &usize| {
        let format = with(FileKind::Conll, Column::Number(words), Column::Number(*tags));
        let examples = labelled::read(path, &format, &mut BadRows::default()).unwrap_or_default();
        let is_known = |tag: &str| labels.iter().any(|label| label == tag) || number(labels.len(), tag);
        !examples.is_empty() && examples.iter().flat_map(Example::tags).all(is_known)
    };
    let (tags, because) = match (words + 1..=widest).rev().find(fits) {
        Some(tags) => (tags, Because::Found("the model's tags in the last column that has them".to_owned())),
        None if widest > words => (widest, Because::Assumed("the last column".to_owned())),
        None => {
            let what =
                format!("`{}` has one column, but a word and a tag are needed in each line", path.display());
            return Err(ask(what, "name another file by --test FILE"));
        }
    };
    Ok((with(FileKind::Conll, Column::Number(words), Column::Number(tags)), because))
}
