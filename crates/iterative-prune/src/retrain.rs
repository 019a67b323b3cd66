//! Curves of models that were trained further without the heads of each step: what retraining recovers.
//!
//! Beyond Michel et al. (2019), who prune without training. Step 0 closes no head and is what the others are to be compared with. Which
//! heads a step closes is told by the intact model.
use std::path::{Path, PathBuf};

use experiment::{MeasuredRows, Retraining, SharedArgs};
use records::Identity;
use significance::TestArgs;
use training::Machine;

use crate::Pruning;
use crate::curve::{self, Curve};

/// Name of the results.
pub const EXPERIMENT: &str = "prune-and-retrain";

/// Trains the model of each step on and writes the rows that are missing to `path`; returns where they are.
///
/// # Errors
/// If heads cannot be ordered, a split is at fault, a model cannot be trained, or a file cannot be written.
pub fn draw(
    retraining: &Retraining<'_>,
    pruning: &Pruning<'_>,
    curves: &[Curve<'_>],
    (path, identity, settings): (&Path, Identity, (&SharedArgs, &Machine, &TestArgs)),
) -> anyhow::Result<PathBuf> {
    let mut rows = MeasuredRows::open(path, identity, pruning.subject, curve::plan(curves), settings)?;
    rows.renew(|row| curves.iter().any(|curve| curve.holds(row)));
    // Equal heads of two types are trained further in another part of the model.
    for curves in curves.chunk_by(|one, other| one.pool.scope == other.pool.scope) {
        for set in curve::sets(pruning, curves, &rows)? {
            let model = (pruning.subject, &pruning.scored);
            retraining.measure(model, curves[0].pool.scope, set, &mut rows)?;
        }
    }
    Ok(rows.finish()?.path)
}
