//! What an experiment is done to: a model, its data, its loss and its score.
//!
//! A TOML file in `experiments/` describes a subject; [`Description::open`] makes it ready, training its model on first use.
//! Experiments see it through the [`Subject`] trait alone.
mod args;
mod data;
mod error;
mod progress;
mod spec;
mod subject;
mod training;
mod translation;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use core_masking::{BeamSearch, HeadLayout};
use corpus::parallel::ParallelText;
use training::Training;

pub use args::{Machine, MachineArgs, Precision, SharedArgs};
pub use error::Error;
use spec::Spec;
pub use subject::{Evaluation, Scored, Segments, Subject};
use translation::TranslationSubject;

/// A subject that is read but not yet opened: what can be checked before any long work.
#[derive(Debug)]
pub struct Description {
    name: String,
    path: PathBuf,
    spec: Spec,
}

impl Description {
    /// Reads a subject's TOML file, given as a path or as a name in `experiments/`.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be understood.
    pub fn read(subject: &Path) -> Result<Self, Error> {
        let (path, name) = args::locate(subject)?;
        Ok(Self { spec: Spec::read(&path)?, name, path })
    }

    /// Name of the subject.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The heads that its model has.
    pub fn layout(&self) -> HeadLayout {
        self.spec.layout()
    }

    /// The split to score: `wanted`, or the subject's test split.
    ///
    /// # Errors
    /// If there is no such split; the message lists those that there are.
    pub fn split(&self, wanted: Option<&str>) -> Result<String, Error> {
        let split = wanted.unwrap_or(&self.spec.data.test);
        data::check_split(&self.spec.data, split)?;
        Ok(split.to_owned())
    }

    /// Whether a split is the subject's test split.
    pub fn is_test_split(&self, split: &str) -> bool {
        split == self.spec.data.test
    }

    /// The sentence pairs of a split.
    ///
    /// # Errors
    /// If there is no such split, or its files are missing, torn, of different length or empty.
    pub fn read_split(&self, split: &str, machine: &Machine) -> Result<ParallelText, Error> {
        data::read_split(&self.spec.data, &machine.data, split)
    }

    /// How translations are searched for.
    pub fn search(&self) -> BeamSearch {
        self.spec.decoding.search()
    }

    /// Trains the model unless it is there, and returns its folder; see [`Training::run`].
    ///
    /// # Errors
    /// If data is missing or at fault, or training fails.
    pub fn train(&self, machine: &Machine, results: &Path, overwrite: bool) -> Result<PathBuf, Error> {
        let (name, path, spec) = (&self.name, &self.path, &self.spec);
        Training { name, path, spec, machine, results }.run(overwrite)
    }

    /// Makes the subject ready, training its model on first use.
    ///
    /// # Errors
    /// As for [`train`](Self::train), or if the model's folder is at fault.
    pub fn open(&self, machine: &Machine, results: &Path) -> Result<Box<dyn Subject>, Error> {
        let folder = self.train(machine, results, false)?;
        let subject = TranslationSubject::load(&self.name, self.spec.clone(), machine.clone(), &folder)?;
        Ok(Box::new(subject))
    }
}

/// What a binary ends with: an error goes to stderr in one line and makes the exit code 1.
pub fn exit_code(outcome: Result<(), impl std::fmt::Display>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Versions of the libraries that numbers depend on, for signatures.
pub fn libraries() -> BTreeMap<String, String> {
    BTreeMap::from([("libtorch".to_owned(), "2.11.0".to_owned()), ("tch".to_owned(), "0.24.0".to_owned())])
}
