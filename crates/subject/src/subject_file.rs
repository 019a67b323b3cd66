//! Subjects as their files describe them: what can be said before the model is there, and how it is opened.
use std::any::Any;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use core_masking::{GatedModel, HeadLayout, ModelConfig};
use corpus::splits::BadRows;
use corpus::trees::Tree;
use training::{Machine, or_full_memory};

use crate::checkpoint::{Origin, Places};
use crate::error::Error;
use crate::subject::Subject;
use crate::task::{ExamplesOf, Outline, Spec, Task};
use crate::task_subject::TaskSubject;
use crate::train::{Trained, train};
use crate::tune::{FineTuned, FineTuning, fine_tune};

/// The file of a subject of any task.
pub(crate) trait AnySubjectFile: Any + Debug {
    /// The entries that the files of all tasks have.
    fn outline(&self) -> Outline<'_>;

    /// Refuses values that make no sense: the fault, in words.
    fn validate(&self) -> Result<(), String>;

    /// Makes this the n-th replicate, from 1, which goes by another name.
    fn replicate(&mut self, n: usize, name: &str);

    /// The heads of the model, as far as they are known before it is there.
    fn layout(&self, machine: &Machine) -> Result<HeadLayout, Error>;

    /// A text of each segment of a split.
    fn sentences(&self, machine: &Machine, split: &str) -> Result<Vec<String>, Error>;

    /// The sentences of a split with their trees, if a grammar makes them.
    fn trees(&self, split: &str) -> Option<Vec<Tree>>;

    /// Refuses a split that could not be scored: before hours of training, not after.
    fn check_split(&self, machine: &Machine, split: &str) -> Result<(), Error>;

    /// Trains the model unless it is there, and returns its folder.
    fn train(&self, machine: &Machine, results: &Path, again: bool) -> Result<PathBuf, Error>;

    /// Trains the trained model on under gates, unless that was done already.
    fn fine_tune(&self, machine: &Machine, tuning: &FineTuning) -> Result<FineTuned, Error>;

    /// Opens a checkpoint that is taken as it is, or the model that is trained here, on first use.
    fn open(&self, machine: &Machine, results: &Path) -> Result<Box<dyn Subject>, Error>;

    /// Opens the model with the weights in another folder.
    fn open_at(&self, weights: &Path, machine: &Machine) -> Result<Box<dyn Subject>, Error>;
}

/// A subject's TOML file.
#[derive(Debug, Clone)]
pub(crate) struct SubjectFile<T: Task> {
    /// Name of the subject.
    pub name: String,
    pub path: PathBuf,
    pub spec: T::Spec,
}

impl<T: Task> SubjectFile<T> {
    /// Reads a split.
    ///
    /// # Errors
    /// If there is none of that name, and the message lists those that there are; or its files are missing, torn or empty.
    pub(crate) fn read(&self, machine: &Machine, split: &str) -> Result<ExamplesOf<T>, Error> {
        Ok(self.read_counting(machine, split)?.0)
    }

    /// The same, with the number of rows that were left out.
    pub(crate) fn read_counting(
        &self,
        machine: &Machine,
        split: &str,
    ) -> Result<(ExamplesOf<T>, usize), Error> {
        let Outline { splits: known, bad_rows, .. } = self.spec.outline();
        if !known.iter().any(|name| name == split) {
            return Err(Error::NoSuchSplit { split: split.to_owned(), known });
        }
        let mut bad = BadRows::new(bad_rows);
        let examples = self.spec.read(&machine.data, split, &mut bad)?;
        if let Some(first) = bad.first {
            let (skipped, rows) = (bad.skipped, words::count(bad.rows, "row"));
            words::warn(&format!(
                "split `{split}`: data.bad_rows leaves out {skipped} of {rows}, the first by this fault: {first}"
            ));
        }
        if T::Spec::groups(&examples).iter().sum::<usize>() == 0 {
            let fault = format!("split `{split}` is empty: it must hold at least one segment");
            return Err(Error::Invalid(fault));
        }
        Ok((examples, bad.skipped))
    }

    fn load(
        &self,
        machine: &Machine,
        places: Places<'_>,
        checkpoint: Option<String>,
    ) -> Result<Box<dyn Subject>, Error> {
        let (task, models) = or_full_memory(|| T::load(self, machine, places, checkpoint.is_some()))?;
        let origin = Origin::of(places, T::FILES, checkpoint)?;
        let (file, machine) = (self.clone(), machine.clone());
        Ok(Box::new(TaskSubject { file, machine, task, models, origin }))
    }
}

impl<T: Trained> AnySubjectFile for SubjectFile<T> {
    fn outline(&self) -> Outline<'_> {
        self.spec.outline()
    }

    fn validate(&self) -> Result<(), String> {
        self.spec.validate()?;
        let outline = self.outline();
        let Some(checkpoint) = outline.checkpoint else { return Ok(()) };
        if checkpoint.has_revisions() && outline.epochs.is_some() {
            return Err(
                "checkpoint.revisions are those of a model that is taken as it is, without [training]"
                    .to_owned(),
            );
        }
        checkpoint.validate()
    }

    fn replicate(&mut self, n: usize, name: &str) {
        name.clone_into(&mut self.name);
        if let Some(seed) = self.spec.seed() {
            *seed = seed.wrapping_add(n as u64 - 1);
        }
    }

    fn layout(&self, machine: &Machine) -> Result<HeadLayout, Error> {
        if let Some(layout) = self.spec.layout() {
            return Ok(layout);
        }
        let outline = self.outline();
        let trained = machine.model_folder(&self.name).join("config.json");
        match outline.checkpoint {
            // what was fine-tuned needs its base no longer
            _ if outline.epochs.is_some() && trained.exists() => {
                Ok(<T::Model as GatedModel>::Config::read_layout(&trained)?)
            }
            Some(checkpoint) => Ok(<T::Model as GatedModel>::Config::read_layout(
                &checkpoint.find(machine)?.folder.join("config.json"),
            )?),
            None => Ok(HeadLayout::new([])), // refused by validation
        }
    }

    fn sentences(&self, machine: &Machine, split: &str) -> Result<Vec<String>, Error> {
        Ok(T::Spec::sentences(&self.read(machine, split)?))
    }

    fn trees(&self, split: &str) -> Option<Vec<Tree>> {
        self.spec.trees(split)
    }

    fn check_split(&self, machine: &Machine, split: &str) -> Result<(), Error> {
        T::check(self, machine, split, &self.read(machine, split)?)
    }

    fn train(&self, machine: &Machine, results: &Path, again: bool) -> Result<PathBuf, Error> {
        train(self, machine, results, again)
    }

    fn fine_tune(&self, machine: &Machine, tuning: &FineTuning) -> Result<FineTuned, Error> {
        fine_tune(self, machine, tuning)
    }

    fn open(&self, machine: &Machine, results: &Path) -> Result<Box<dyn Subject>, Error> {
        match (self.outline().epochs, self.outline().checkpoint) {
            (None, Some(checkpoint)) => {
                let found = checkpoint.find(machine)?;
                self.load(machine, Places::one(&found.folder), Some(found.name.clone()))
            }
            _ => self.load(machine, Places::one(&train(self, machine, results, false)?), None),
        }
    }

    fn open_at(&self, weights: &Path, machine: &Machine) -> Result<Box<dyn Subject>, Error> {
        if let Some(checkpoint) = self.outline().checkpoint.filter(|checkpoint| checkpoint.has_revisions()) {
            return self.load(machine, Places::one(weights), Some(checkpoint.public_name()));
        }
        let places = Places { model: weights, tokenizer: &machine.model_folder(&self.name) };
        self.load(machine, places, None)
    }
}
