//! Entries and checks that the files of all tasks, `experiments/<subject>.toml`, have in common.
use std::num::NonZeroUsize;
use std::path::PathBuf;

use corpus::splits::check;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// The entries of a TOML file.
///
/// # Errors
/// If it is no TOML, or has unknown or missing entries: what, and in which line.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| one_line(text, &error))
}

/// Refuses a file that is missing and can be fetched; reading others says what is wrong with them.
pub(crate) fn check_fetched(paths: &[PathBuf], fetch: Option<&String>) -> Result<(), Error> {
    match (paths.iter().find(|path| !path.exists()), fetch) {
        (Some(path), Some(fetch)) => {
            let front = durable::front();
            Err(Error::Invalid(format!("`{}` is missing: run `{front} fetch {fetch}`", path.display())))
        }
        _ => Ok(()),
    }
}

/// A split whose file nobody has described.
pub(crate) fn no_format(split: &str) -> Error {
    Error::Invalid(format!("split `{split}` has no format: [data.format] says how its file is to be read"))
}

/// Names of splits, unless a subject says otherwise.
pub(crate) fn train() -> String {
    "train".to_owned()
}

pub(crate) fn dev() -> String {
    "dev".to_owned()
}

pub(crate) fn test() -> String {
    "test".to_owned()
}

pub(crate) fn initializer_range() -> f64 {
    0.02
}

pub(crate) fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

pub(crate) fn clip_norm() -> f64 {
    1.0
}

/// Refuses settings that make no sense, of those that all trainings have: the fault, in words.
///
/// - `rate`: name and value of the greatest learning rate
pub(crate) fn check_training(
    epochs: usize,
    (name, rate): (&str, f64),
    clip_norm: f64,
    weight_decay: f64,
    adam_betas: [f64; 2],
) -> Result<(), String> {
    if rate <= 0.0 || !rate.is_finite() {
        return Err(format!("training.{name} must be above 0 and finite"));
    }
    let is_rate = |beta: &f64| (0.0..1.0).contains(beta);
    check(&[
        ("training.epochs must be from 1 to 10000", (1..=10_000).contains(&epochs)),
        ("training.clip_norm must be above 0", clip_norm > 0.0),
        ("training.weight_decay must be from 0 to 1", (0.0..=1.0).contains(&weight_decay)),
        ("training.adam_betas must be at least 0 and below 1", adam_betas.iter().all(is_rate)),
    ])
}

/// Names of splits become parts of the names of result files.
pub(crate) fn check_split_names<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    match names.into_iter().find(|name| !corpus::names::is_file_name(name)) {
        Some(name) => Err(format!("a split cannot be called {name:?}: its name becomes part of file names")),
        None => Ok(()),
    }
}

/// A TOML error on one line: what, and in which line of the file.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    match error.span() {
        Some(span) => in_line(text, span.start, &message),
        None => message,
    }
}

/// A message with the line of what stands at this byte.
pub(crate) fn in_line(text: &str, start: usize, message: &str) -> String {
    let line = text[..start.min(text.len())].matches('\n').count() + 1;
    format!("line {line}: {message}")
}

/// Data comes from files or from the demo grammar, and a model is there already or is made.
pub(crate) fn check_sources(
    [grammar, splits]: [bool; 2],
    [checkpoint, model]: [bool; 2],
) -> Result<(), String> {
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
