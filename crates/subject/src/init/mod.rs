//! New setups for models and data. Entries are found in the files, or assumed and marked as assumptions.
mod classification;
mod files;
mod language;
mod model;
mod roles;
mod tags;
mod toml_text;
mod translation;

use std::path::{Path, PathBuf};

use corpus::labelled::RowKind;
use corpus::tables::{self, Header, Table};

use training::Machine;

use crate::error::Error;
pub use files::FileArgs;
use files::Splits;
pub use model::InitialModel;
use model::Task;
use toml_text::TomlText;

/// Options from the command line.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Files and folders of data, with their splits if given.
    pub files: FileArgs,
    /// Column of the text, or of the first of two.
    pub text: Option<String>,
    /// Column of the second of two texts.
    pub pair: Option<String>,
    /// Column of the class.
    pub label: Option<String>,
    /// Classes in the order of the model's outputs, as the data spell them.
    pub labels: Option<Vec<String>>,
    /// Reason for the order of the classes, if it was chosen by the score.
    pub order_by_score: Option<String>,
    /// Column of the source, or ending of its line-parallel files.
    pub source: Option<String>,
    /// Column of the target, or ending of its line-parallel files.
    pub target: Option<String>,
    /// Text that each source begins with.
    pub prefix: Option<String>,
    /// Codes of the languages of source and target, as the tokenizer writes them.
    pub languages: Option<[String; 2]>,
    /// Fine-tune a model without a classification head.
    pub fine_tune: bool,
}

impl Known {
    /// Assumes no header if a column is given by number.
    fn header(&self) -> Header {
        let columns = [&self.text, &self.pair, &self.label, &self.source, &self.target];
        let is_number = |column: &String| column.parse::<usize>().is_ok();
        if columns.into_iter().flatten().any(is_number) { Header::Absent } else { Header::Likely }
    }

    fn table(&self, path: &Path, kind: RowKind) -> Result<Table, Error> {
        Ok(tables::read(path, kind, self.header())?)
    }
}

/// A new setup file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// TOML with a comment on each entry.
    pub text: String,
    /// Assumptions, one line each.
    pub assumed: Vec<String>,
    /// Classes whose order was assumed.
    pub unordered: Option<Vec<String>>,
}

/// Writes the setup for a model and its data.
///
/// - `command`: the command that was run, for the first line
///
/// # Errors
/// If something can be neither found nor assumed; the message names the option that sets it.
pub fn describe(
    command: &str,
    model: &InitialModel,
    known: &Known,
    machine: &Machine,
) -> Result<Draft, Error> {
    let splits = Splits::find(&known.files, machine)?;
    let mut toml = TomlText::new(command);
    let mut unordered = None;
    match model.task(known.fine_tune)? {
        Task::Classification(classes) => {
            unordered = classification::describe(&mut toml, model, &classes, known, splits)?;
        }
        Task::Tagging(classes) => tags::describe(&mut toml, model, &classes, known, &splits)?,
        Task::LanguageModelling => language::describe(&mut toml, model, known, &splits)?,
        Task::Translation => translation::describe(&mut toml, model, known, &splits)?,
    }
    let (text, assumed) = toml.finish();
    Ok(Draft { text, assumed, unordered })
}

/// Returns the error for missing information: what is missing, and the option that gives it.
fn ask(what: impl std::fmt::Display, option: &str) -> Error {
    Error::Invalid(format!("{what}: {option}"))
}

/// Returns a path for the setup, relative to the data folder if inside.
fn shown(path: &Path, machine: &Machine) -> Result<PathBuf, Error> {
    let whole = path.canonicalize().map_err(|source| Error::read(path, source))?;
    let data = machine.data.canonicalize().unwrap_or_else(|_| machine.data.clone());
    Ok(whole.strip_prefix(&data).map_or(whole.clone(), ToOwned::to_owned))
}
