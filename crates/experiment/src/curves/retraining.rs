//! Further training of models without some of their heads: what it recovers.
use core_masking::HeadSet;
use records::{CurveRow, Scope};
use subject::{Description, FineTuned, FineTuning, InitialWeights, Scored, Subject, TrainedWeights};
use training::{Gating, Machine, stop};

use crate::error::Error;
use crate::measured::{MeasuredRows, RowSet};

/// Further training of a subject's model. Each model goes on from the intact one with the recipe of the subject begun anew, so that
/// all cost as many updates; the one that keeps all heads is the fine-tuned baseline.
#[derive(Debug, Clone, Copy)]
pub struct Retraining<'a> {
    description: &'a Description,
    machine: &'a Machine,
    epochs: usize,
    seed: u64,
}

impl<'a> Retraining<'a> {
    /// For this many `epochs`.
    ///
    /// # Errors
    /// If the model is a checkpoint that is taken as it is, without a recipe to go on by.
    pub fn new(
        description: &'a Description,
        machine: &'a Machine,
        (epochs, seed): (usize, u64),
    ) -> Result<Self, Error> {
        if description.epochs().is_none() {
            let name = description.name();
            return Err(Error::input(format!(
                "subject `{name}` is not trained here, so that there is no recipe to train it further by"
            )));
        }
        Ok(Self { description, machine, epochs, seed })
    }

    /// Trains the model further without these heads, unless that was done already.
    fn tune(&self, scope: Scope, closed: &HeadSet) -> Result<FineTuned, Error> {
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

    /// Trains the model further without the heads of a set, and adds its rows.
    ///
    /// # Errors
    /// If the model cannot be trained, the split is at fault, or a file cannot be written.
    pub fn measure(
        &self,
        (subject, scored): (&Subject, &Scored),
        scope: Scope,
        RowSet { masked, rows: due }: RowSet<CurveRow>,
        rows: &mut MeasuredRows<CurveRow>,
    ) -> Result<(), Error> {
        stop::check()?;
        let tuned = self.tune(scope, &masked)?;
        let other = self.description.open_at(&tuned.checkpoint, self.machine)?;
        let complete = |row| CurveRow {
            dev_loss: Some(tuned.row.dev_loss),
            epoch: Some(tuned.row.epoch),
            updates: Some(tuned.steps),
            ..row
        };
        let set = RowSet { masked, rows: due.into_iter().map(complete).collect() };
        rows.measure_other(&other, subject, scored, set)
    }
}
