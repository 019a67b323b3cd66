//! Classifiers: columns of text and class, and the order of classes.
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;

use corpus::tables::{self, Table, TableColumn};

use super::files::{DataFile, Splits};
use super::model::{Classes, InitialModel};
use super::toml_text::{Because, TomlText, column, kind, path, quoted};
use super::{Known, ask, roles};
use crate::error::Error;

/// Labels of rows without an answer, as benchmarks write them.
const NO_LABELS: [&str; 2] = ["-", "-1"];

/// Distinct values up to which a column without a known name may be one of classes.
const MOST_CLASSES: usize = 200;

/// Describes a classifier; returns the classes if their order was assumed.
pub(super) fn describe(
    toml: &mut TomlText,
    model: &InitialModel,
    classes: &Classes,
    known: &Known,
    splits: &Splits,
) -> Result<Option<Vec<String>>, Error> {
    let [file] = splits.test() else { return Err(several(splits.test())) };
    let Some(rows) = tables::kind_of(&file.path) else { return Err(not_a_table(&file.path)) };
    let table = tables::read(&file.path, rows)?;
    let columns = Columns::find(&table, &file.path, classes, known)?;
    let values: BTreeSet<&str> =
        columns.label.values().into_iter().filter(|value| !NO_LABELS.contains(value)).collect();
    let order = Order::find(classes, &values, known, columns.label, &file.path)?;

    toml.raw("task", "\"classification\"", Because::Found(format!("config.json: {}", model.class())));
    toml.entry("description", format!("{} on {}", model.title(), file.name()), Because::Told);
    toml.section("checkpoint");
    toml.entry("from", model.from.as_str(), Because::Told);
    toml.section("data");
    if let Some(order) = &order {
        order.write(toml, classes);
    }
    toml.raw("format", &columns.format(&table), columns.because.clone());
    if !splits.has_train() {
        toml.estimate_on_test();
    }
    toml.section("data.splits");
    for (split, files) in &splits.files {
        let [file] = &files[..] else { return Err(several(files)) };
        toml.raw(split, &path(&file.shown), Because::Told);
    }
    toml.section("score");
    let metric = if *classes == Classes::Value { "pearson" } else { "accuracy" };
    toml.entry("metric", metric, Because::Assumed("usual; f1 and matthews are others".to_owned()));
    if *classes == Classes::OfData {
        fine_tuning(toml, splits)?;
    }
    Ok(order.filter(|order| order.is_assumed).map(|order| order.labels))
}

/// The recipe of Devlin et al. (2019), Appendix A.3.
fn fine_tuning(toml: &mut TomlText, splits: &Splits) -> Result<(), Error> {
    for split in ["train", "dev"] {
        if !splits.files.contains_key(split) {
            return Err(ask(
                format!("--fine-tune needs a {split} set"),
                &format!("name it by --{split} FILE"),
            ));
        }
    }
    toml.section("training");
    let usual = || Because::Assumed("usual for models like BERT".to_owned());
    toml.entry("seed", 1, Because::Told);
    toml.entry("epochs", 3, usual());
    toml.entry("batch_size", 32, usual());
    toml.raw("learning_rate", "5e-5", usual());
    toml.entry("keep", "best", Because::Told);
    Ok(())
}

fn several(files: &[DataFile]) -> Error {
    let names: Vec<String> = files.iter().map(|file| format!("`{}`", file.path.display())).collect();
    ask(
        format!("{} seem to be one split, which must be one file", names.join(", ")),
        "name each by --test, --train, --dev",
    )
}

fn not_a_table(file: &Path) -> Error {
    let file = file.display();
    let parquet = "python -c \"import pandas; pandas.read_parquet('IN').to_csv('OUT.csv', index=False)\"";
    let remedy = match file.to_string().ends_with(".parquet") {
        true => format!("convert it by {parquet}"),
        false => "a classifier needs .csv, .tsv or .jsonl with a text and a class in each row".to_owned(),
    };
    Error::Invalid(format!("`{file}` is no table that is read here: {remedy}"))
}

/// The columns of a table that a classifier reads.
struct Columns<'a> {
    text: &'a TableColumn,
    pair: Option<&'a TableColumn>,
    label: &'a TableColumn,
    because: Because,
}

impl<'a> Columns<'a> {
    fn find(table: &'a Table, file: &Path, classes: &Classes, known: &Known) -> Result<Self, Error> {
        if table.columns.len() < 2 {
            return Err(roles::which(
                table,
                file,
                "a classifier needs a text and a class",
                "add the other column",
            ));
        }
        let label = match &known.label {
            Some(name) => roles::told(table, file, name)?,
            None => label(table, classes).ok_or_else(|| {
                let what = format!("none of them has the classes of the model{}", classes.listed());
                roles::which(table, file, &what, "--label COLUMN names it")
            })?,
        };
        let found =
            |[text, pair]: [&'a TableColumn; 2]| (text, Some(pair), Because::Found("the header".to_owned()));
        let (text, pair, because) = match (&known.text, &known.pair) {
            (Some(text), pair) => {
                let pair = pair.as_ref().map(|name| roles::told(table, file, name)).transpose()?;
                (roles::told(table, file, text)?, pair, Because::Told)
            }
            (None, Some(_)) => {
                return Err(ask("--pair names the second text", "name the first by --text COLUMN"));
            }
            (None, None) => {
                match (roles::pair_by_name(table, roles::PAIRS), roles::by_name(table, roles::TEXTS)) {
                    (Some(pair), _) => found(pair),
                    (None, Some(text)) if text != label => {
                        (text, None, Because::Found("the header".to_owned()))
                    }
                    _ => match roles::texts(table, &[label])[..] {
                        [text] => (text, None, Because::Found("the only column of texts".to_owned())),
                        [text, pair] => (
                            text,
                            Some(pair),
                            Because::Assumed("the two columns of texts are a pair".to_owned()),
                        ),
                        _ => {
                            let what = "it is not clear which is the text";
                            return Err(roles::which(
                                table,
                                file,
                                what,
                                "--text COLUMN names it, --pair a second one",
                            ));
                        }
                    },
                }
            }
        };
        Ok(Self { text, pair, label, because })
    }

    /// `data.format`, as TOML writes it.
    fn format(&self, table: &Table) -> String {
        let mut entries = vec![format!("kind = {}", kind(table.kind))];
        if !table.has_header {
            entries.push("header = false".to_owned());
        }
        entries.push(format!("text = {}", column(&self.text.column)));
        entries.extend(self.pair.map(|pair| format!("pair = {}", column(&pair.column))));
        entries.push(format!("label = {}", column(&self.label.column)));
        let skipped: Vec<&str> =
            NO_LABELS.into_iter().filter(|label| self.label.values().contains(label)).collect();
        if !skipped.is_empty() {
            entries.push(format!("skip_labels = [\"{}\"]", skipped.join("\", \"")));
        }
        format!("{{ {} }}", entries.join(", "))
    }
}

/// The column of classes: by its name, or by the model's classes in it.
fn label<'a>(table: &'a Table, classes: &Classes) -> Option<&'a TableColumn> {
    let fits = |column: &&TableColumn| {
        let values = column.values();
        let values = || values.iter().filter(|value| !NO_LABELS.contains(value));
        match classes {
            Classes::Named(names) => {
                values().all(|value| place(names, value).is_some() || number(names.len(), value))
            }
            Classes::Numbered(count) => values().count() == *count && column.words() < 4.0,
            Classes::Value => values().all(|value| value.parse::<f64>().is_ok()),
            Classes::OfData => values().count() <= MOST_CLASSES && values().count() * 2 <= column.cells.len(),
        }
    };
    let named = || roles::LABELS.iter().filter_map(|name| roles::named(table, name));
    let is_short = |column: &&TableColumn| column.values().len() <= MOST_CLASSES;
    let by_content = || table.columns.iter().rev().find(fits);
    named().find(fits).or_else(|| named().find(is_short)).or_else(by_content).or_else(|| named().next())
}

/// Index of a name among those of the model, whatever its case.
fn place(names: &[String], value: &str) -> Option<usize> {
    names.iter().position(|name| name.eq_ignore_ascii_case(value))
}

/// True if a value is the number of one of so many classes.
fn number(count: usize, value: &str) -> bool {
    value.parse().is_ok_and(|number: usize| number < count)
}

impl Classes {
    /// Returns true if the model has a class of this name, whatever its case.
    fn names(&self, value: &str) -> bool {
        matches!(self, Self::Named(names) if place(names, value).is_some())
    }

    fn count(&self) -> Option<usize> {
        match self {
            Self::Named(names) => Some(names.len()),
            Self::Numbered(count) => Some(*count),
            Self::Value | Self::OfData => None,
        }
    }

    fn listed(&self) -> String {
        match self {
            Self::Named(names) => format!(", {}", crate::error::quoted(&names[..names.len().min(10)])),
            _ => String::new(),
        }
    }
}

/// Classes in the order of the model's outputs.
struct Order {
    labels: Vec<String>,
    because: Because,
    is_assumed: bool,
}

impl Order {
    /// Writes the classes of the model, and what the data call them.
    fn write(&self, toml: &mut TomlText, classes: &Classes) {
        let list = |names: &[String]| {
            let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            format!("[{}]", quoted.join(", "))
        };
        match classes {
            Classes::Named(names) if *names != self.labels => {
                toml.raw("labels", &list(names), Because::Found("id2label of config.json".to_owned()));
                let pairs = self.labels.iter().zip(names).filter(|(label, name)| label != name);
                let pairs: Vec<String> =
                    pairs.map(|(label, name)| format!("{} = {}", quoted(label), quoted(name))).collect();
                toml.raw("rename", &format!("{{ {} }}", pairs.join(", ")), self.because.clone());
            }
            _ => toml.raw("labels", &list(&self.labels), self.because.clone()),
        }
    }

    /// `None` if the outputs have no classes.
    fn find(
        classes: &Classes,
        values: &BTreeSet<&str>,
        known: &Known,
        label: &TableColumn,
        file: &Path,
    ) -> Result<Option<Self>, Error> {
        if *classes == Classes::Value {
            return Ok(None);
        }
        let found = |labels: Vec<String>, why: &str| Self {
            labels,
            because: Because::Found(why.to_owned()),
            is_assumed: false,
        };
        if let Some(labels) = &known.labels {
            return Ok(Some(Self { labels: labels.clone(), because: Because::Told, is_assumed: false }));
        }
        check_count(classes, values, label, file)?;
        let numbers = |count: usize| (0..count).map(|id| id.to_string()).collect();
        let all_numbers = |count: usize| values.iter().all(|value| number(count, value));
        let assumed = |labels: Vec<String>, why: String| Self {
            labels,
            because: Because::Assumed(why),
            is_assumed: true,
        };
        Ok(Some(match classes {
            Classes::Named(names) if values.iter().all(|value| place(names, value).is_some()) => {
                let spelled = |name: &String| values.iter().find(|value| value.eq_ignore_ascii_case(name));
                let labels =
                    names.iter().map(|name| spelled(name).map_or(name.clone(), |value| (*value).to_owned()));
                found(labels.collect(), "id2label of config.json, in the spelling of the data")
            }
            Classes::Named(names) if all_numbers(names.len()) => {
                let meaning: Vec<String> =
                    names.iter().enumerate().map(|(id, name)| format!("{id} is {name}")).collect();
                assumed(numbers(names.len()), format!("numbers count the outputs: {}", meaning.join(", ")))
            }
            Classes::Numbered(count) if all_numbers(*count) => {
                assumed(numbers(*count), "numbers count the outputs".to_owned())
            }
            Classes::OfData => {
                found(values.iter().map(|value| (*value).to_owned()).collect(), "the classes of the data")
            }
            _ => {
                let why = "alphabetical order, since config.json names other classes, or none";
                assumed(values.iter().map(|value| (*value).to_owned()).collect(), why.to_owned())
            }
        }))
    }
}

/// Refuses values of a column that cannot be the classes of a model.
fn check_count(
    classes: &Classes,
    values: &BTreeSet<&str>,
    label: &TableColumn,
    file: &Path,
) -> Result<(), Error> {
    let (label, file) = (label.name(), file.display());
    if values.is_empty() {
        return Err(ask(
            format!("column `{label}` of `{file}` has no classes"),
            "--label COLUMN names another",
        ));
    }
    let Some(count) = classes.count() else { return Ok(()) };
    let some: Vec<String> = values.iter().take(4).map(|value| (*value).to_owned()).collect();
    let what = format!(
        "column `{label}` of `{file}` has {} different values, such as {}, but the model has {count} classes{}",
        values.len(),
        crate::error::quoted(&some),
        classes.listed()
    );
    let are_known = values.iter().all(|value| number(count, value) || classes.names(value));
    match values.len().cmp(&count) {
        Ordering::Greater => Err(ask(what, "--label COLUMN names the column of the classes")),
        Ordering::Less if !are_known => {
            Err(ask(what, "--labels A,B,… names them in the order of the model's outputs"))
        }
        _ => Ok(()),
    }
}
