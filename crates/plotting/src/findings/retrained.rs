//! Pruning curves of models that were trained further without the heads of each step: the rows of `prune-and-retrain`, beside those of
//! `iterative-prune` (no such curves are in the papers).
use std::collections::BTreeMap;

use records::{CurveRow, Repair, Scope};

use crate::findings::error::{LeftOut, Result, faulty};
use crate::findings::pruning::{Pruning, Series};
use crate::findings::results::{Results, distinct};
use crate::findings::same_model::{self, model_entries};
use crate::findings::source::{ResultFile, experiment};

/// The curves after training and, where they are there, those of the model as it was.
#[derive(Debug)]
pub struct Retrained {
    /// Curves of the models that were trained further, one for each step, compared with step 0 of the curve, which was trained as long
    /// with all heads. Not tested where no statistics of segments are stored.
    pub after: Pruning,
    /// Score of the model that all steps begin with.
    pub base: f64,
    /// Curves of the model that all steps begin with; absent where `iterative-prune` was not run.
    pub before: Option<Pruning>,
    /// Number of updates that each step is trained further for.
    pub updates: usize,
}

impl Retrained {
    /// Reads a file of `prune-and-retrain` and that of `iterative-prune` beside it, which is left out if it is of another model
    /// or test set, and each of its curves that masks other heads at the same step.
    pub fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Self> {
        let results = Results::<CurveRow>::read(file)?;
        let (base, updates) = (results.base(), results.rows.iter().filter_map(|row| row.updates).max());
        let after = Pruning::by_repair(&results, |repair| repair == Repair::Training, left_out)
            .remove(&Repair::Training);
        let after = after.unwrap_or_else(|| Pruning::of(results));
        let file = &after.results.file;
        let before =
            same_model::beside(file, &file.stem(experiment::PRUNING), experiment::PRUNING, &[model_entries]);
        let before = before.and_then(|file| file.map(|file| Pruning::read(file, left_out)).transpose());
        let mut before = left_out.keep(before).flatten();
        let updates = updates.unwrap_or_default();
        if let Some(before) = &mut before {
            let (same, others) =
                std::mem::take(&mut before.series).into_iter().partition(|own| has_same_heads(own, &after));
            before.series = same;
            if !others.is_empty() {
                let fault = format!(
                    "masks other heads than `{}` at the same steps",
                    after.results.file.path.display()
                );
                left_out.keep::<()>(Err(faulty(&before.results.file.path, fault)));
            }
        }
        Ok(Self { after, base, before, updates })
    }

    /// The same curve of the model as it was.
    pub fn untrained(&self, series: &Series) -> Option<&Series> {
        self.before.as_ref()?.series.iter().find(|other| other.curve == series.curve)
    }

    /// Sets of heads that can be closed.
    pub fn scopes(&self) -> Vec<Scope> {
        distinct(self.after.series.iter().map(|series| series.curve.attention))
    }
}

/// `true` if a curve of the model as it was masks the heads that are closed at the same steps.
fn has_same_heads(before: &Series, after: &Pruning) -> bool {
    let step = |row: &CurveRow| (row.order_seed, row.masked);
    let same = after.series.iter().filter(|series| series.curve == before.curve);
    let closed: BTreeMap<_, &str> = same
        .flat_map(|series| series.runs.iter().flatten())
        .map(|row| (step(row), row.masked_heads.as_str()))
        .collect();
    let mut rows = before.runs.iter().flatten();
    rows.all(|row| closed.get(&step(row)).is_none_or(|heads| *heads == row.masked_heads))
}
