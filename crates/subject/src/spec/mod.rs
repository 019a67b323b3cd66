//! `experiments/<subject>.toml`: where a subject's model and data come from, how it is trained and scored.
mod classification;
mod dynamics;
mod encoder;
mod translation;

use std::cell::OnceCell;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use training::Machine;

use crate::Error;
use crate::checkpoint::Checkpoint;

pub(crate) use classification::{
    ClassificationData, ClassificationSpec, Holdout, InferenceSpec, MetricName, SplitFile,
};
pub(crate) use dynamics::DynamicsSpec;
pub(crate) use encoder::{EncoderSpec, FineTuningSpec, TextTokenizerSpec};
pub(crate) use translation::{
    DataSpec, DecodingSpec, FilePair, GrammarSpec, ModelSpec, TrainingSpec, TranslationSpec,
};

/// A subject as its TOML file describes it.
#[derive(Debug, Clone)]
pub(crate) enum Spec {
    /// A translator.
    Translation(Box<TranslationSpec>),
    /// A classifier of texts or of pairs of texts.
    Classification(Box<ClassificationSpec>),
}

/// What a subject's model does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Task {
    /// Text to text, by an encoder and a decoder.
    #[default]
    Translation,
    /// Text, or two texts, to one of several classes.
    Classification,
}

/// The entry that says how the others are to be read.
#[derive(Deserialize)]
struct Kind {
    task: Option<Task>,
}

/// A model that is there already, to be used or to be fine-tuned.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointSpec {
    /// A Hugging Face folder, relative to the data folder, or `hub:owner/name[@revision]`.
    pub from: String,
    /// Name for `just fetch`, if the folder can be fetched.
    pub fetch: Option<String>,
    /// Found once in a run: a branch of a hub may move between two questions.
    #[serde(skip)]
    found: OnceCell<Checkpoint>,
}

impl CheckpointSpec {
    /// The folder of the model; brings it from the hub if it is there.
    ///
    /// # Errors
    /// If there is no such folder, or the hub does not answer or has no such model.
    pub(crate) fn find(&self, machine: &Machine) -> Result<&Checkpoint, Error> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let found = Checkpoint::find(self, machine)?;
        Ok(self.found.get_or_init(|| found))
    }
}

impl Spec {
    /// Reads and validates a TOML file.
    ///
    /// # Errors
    /// If the file is missing, no TOML, has unknown or missing entries, or values that make no sense.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let spec = match parse::<Kind>(path, &text)?.task {
            None => Self::Translation(Box::new(parse(path, &text).map_err(without_task)?)),
            Some(Task::Translation) => Self::Translation(Box::new(parse(path, &text)?)),
            Some(Task::Classification) => Self::Classification(Box::new(parse(path, &text)?)),
        };
        let valid = match &spec {
            Self::Translation(spec) => spec.validate(),
            Self::Classification(spec) => spec.validate(),
        };
        valid.map_err(|fault| Error::Spec { path: path.to_owned(), fault })?;
        Ok(spec)
    }
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| Error::Spec { path: path.to_owned(), fault: one_line(text, &error) })
}

/// Says what a file without `task` was taken for.
fn without_task(error: Error) -> Error {
    match error {
        Error::Spec { path, fault } => {
            let fault = format!("{fault}; without `task = \"classification\"` it describes a translator");
            Error::Spec { path, fault }
        }
        other => other,
    }
}

/// Names of splits, unless a subject says otherwise.
fn train() -> String {
    "train".to_owned()
}

fn dev() -> String {
    "dev".to_owned()
}

fn test() -> String {
    "test".to_owned()
}

/// Names of splits become parts of the names of result files.
fn check_split_names<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    match names.into_iter().find(|name| !corpus::names::is_file_name(name)) {
        Some(name) => Err(format!("a split cannot be called {name:?}: its name becomes part of file names")),
        None => Ok(()),
    }
}

/// A TOML error on one line: what, and in which line of the file.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    match error.span() {
        Some(span) => {
            let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
            format!("line {line}: {message}")
        }
        None => message,
    }
}

/// The first rule that does not hold.
fn check(rules: &[(&str, bool)]) -> Result<(), String> {
    match rules.iter().find(|(_, holds)| !holds) {
        Some((fault, _)) => Err((*fault).to_owned()),
        None => Ok(()),
    }
}

/// Data comes from files or from the demo grammar, and a model is there already or is made.
fn check_sources([grammar, splits]: [bool; 2], [checkpoint, model]: [bool; 2]) -> Result<(), String> {
    check(&[
        ("[data] has both a grammar and splits: choose one", !(grammar && splits)),
        ("[data] needs a grammar or splits", grammar || splits),
        (
            "both [checkpoint] and [model] are given: a model is there already, or it is made",
            !(checkpoint && model),
        ),
        ("[checkpoint] or [model] is missing: a model is there already, or it is made", checkpoint || model),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

    /// What is said of the file of a subject in which `old` is `new`.
    fn refusal(subject: &str, old: &str, new: &str) -> String {
        let path = Path::new(EXPERIMENTS).join(subject);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(old), "{subject} has no {old}");
        let text = text.replacen(old, new, 1);
        match parse::<Kind>(&path, &text).unwrap().task {
            Some(Task::Classification) => parse::<ClassificationSpec>(&path, &text).unwrap().validate(),
            _ => parse::<TranslationSpec>(&path, &text).unwrap().validate(),
        }
        .unwrap_err()
    }

    #[test]
    fn splits_whose_names_lead_elsewhere_are_refused() {
        let fault =
            |name: &str| format!("a split cannot be called {name}: its name becomes part of file names");
        let renamed = |name: &str| refusal("multi30k-en-fr.toml", "ntrex = ", &format!("{name} = "));
        assert_eq!(renamed("'../../evil'"), fault(r#""../../evil""#));
        assert_eq!(renamed("'/etc/x'"), fault(r#""/etc/x""#));
        assert_eq!(renamed(r#""\u001b[0m""#), fault(r#""\u{1b}[0m""#));
        let holdout =
            refusal("minilm-mnli.toml", r#"holdout = { name = "dev""#, r#"holdout = { name = "../dev""#);
        assert_eq!(holdout, fault(r#""../dev""#));
    }
}
