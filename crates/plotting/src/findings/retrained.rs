//! Pruning curves of models fine-tuned at each step: the rows of `prune-and-retrain`. The papers have no such curves.
use std::collections::BTreeMap;

use records::{CurveRow, Repair, Scope};

use crate::findings::error::{LeftOut, Result, faulty};
use crate::findings::pruning::{Pruning, Series};
use crate::findings::results::{Results, distinct};
use crate::findings::same_model::{self, model_entries};
use crate::findings::source::{ResultFile, experiment};

/// Curves after fine-tuning, and those without it if they were measured.
#[derive(Debug)]
pub struct Retrained {
    /// Curves of models fine-tuned at each step, compared with step 0, the fine-tuned baseline; untested without statistics of segments.
    pub after: Pruning,
    /// Score of the model that every step starts from.
    pub base: f64,
    /// Curves of the model that every step starts from; `None` if `iterative-prune` was not run.
    pub before: Option<Pruning>,
    /// Updates of fine-tuning per step.
    pub updates: usize,
}

impl Retrained {
    /// Reads `prune-and-retrain` and the corresponding `iterative-prune`, whose curves are left out if model, test set or heads differ.
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

    /// Returns the corresponding curve without fine-tuning.
    pub fn untrained(&self, series: &Series) -> Option<&Series> {
        self.before.as_ref()?.series.iter().find(|other| other.curve == series.curve)
    }

    /// Returns the sets of heads that are pruned.
    pub fn scopes(&self) -> Vec<Scope> {
        distinct(self.after.series.iter().map(|series| series.curve.attention))
    }
}

/// `true` if a curve without fine-tuning masks the same heads as its fine-tuned curve at the same steps.
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
