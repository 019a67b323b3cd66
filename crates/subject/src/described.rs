//! Subjects as their files describe them: what can be said before the model is there, and how it is opened.
use std::any::Any;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use core_masking::HeadLayout;
use corpus::trees::Tree;
use training::{Machine, or_full_memory};

use crate::checkpoint::{Origin, Places};
use crate::error::Error;
use crate::model::Model;
use crate::subject::Subject;
use crate::task::{Described, Outline, Task};
use crate::task_subject::TaskSubject;
use crate::train::{Trained, train};
use crate::tune::{FineTuned, FineTuning, fine_tune};

/// A subject of any task.
pub(crate) trait AnyDescribed: Any + Debug {
    /// What all descriptions say.
    fn outline(&self) -> Outline<'_>;

    /// Refuses values that make no sense: the fault, in words.
    fn validate(&self) -> Result<(), String>;

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

impl<T: Task> Described<T> {
    fn load(
        &self,
        machine: &Machine,
        places: Places<'_>,
        checkpoint: Option<String>,
    ) -> Result<Box<dyn Subject>, Error> {
        let (task, model) = or_full_memory(|| T::load(self, machine, places, checkpoint.is_some()))?;
        let origin = Origin::of(places, T::FILES, checkpoint)?;
        let (described, machine) = (self.clone(), machine.clone());
        Ok(Box::new(TaskSubject { described, machine, task, model, origin }))
    }
}

/// Tokens of a text of ordinary length.
const ORDINARY: usize = 32;

impl<T: Task> Described<T> {
    /// Refuses a memory that is too small to score even texts of ordinary length by a model that is yet to be trained: before
    /// hours of training, not after.
    fn check_memory(&self, machine: &Machine) -> Result<(), Error> {
        if machine.model_folder(&self.name).join("model.safetensors").exists() {
            return Ok(());
        }
        T::load_ahead(self, machine)?
            .map_or(Ok(()), |(load, longest)| load.check(machine, longest.min(ORDINARY)))
    }
}

impl<T: Trained> AnyDescribed for Described<T> {
    fn outline(&self) -> Outline<'_> {
        T::outline(&self.spec)
    }

    fn validate(&self) -> Result<(), String> {
        T::validate(&self.spec)
    }

    fn layout(&self, machine: &Machine) -> Result<HeadLayout, Error> {
        if let Some(layout) = T::layout(&self.spec) {
            return Ok(layout);
        }
        let outline = self.outline();
        let trained = machine.model_folder(&self.name).join("config.json");
        match outline.checkpoint {
            // what was fine-tuned needs its base no longer
            _ if outline.epochs.is_some() && trained.exists() => Ok(T::Model::read_layout(&trained)?),
            Some(checkpoint) => {
                Ok(T::Model::read_layout(&checkpoint.find(machine)?.folder.join("config.json"))?)
            }
            None => Ok(HeadLayout::new([])), // refused by validation
        }
    }

    fn sentences(&self, machine: &Machine, split: &str) -> Result<Vec<String>, Error> {
        Ok(T::sentences(&self.read(machine, split)?))
    }

    fn trees(&self, split: &str) -> Option<Vec<Tree>> {
        T::trees(&self.spec, split)
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
            _ => {
                self.check_memory(machine)?;
                self.load(machine, Places::one(&train(self, machine, results, false)?), None)
            }
        }
    }

    fn open_at(&self, weights: &Path, machine: &Machine) -> Result<Box<dyn Subject>, Error> {
        let places = Places { model: weights, tokenizer: &machine.model_folder(&self.name) };
        self.load(machine, places, None)
    }
}
