//! What descriptions of all tasks, `experiments/<subject>.toml`, have in common.
use std::path::{Path, PathBuf};

use corpus::splits::check;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// The entries of a TOML file.
///
/// # Errors
/// If it is no TOML, or has unknown or missing entries: what, and in which line.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| Error::Spec { path: path.to_owned(), fault: one_line(text, &error) })
}

/// Refuses a file that is missing and can be fetched; reading others says what is wrong with them.
pub(crate) fn check_fetched(paths: &[PathBuf], fetch: Option<&String>) -> Result<(), Error> {
    match (paths.iter().find(|path| !path.exists()), fetch) {
        (Some(path), Some(fetch)) => Err(Error::NotFetched { path: path.clone(), fetch: fetch.clone() }),
        _ => Ok(()),
    }
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
