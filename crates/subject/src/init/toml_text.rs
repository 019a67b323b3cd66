//! TOML with a comment on each entry.
use std::path::Path;

use corpus::labelled::{Column, RowKind};
use toml::Value;

use super::files::DataFile;
use super::model::InitialModel;

/// The text of a setup that grows entry by entry.
#[derive(Debug)]
pub(super) struct TomlText {
    lines: Vec<String>,
    assumed: Vec<String>,
}

/// Origin of an entry.
#[derive(Debug, Clone)]
pub(super) enum Because {
    /// Read from a file.
    Found(String),
    /// A guess, which the reader should check.
    Assumed(String),
    /// Given on the command line.
    Told,
}

impl TomlText {
    /// Begins with the command that asks for the setup.
    pub(super) fn new(command: &str) -> Self {
        let intro = format!(
            "# Written by `{command}`. Comments say what was found in files, and what was assumed: check that."
        );
        Self { lines: vec![intro], assumed: Vec::new() }
    }

    /// Adds the task, a description and the checkpoint.
    pub(super) fn model(&mut self, task: &str, model: &InitialModel, test: &DataFile) {
        self.entry("task", task, Because::Found(format!("config.json: {}", model.class())));
        self.entry("description", format!("{} on {}", model.title(), test.name()), Because::Told);
        self.section("checkpoint");
        self.entry("from", model.from.as_str(), Because::Told);
    }

    /// Begins a section.
    pub(super) fn section(&mut self, name: &str) {
        self.lines.extend([String::new(), format!("[{name}]")]);
    }

    /// Adds an entry.
    pub(super) fn entry(&mut self, key: &str, value: impl Into<Value>, because: Because) {
        self.raw(key, &value.into().to_string(), because);
    }

    /// Adds an entry whose value is TOML already.
    pub(super) fn raw(&mut self, key: &str, value: &str, because: Because) {
        let comment = match because {
            Because::Found(what) => format!("   # found: {what}"),
            Because::Assumed(what) => {
                self.assumed.push(format!("{key} = {value}: {what}"));
                format!("   # assumed: {what}")
            }
            Because::Told => String::new(),
        };
        self.lines.push(format!("{key} = {value}{comment}"));
    }

    /// Adds the split that heads are ranked on where there is no training set.
    pub(super) fn estimate_on_test(&mut self) {
        let why = "no training set: heads are ranked on the test set, which flatters the ranking";
        self.raw("estimate", "\"test\"", Because::Assumed(why.to_owned()));
    }

    /// The text, and what was assumed.
    pub(super) fn finish(self) -> (String, Vec<String>) {
        (self.lines.join("\n") + "\n", self.assumed)
    }
}

/// A list of texts.
pub(super) fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", quoted.join(", "))
}

/// A text as TOML writes it.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A column as TOML writes it.
pub(super) fn column(column: &Column) -> String {
    match column {
        Column::Name(name) => quoted(name),
        Column::Number(number) => number.to_string(),
    }
}

/// A kind of rows as TOML writes it.
pub(super) fn kind(kind: RowKind) -> String {
    serde_json::json!(kind).to_string()
}

/// A path as TOML writes it.
pub(super) fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}
