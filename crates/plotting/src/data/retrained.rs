//! Pruning curves of models that were trained on without the heads of each step: the rows of `prune-and-retrain`, beside those of
//! `iterative-prune` (no such curves are in the papers).
use std::collections::BTreeSet;

use anyhow::Result;
use records::{PruningRow, RetrainedRow, Scope};

use super::pruning::{self, Pruning, difference, model_entries};
use crate::error::{LeftOut, alone};
use crate::source::ResultFile;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "prune-and-retrain";

/// The curves after training and, where they are there, those of the model as it was.
#[derive(Debug)]
pub struct Retrained {
    pub after: Pruning,
    pub before: Option<Pruning>,
    /// Updates of each step.
    pub updates: usize,
}

impl Retrained {
    /// Reads a file of `prune-and-retrain` and that of `iterative-prune` beside it, which is left out if it is of another model
    /// or test set.
    pub fn read(mut file: ResultFile, left_out: &mut LeftOut) -> Result<Self> {
        let rows: Vec<RetrainedRow> = file.rows(EXPERIMENT)?;
        let before =
            before(&file).and_then(|file| file.map(|file| Pruning::read(file, left_out)).transpose());
        let before = left_out.keep(before)?.flatten();
        let updates = rows.iter().map(|row| row.updates).max().unwrap_or_default();
        let after = Pruning::new(file, rows.iter().map(PruningRow::from).collect());
        Ok(Self { after, before, updates })
    }

    /// Sets of heads that can be closed.
    pub fn scopes(&self) -> BTreeSet<Scope> {
        self.after.series.iter().map(|series| series.curve.scope).collect()
    }
}

/// The curves of the same model on the same test set, if there are any.
fn before(file: &ResultFile) -> Result<Option<ResultFile>> {
    let path = file.path.with_file_name(file.stem(pruning::EXPERIMENT) + ".csv");
    if !path.exists() {
        return Ok(None);
    }
    let before = ResultFile::of(path, &file.subject, pruning::EXPERIMENT)?;
    let signed = file.identity().zip(before.identity());
    match signed.and_then(|(one, other)| difference([one, other], &[model_entries])) {
        None => Ok(Some(before)),
        Some((entry, here, expected)) => {
            let there = file.path.display();
            let fault = format!("does not go with `{there}`: {entry} is {here} but {expected} there");
            Err(alone(&before.path, &fault))
        }
    }
}
