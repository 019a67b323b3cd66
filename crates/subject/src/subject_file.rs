//! Setup files: what can be checked before the model is loaded, and how it is loaded.
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use core_masking::{GatedModel, HeadLayout, ModelConfig};
use corpus::splits::BadRows;
use training::{Machine, or_full_memory};

use crate::checkpoint::{Origin, Places};
use crate::error::Error;
use crate::task::{ExamplesOf, Spec, Task};
use crate::task_subject::TaskSubject;
use crate::train::{Trained, train};

/// A setup's TOML file.
#[derive(Debug, Clone)]
pub(crate) struct SubjectFile<T: Task> {
    pub name: String,
    pub path: PathBuf,
    pub spec: T::Spec,
}

impl<T: Task> SubjectFile<T> {
    /// Reads a split.
    ///
    /// # Errors
    /// If the split does not exist, or its files are missing, damaged or empty.
    pub(crate) fn read(&self, machine: &Machine, split: &str) -> Result<ExamplesOf<T>, Error> {
        Ok(self.read_counting(machine, split)?.0)
    }

    /// Reads a split, and returns the number of rows that were left out.
    pub(crate) fn read_counting(
        &self,
        machine: &Machine,
        split: &str,
    ) -> Result<(ExamplesOf<T>, usize), Error> {
        let mut bad = BadRows::new(self.spec.outline().bad_rows);
        let examples = self.spec.read(&machine.data, split, &mut bad)?;
        if let Some(first) = bad.first {
            let (skipped, rows) = (bad.skipped, words::count(bad.rows, "row"));
            words::warn(&format!(
                "split `{split}`: data.bad_rows leaves out {skipped} of {rows}; the first fault: {first}"
            ));
        }
        if T::Spec::groups(&examples).iter().sum::<usize>() == 0 {
            let fault = format!("split `{split}` is empty: it must contain at least one segment");
            return Err(Error::Invalid(fault));
        }
        Ok((examples, bad.skipped))
    }

    fn load(
        &self,
        machine: &Machine,
        places: Places<'_>,
        checkpoint: Option<String>,
    ) -> Result<TaskSubject<T>, Error> {
        let (task, models) = or_full_memory(|| T::load(self, machine, places, checkpoint.is_some()))?;
        let origin = Origin::of(places, T::FILES, checkpoint)?;
        let (file, machine) = (self.clone(), machine.clone());
        Ok(TaskSubject { file, machine, task, models, origin })
    }
}

impl<T: Trained> SubjectFile<T> {
    pub(crate) fn validate(&self) -> Result<(), String> {
        self.spec.validate()?;
        let outline = self.spec.outline();
        let Some(checkpoint) = outline.checkpoint else { return Ok(()) };
        if checkpoint.has_revisions() && outline.epochs.is_some() {
            return Err(
                "checkpoint.revisions is for a model that is used unchanged, without [training]".to_owned()
            );
        }
        checkpoint.validate()
    }

    /// Turns the setup into run `n` of the recipe, counted from 1, with a name of its own.
    pub(crate) fn replicate(&mut self, n: usize) {
        self.name = format!("{}/replicate-{n}", self.name);
        if let Some(seed) = self.spec.seed() {
            *seed = seed.wrapping_add(n as u64 - 1);
        }
    }

    /// Returns the heads of the model, if they are known before it exists.
    pub(crate) fn layout(&self, machine: &Machine) -> Result<HeadLayout, Error> {
        if let Some(layout) = self.spec.layout() {
            return Ok(layout);
        }
        let outline = self.spec.outline();
        let trained = machine.model_folder(&self.name).join("config.json");
        let config = match outline.checkpoint {
            // a fine-tuned model no longer needs its base model
            _ if outline.epochs.is_some() && trained.exists() => trained,
            Some(checkpoint) => checkpoint.find(machine)?.folder.join("config.json"),
            None => return Ok(HeadLayout::new([])), // refused by validation
        };
        Ok(<T::Model as GatedModel>::Config::read_layout(&config)?)
    }

    pub(crate) fn sentences(&self, machine: &Machine, split: &str) -> Result<Vec<String>, Error> {
        Ok(T::Spec::sentences(&self.read(machine, split)?))
    }

    /// Refuses a split that could not be scored, before hours of training.
    pub(crate) fn check_split(&self, machine: &Machine, split: &str) -> Result<(), Error> {
        T::check(self, machine, split, &self.read(machine, split)?)
    }

    /// Loads a checkpoint that is used unchanged, or the model that is trained here on first use.
    pub(crate) fn open(&self, machine: &Machine, results: &Path) -> Result<TaskSubject<T>, Error> {
        let outline = self.spec.outline();
        match (outline.epochs, outline.checkpoint) {
            (None, Some(checkpoint)) => {
                let found = checkpoint.find(machine)?;
                self.load(machine, Places::one(&found.folder), Some(found.name.clone()))
            }
            _ => self.load(machine, Places::one(&train(self, machine, results, false)?), None),
        }
    }

    /// Loads the model with the weights in another folder.
    pub(crate) fn open_at(&self, machine: &Machine, weights: &Path) -> Result<TaskSubject<T>, Error> {
        let outline = self.spec.outline();
        if let Some(checkpoint) = outline.checkpoint.filter(|checkpoint| checkpoint.has_revisions()) {
            return self.load(machine, Places::one(weights), Some(checkpoint.public_name()));
        }
        let places = Places { model: weights, tokenizer: &machine.model_folder(&self.name) };
        self.load(machine, places, None)
    }
}
