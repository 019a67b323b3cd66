//! What an experiment is done to: a model, its data, its loss and its score.
//!
//! A TOML file in `experiments/` describes a subject; [`open`] makes it ready, training its model on first use.
//! Experiments see it through the [`Subject`] trait alone.
pub mod args;
mod data;
mod error;
mod progress;
mod spec;
mod subject;
pub mod training;
mod translation;

use std::collections::BTreeMap;
use std::path::Path;

pub use args::{Machine, MachineArgs, Precision, SharedArgs};
pub use error::Error;
pub use progress::Progress;
pub use spec::Spec;
pub use subject::{Evaluation, Scored, Segments, Subject};
pub use translation::TranslationSubject;

/// Opens a subject by the path of its TOML file or its name, and trains its model if there is none yet.
///
/// Returns its name with it.
///
/// # Errors
/// If there is no such subject, its file or data are at fault, or training fails.
pub fn open(subject: &Path, machine: &Machine, results: &Path) -> Result<(String, Box<dyn Subject>), Error> {
    let (path, name) = args::locate(subject)?;
    let spec = Spec::read(&path)?;
    let training = training::Training { name: &name, path: &path, spec: &spec, machine, results };
    let folder = training.run(false)?;
    let subject = TranslationSubject::load(&name, spec, machine.clone(), &folder)?;
    Ok((name, Box::new(subject)))
}

/// Versions of the libraries that numbers depend on, for signatures.
pub fn libraries() -> BTreeMap<String, String> {
    BTreeMap::from([("libtorch".to_owned(), "2.11.0".to_owned()), ("tch".to_owned(), "0.24.0".to_owned())])
}
