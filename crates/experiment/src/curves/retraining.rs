//! Further training of models with masked heads.
use core_masking::HeadSet;
use records::{CurveRow, Scope};
use subject::{Description, FineTuned, FineTuning, InitialWeights, Scored, Subject, TrainedWeights};
use training::{Gating, Machine, stop};

use crate::error::Error;
use crate::measured::{MeasuredRows, RowSet};

/// Further training of a setup's model. Each training starts from the full model and repeats the setup's recipe, so that all take equally
/// many updates. The training that keeps all heads is the fine-tuned baseline.
#[derive(Debug, Clone, Copy)]
pub struct Retraining<'a> {
    description: &'a Description,
    machine: &'a Machine,
    epochs: usize,
    seed: u64,
}

impl<'a> Retraining<'a> {
    /// Prepares further training for this many `epochs`.
    ///
    /// # Errors
    /// If the model is a ready-made checkpoint, which has no training recipe.
    pub fn new(
        description: &'a Description,
        machine: &'a Machine,
        (epochs, seed): (usize, u64),
    ) -> Result<Self, Error> {
        if description.epochs().is_none() {
            let name = description.name();
            return Err(Error::input(format!(
                "the model of setup `{name}` is not trained here, so there is no recipe to train it further"
            )));
        }
        Ok(Self { description, machine, epochs, seed })
    }

    /// Trains the model further with these heads masked, unless a stored training exists.
    fn fine_tune(&self, scope: Scope, closed: &HeadSet) -> Result<FineTuned, Error> {
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

    /// Trains the model further with the heads of a set masked, and adds its rows.
    pub fn measure(
        &self,
        (subject, scored): (&Subject, &Scored),
        scope: Scope,
        RowSet { masked, rows: due }: RowSet<CurveRow>,
        rows: &mut MeasuredRows<CurveRow>,
    ) -> Result<(), Error> {
        stop::check()?;
        let tuned = self.fine_tune(scope, &masked)?;
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
