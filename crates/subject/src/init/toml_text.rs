//! TOML with a comment on each entry.
use std::path::Path;

use corpus::labelled::{Column, RowKind};
use toml::Value;

use super::files::DataFile;
use super::model::InitialModel;

/// A setup file that is written entry by entry.
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
    /// Assumed; the reader should check it.
    Assumed(String),
    /// Given on the command line.
    Told,
}

impl TomlText {
    /// Writes the first line, which names the command.
    pub(super) fn new(command: &str) -> Self {
        let intro = format!(
            "# Written by `{command}`. Comments state what was found in files and what was assumed: check the assumptions."
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

    pub(super) fn section(&mut self, name: &str) {
        self.lines.extend([String::new(), format!("[{name}]")]);
    }

    pub(super) fn entry(&mut self, key: &str, value: impl Into<Value>, because: Because) {
        self.raw(key, &value.into().to_string(), because);
    }

    /// Adds an entry whose value is given in TOML.
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

    /// Sets the test split as the one on which heads are ranked, because the training set is missing.
    pub(super) fn estimate_on_test(&mut self) {
        let why = "no training set: heads are ranked on the test set, which flatters the ranking";
        self.raw("estimate", "\"test\"", Because::Assumed(why.to_owned()));
    }

    pub(super) fn finish(self) -> (String, Vec<String>) {
        (self.lines.join("\n") + "\n", self.assumed)
    }
}

/// Returns a list of strings in TOML.
pub(super) fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", quoted.join(", "))
}

/// Returns a string in TOML.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns a column in TOML.
pub(super) fn column(column: &Column) -> String {
    match column {
        Column::Name(name) => quoted(name),
        Column::Number(number) => number.to_string(),
    }
}

/// Returns a row format in TOML.
pub(super) fn kind(kind: RowKind) -> String {
    serde_json::json!(kind).to_string()
}

/// Returns a path in TOML.
pub(super) fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}
