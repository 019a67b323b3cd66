//! Curves of models that were trained further without the heads of each step: what retraining recovers.
//!
//! Beyond Michel et al. (2019), who prune without training. Every step goes on from the intact model with the recipe of the subject begun
//! anew, as the controls of trained gates do, so that all steps cost as many updates; step 0 closes no head and is what the others
//! are to be compared with. Which heads a step closes is told by the intact model.
use std::path::{Path, PathBuf};

use anyhow::Context;
use core_masking::HeadSet;
use experiment::{MeasuredRows, RowSet, SharedArgs};
use records::{Identity, RepairedRow, Scope};
use significance::TestArgs;
use subject::{Description, FineTuned, FineTuning, InitialWeights, TrainedWeights};
use training::{Gating, Machine, stop};

use crate::Pruning;
use crate::curve::{self, Curve};

/// Name of the results.
pub const EXPERIMENT: &str = "prune-and-retrain";

/// Further training of the models of steps.
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
    ) -> anyhow::Result<Self> {
        let name = description.name();
        description.epochs().with_context(|| {
            format!("subject `{name}` is not trained here, so that there is no recipe to --retrain by")
        })?;
        Ok(Self { description, machine, epochs, seed })
    }

    /// Trains the model further without these heads, unless that was done already.
    fn tune(&self, scope: Scope, closed: &HeadSet) -> anyhow::Result<FineTuned> {
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

    /// Trains the model of each step on and writes the rows that are missing to `path`; returns where they are.
    ///
    /// # Errors
    /// If heads cannot be ordered, a split is at fault, a model cannot be trained, or a file cannot be written.
    pub fn draw(
        &self,
        pruning: &Pruning<'_>,
        curves: &[Curve<'_>],
        (path, identity, settings): (&Path, Identity, (&SharedArgs, &Machine, &TestArgs)),
    ) -> anyhow::Result<PathBuf> {
        let mut rows = MeasuredRows::open(path, identity, pruning.subject, curve::plan(curves), settings)?;
        rows.renew(|row| curves.iter().any(|curve| curve.holds(row)));
        // Equal heads of two types are trained further in another part of the model.
        for curves in curves.chunk_by(|one, other| one.pool.scope == other.pool.scope) {
            for set in curve::sets(pruning, curves, &rows)? {
                self.measure(pruning, curves[0].pool.scope, set, &mut rows)?;
            }
        }
        Ok(rows.finish()?.path)
    }

    /// Trains the model further without the heads of a set, and adds its rows.
    fn measure(
        &self,
        pruning: &Pruning<'_>,
        scope: Scope,
        RowSet { masked, rows: due }: RowSet<RepairedRow>,
        rows: &mut MeasuredRows<RepairedRow>,
    ) -> anyhow::Result<()> {
        stop::check()?;
        let tuned = self.tune(scope, &masked)?;
        let subject = self.description.open_at(&tuned.checkpoint, self.machine)?;
        let complete = |row| RepairedRow {
            dev_loss: Some(tuned.row.dev_loss),
            epoch: Some(tuned.row.epoch),
            updates: tuned.steps,
            ..row
        };
        let set = RowSet { masked, rows: due.into_iter().map(complete).collect() };
        Ok(rows.measure_other(subject.as_ref(), pruning.subject, &pruning.scored, set)?)
    }
}
