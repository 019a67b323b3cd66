//! Curves of models that were trained further without the heads of each step: what retraining recovers.
//!
//! Beyond Michel et al. (2019), who prune without training. Every step goes on from the intact model with the recipe of the subject begun
//! anew, as the controls of trained gates do, so that all steps cost as many updates; step 0 closes no head and is what the others
//! are to be compared with. Which heads a step closes is told by the intact model.
use std::path::{Path, PathBuf};

use experiment::{FurtherTraining, MeasuredRows, RowSet, SharedArgs};
use records::{Identity, RepairedRow, Scope};
use significance::TestArgs;
use training::{Machine, stop};

use crate::Pruning;
use crate::curve::{self, Curve};

/// Name of the results.
pub const EXPERIMENT: &str = "prune-and-retrain";

/// Further training of the models of steps.
#[derive(Debug, Clone, Copy)]
pub struct Retraining<'a>(pub FurtherTraining<'a>);

impl Retraining<'_> {
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
        let tuned = self.0.tune(scope, &masked)?;
        let subject = self.0.open(&tuned)?;
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
