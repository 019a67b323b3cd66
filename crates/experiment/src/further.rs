//! Further training of a subject's model without some heads.
use core_masking::HeadSet;
use records::Scope;
use subject::{Description, FineTuned, FineTuning, InitialWeights, Subject, TrainedWeights};
use training::{Gating, Machine};

use crate::error::Error;

/// Further training by the subject's recipe, begun anew.
#[derive(Debug, Clone, Copy)]
pub struct FurtherTraining<'a> {
    description: &'a Description,
    machine: &'a Machine,
    epochs: usize,
    seed: u64,
}

impl<'a> FurtherTraining<'a> {
    /// For this many `epochs`.
    ///
    /// # Errors
    /// If the model is a checkpoint that is taken as it is, without a recipe to go on by.
    pub fn new(
        description: &'a Description,
        machine: &'a Machine,
        (epochs, seed): (usize, u64),
    ) -> Result<Self, Error> {
        let name = description.name();
        description.epochs().ok_or_else(|| {
            Error::input(format!(
                "subject `{name}` is not trained here, so that there is no recipe to train it further by"
            ))
        })?;
        Ok(Self { description, machine, epochs, seed })
    }

    /// Trains the model further without these heads of a scope, unless that was done already.
    ///
    /// # Errors
    /// If it cannot be trained, or a file cannot be written.
    pub fn tune(&self, scope: Scope, closed: &HeadSet) -> Result<FineTuned, Error> {
        let tuning = FineTuning {
            name: format!("{scope}-without-{}", closed.len()),
            initial: InitialWeights::Trained,
            gating: Gating::Fixed(closed.clone()),
            trained: TrainedWeights::usual(scope),
            epochs: self.epochs,
            seed: self.seed,
        };
        Ok(self.description.fine_tune(self.machine, &tuning)?)
    }

    /// The subject with a model that was trained further.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&self, tuned: &FineTuned) -> Result<Box<dyn Subject>, Error> {
        Ok(self.description.open_at(&tuned.checkpoint, self.machine)?)
    }
}
