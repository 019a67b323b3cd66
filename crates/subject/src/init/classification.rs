//! Setups of classifiers: the columns of text and class, and the order of the classes.
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;

use corpus::images;
use corpus::labelled::Column;
use corpus::tables::{self, Table, TableColumn};

use super::files::{DataFile, Splits, several};
use super::model::{Classes, InitialModel};
use super::toml_text::{Because, TomlText, column, kind, list, path, quoted};
use super::{Known, ask, roles};
use crate::error::Error;

/// Labels of rows without an answer in benchmarks.
const NO_LABELS: [&str; 2] = ["-", "-1"];

/// Default metric for classes, with a remark on alternatives.
const OF_CLASSES: (&str, &str) = ("accuracy", "f1 and matthews are alternatives");

/// Maximum number of distinct values in a class column that has no known name.
const MAX_CLASSES: usize = 200;

/// Writes the setup of a classifier; returns the classes if their order was assumed.
pub(super) fn describe(
    toml: &mut TomlText,
    model: &InitialModel,
    classes: &Classes,
    known: &Known,
    mut splits: Splits,
) -> Result<Option<Vec<String>>, Error> {
    if holds_images(&one(splits.test())?.path) {
        return of_images(toml, model, classes, known, &splits);
    }
    let mut table = read(one(splits.test())?, known)?;
    if is_unlabelled(&table, classes, known) && splits.files.contains_key("dev") {
        splits.dev_becomes_test("the test set has no classes: results are for the development set");
        table = read(one(splits.test())?, known)?;
    }
    let file = one(splits.test())?;
    let columns = Columns::find(&table, &file.path, classes, known)?;
    let of_training = match (classes, splits.files.get("train")) {
        (Classes::OfData, Some(files)) => Some(read(one(files)?, known)?),
        _ => None,
    };
    let of_training = of_training.as_ref().and_then(|table| roles::named(table, &columns.label.name()));
    let label = of_training.unwrap_or(columns.label);
    let skipped = skipped(&label.values(), classes);
    let values: BTreeSet<&str> =
        label.values().into_iter().filter(|value| !skipped.contains(value)).collect();
    let order = Order::find(classes, &values, known, label, &file.path)?;

    let because = match skipped[..] {
        [] => columns.because.clone(),
        _ => Because::Assumed(format!("rows with the label {} have no answer", skipped.join(" or "))),
    };
    let format = Some((columns.format(&table, &skipped), because));
    let metrics = match classes {
        Classes::Value => ("pearson", "spearman is the alternative"),
        _ => OF_CLASSES,
    };
    write(toml, (model, classes, file), (order, format), metrics, &splits)
}

/// Writes the setup of an image classifier, whose folders are named after the classes.
fn of_images(
    toml: &mut TomlText,
    model: &InitialModel,
    classes: &Classes,
    known: &Known,
    splits: &Splits,
) -> Result<Option<Vec<String>>, Error> {
    let file = one(splits.test())?;
    let of_classes = splits.files.get("train").filter(|_| *classes == Classes::OfData);
    let examples = images::read_folder(&of_classes.map_or(Ok(file), |files| one(files))?.path)?;
    let cells = examples.into_iter().map(|example| example.label).collect();
    let folders = TableColumn { column: Column::Name("folders".to_owned()), cells };
    let order = Order::find(classes, &folders.values(), known, &folders, &file.path)?;
    write(toml, (model, classes, file), (order, None), OF_CLASSES, splits)
}

/// Writes the entries; returns the classes if their order was assumed.
fn write(
    toml: &mut TomlText,
    (model, classes, file): (&InitialModel, &Classes, &DataFile),
    (order, format): (Option<Order>, Option<(String, Because)>),
    metrics: (&str, &str),
    splits: &Splits,
) -> Result<Option<Vec<String>>, Error> {
    toml.model("classification", model, file);
    toml.section("data");
    if let Some(order) = &order {
        order.write(toml, classes);
    }
    if let Some((format, because)) = format {
        toml.raw("format", &format, because);
    }
    finish(toml, metrics, splits)?;
    if *classes == Classes::OfData {
        fine_tuning(toml, splits)?;
    }
    Ok(order.filter(|order| order.is_assumed).map(|order| order.labels))
}

/// Writes the splits and an assumed metric, with a remark on alternatives.
pub(super) fn finish(
    toml: &mut TomlText,
    (metric, others): (&str, &str),
    splits: &Splits,
) -> Result<(), Error> {
    if !splits.has_train() {
        toml.estimate_on_test();
    }
    toml.section("data.splits");
    for (split, files) in &splits.files {
        let file = one(files)?;
        let shown = path(&file.shown);
        let source = if holds_images(&file.path) { format!("{{ images = {shown} }}") } else { shown };
        toml.raw(split, &source, splits.because(split));
    }
    toml.section("score");
    toml.entry("metric", metric, Because::Assumed(others.to_owned()));
    Ok(())
}

/// Returns the only file of a split.
pub(super) fn one(files: &[DataFile]) -> Result<&DataFile, Error> {
    let [file] = files else { return Err(several(files, "name each with --test, --train or --dev")) };
    Ok(file)
}

/// Returns true for a folder that is not a table.
fn holds_images(path: &Path) -> bool {
    path.is_dir() && tables::kind_of(path).is_none()
}

fn read(file: &DataFile, known: &Known) -> Result<Table, Error> {
    let rows = tables::kind_of(&file.path).ok_or_else(|| not_a_table(&file.path))?;
    known.table(&file.path, rows)
}

/// Returns true if a table has no classes, as in test sets of benchmarks.
fn is_unlabelled(table: &Table, classes: &Classes, known: &Known) -> bool {
    let named = known.label.as_ref().and_then(|name| roles::named(table, name));
    let label = named.or_else(|| label(table, classes));
    label.is_none_or(|label| label.values().iter().all(|value| NO_LABELS.contains(value)))
}

/// Returns values that mean "no answer": `-`, and -1 if the model would otherwise lack a class.
fn skipped(values: &BTreeSet<&str>, classes: &Classes) -> Vec<&'static str> {
    let is_too_many = classes.count().is_some_and(|count| values.len() > count);
    let are_numbers = *classes == Classes::Value;
    let is_none = |value: &&'static str| {
        values.contains(value) && !classes.names(value) && !are_numbers && (*value == "-" || is_too_many)
    };
    NO_LABELS.into_iter().filter(is_none).collect()
}

/// Writes the recipe of Devlin et al. (2019), Appendix A.3.
fn fine_tuning(toml: &mut TomlText, splits: &Splits) -> Result<(), Error> {
    for split in ["train", "dev"] {
        if !splits.files.contains_key(split) {
            return Err(ask(
                format!("--fine-tune needs a {split} set"),
                &format!("name it with --{split} FILE"),
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

fn not_a_table(file: &Path) -> Error {
    let allowed =
        "a classifier needs .csv, .tsv, .jsonl, .parquet or .arrow with a text and a class in each row";
    Error::Invalid(format!("`{}` is not a supported table: {allowed}", file.display()))
}

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
        let (text, pair, because) = Self::texts(table, file, label, known)?;
        let is_usual =
            known.label.is_some() || roles::LABELS.iter().any(|name| label.name().eq_ignore_ascii_case(name));
        let because = match because {
            Because::Found(_) if !is_usual => {
                Because::Assumed(format!("column {} has the classes, by its values", label.name()))
            }
            because => because,
        };
        Ok(Self { text, pair, label, because })
    }

    fn texts(
        table: &'a Table,
        file: &Path,
        label: &TableColumn,
        known: &Known,
    ) -> Result<(&'a TableColumn, Option<&'a TableColumn>, Because), Error> {
        let header = || Because::Found("the header".to_owned());
        if let (Some(text), pair) = (&known.text, &known.pair) {
            let pair = pair.as_ref().map(|name| roles::told(table, file, name)).transpose()?;
            return Ok((roles::told(table, file, text)?, pair, Because::Told));
        }
        if known.pair.is_some() {
            return Err(ask("--pair names the second text", "name the first with --text COLUMN"));
        }
        if let Some([text, pair]) = roles::pair_by_name(table, roles::PAIRS) {
            return Ok((text, Some(pair), header()));
        }
        if let Some(text) = roles::by_name(table, roles::TEXTS).filter(|&text| text != label) {
            return Ok((text, None, header()));
        }
        match roles::texts(table, &[label])[..] {
            [text] => Ok((text, None, Because::Found("the only column of texts".to_owned()))),
            [text, pair] => {
                let why = "the two columns of texts are a pair".to_owned();
                Ok((text, Some(pair), Because::Assumed(why)))
            }
            _ => {
                let what = "it is not clear which is the text";
                Err(roles::which(table, file, what, "--text COLUMN names it, --pair COLUMN a second one"))
            }
        }
    }

    /// Returns `data.format` in TOML.
    fn format(&self, table: &Table, skipped: &[&str]) -> String {
        let mut entries = vec![format!("kind = {}", kind(table.kind))];
        if !table.has_header {
            entries.push("header = false".to_owned());
        }
        entries.push(format!("text = {}", column(&self.text.column)));
        entries.extend(self.pair.map(|pair| format!("pair = {}", column(&pair.column))));
        entries.push(format!("label = {}", column(&self.label.column)));
        if !skipped.is_empty() {
            entries.push(format!("skip_labels = [\"{}\"]", skipped.join("\", \"")));
        }
        format!("{{ {} }}", entries.join(", "))
    }
}

/// Returns the column of classes, found by its name or by the model's classes in it.
fn label<'a>(table: &'a Table, classes: &Classes) -> Option<&'a TableColumn> {
    let fits = |column: &&TableColumn| {
        let values = column.values();
        let values = || values.iter().filter(|value| !NO_LABELS.contains(value));
        values().count() > 0
            && match classes {
                Classes::Named(names) => {
                    values().all(|value| place(names, value).is_some() || number(names.len(), value))
                }
                Classes::Numbered(count) => values().count() == *count && column.words() < 4.0,
                Classes::Value => values().all(|value| value.parse::<f64>().is_ok()),
                Classes::OfData => {
                    values().count() <= MAX_CLASSES && values().count() * 2 <= column.cells.len()
                }
            }
    };
    let named = || roles::LABELS.iter().filter_map(|name| roles::named(table, name));
    let is_short = |column: &&TableColumn| column.values().len() <= MAX_CLASSES;
    let by_content = || table.columns.iter().rev().find(fits);
    named().find(fits).or_else(|| named().find(is_short)).or_else(by_content).or_else(|| named().next())
}

/// Returns the index of a class name, ignoring case.
fn place(names: &[String], value: &str) -> Option<usize> {
    names.iter().position(|name| name.eq_ignore_ascii_case(value))
}

/// Returns true if a value is a class number below `count`.
pub(super) fn number(count: usize, value: &str) -> bool {
    value.parse().is_ok_and(|number: usize| number < count)
}

impl Classes {
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
    /// Writes the model's classes and their names in the data.
    fn write(&self, toml: &mut TomlText, classes: &Classes) {
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

    /// Returns `None` if the outputs have no classes.
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
            let because = known.order_by_score.clone().map_or(Because::Told, Because::Assumed);
            return Ok(Some(Self { labels: labels.clone(), because, is_assumed: false }));
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
                let why = "alphabetical order, since config.json names no classes or different ones";
                assumed(values.iter().map(|value| (*value).to_owned()).collect(), why.to_owned())
            }
        }))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// -1 is a class of a model with three classes, and a missing answer for a model with two.
    #[test]
    fn minus_one_is_no_answer_only_if_there_would_be_too_many_classes() {
        let names = |count: usize| Classes::Named((0..count).map(|class| format!("class {class}")).collect());
        let of =
            |values: &[&'static str], classes: &Classes| skipped(&values.iter().copied().collect(), classes);
        assert!(of(&["-1", "0", "1"], &names(3)).is_empty());
        assert_eq!(of(&["-1", "0", "1"], &names(2)), ["-1"]);
        assert_eq!(of(&["-1", "0", "1"], &Classes::Numbered(2)), ["-1"]);
        assert_eq!(of(&["-", "class 0", "class 1"], &names(2)), ["-"]);
        assert!(of(&["-1", "0.5"], &Classes::Value).is_empty());
    }
}
