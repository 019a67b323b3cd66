//! The experiment: models with trained gates, and their controls, each with a row.
use std::cell::OnceCell;
use std::collections::BTreeMap;

use anyhow::Context;
use core_masking::{HeadId, HeadSet, Removal};
use experiment::{Estimate, Export, MeasuredRows, Oracle, RowSet, random_order};
use heads::experiment::{ABLATE_ONE, TRAIN_GATES};
use records::{GateRow, Identity, Method, Order, Row};
use subject::{Ablation, Scored, Subject};
use training::{Penalty, stop};

use crate::tuning::{Choice, MaskedControl, Tuner};

/// Rankings of heads on the model before further training, in the order in which heads are closed; each is computed once.
#[derive(Default)]
struct Orders {
    importance: OnceCell<Vec<HeadId>>,
    oracle: OnceCell<Vec<HeadId>>,
}

fn once(
    cell: &OnceCell<Vec<HeadId>>,
    make: impl FnOnce() -> anyhow::Result<Vec<HeadId>>,
) -> anyhow::Result<&[HeadId]> {
    if cell.get().is_none() {
        let _ = cell.set(make()?);
    }
    Ok(cell.get().map_or(&[], Vec::as_slice))
}

/// Returns the controls that depend on trained gates.
fn dependent_controls() -> impl Iterator<Item = Method> {
    Method::ALL.into_iter().filter(|method| method.depends_on_gates())
}

/// Settings shared by all rows.
pub struct GateExperiment<'a> {
    pub tuner: Tuner<'a>,
    /// The model before further training.
    pub base: &'a Subject,
    pub scored: Scored,
    pub dev: Scored,
    /// How importance is measured, if a control needs it.
    pub estimate: Option<Estimate>,
}

impl GateExperiment<'_> {
    /// Describes everything that the rows depend on.
    pub fn identity(&self) -> anyhow::Result<Identity> {
        let mut identity = self.base.identity(TRAIN_GATES.name, &self.scored)?;
        identity.seed = Some(self.tuner.args.shared.seed());
        identity.arguments.extend(self.tuner.arguments());
        if let Some(estimate) = &self.estimate {
            estimate.describe(self.base, &mut identity)?;
        }
        Ok(identity)
    }

    /// Returns the families of tests: the rows of each method, whatever their number.
    pub fn families(&self) -> BTreeMap<String, usize> {
        Method::ALL.into_iter().map(|method| (format!("{}/{method}", self.tuner.scope), 0)).collect()
    }

    /// Trains gates for each of `penalties` that has no row, and records how they closed.
    pub fn train(&self, penalties: &[Penalty], rows: &mut MeasuredRows<GateRow>) -> anyhow::Result<()> {
        for choice in penalties.iter().copied().map(Choice::Gates) {
            if rows.is_due(&self.tuner.row_of(&choice)) {
                self.measure(&choice, rows)?;
            }
        }
        Ok(())
    }

    /// Trains each control that has no row: with all heads, or with the number of heads that the gates for each of `penalties` kept.
    pub fn control(&self, penalties: &[Penalty], rows: &mut MeasuredRows<GateRow>) -> anyhow::Result<()> {
        if self.tuner.args.asks_for(Method::Ungated) && rows.is_due(&self.tuner.row_of(&Choice::All)) {
            self.measure(&Choice::All, rows)?;
        }
        let orders = Orders::default();
        for &penalty in penalties {
            let key = self.tuner.row_of(&Choice::Gates(penalty)).key();
            let row = rows.rows().find(|row| row.key() == key).context("no row for the gates")?.clone();
            self.leave_out_outdated(penalty, &row, rows)?;
            for control in self.masked_controls(penalty, &row) {
                if !rows.is_due(&self.tuner.row_of_control(&control)) {
                    continue;
                }
                let closed = self.closed(&control, &row, &orders)?;
                self.measure(&Choice::Closed { control, closed }, rows)?;
            }
        }
        Ok(())
    }

    /// Returns the requested controls with the number of heads of the gates in `row`.
    fn masked_controls(&self, penalty: Penalty, row: &GateRow) -> Vec<MaskedControl> {
        let args = self.tuner.args;
        let one =
            |method: Method, of: Option<Penalty>| MaskedControl { method, seed: None, kept: row.kept, of };
        let random = |seed| MaskedControl { seed: Some(seed), ..one(Method::Random, None) };
        let mut controls = [Method::Importance, Method::Oracle].map(|method| one(method, None)).to_vec();
        controls.extend(args.random_seeds().map(random));
        controls.extend(dependent_controls().map(|method| one(method, Some(penalty))));
        controls.retain(|control| args.asks_for(control.method));
        controls
    }

    /// Leaves out controls of the gates in `row` whose heads no longer match these gates, unless they are measured again anyway.
    fn leave_out_outdated(
        &self,
        penalty: Penalty,
        row: &GateRow,
        rows: &mut MeasuredRows<GateRow>,
    ) -> anyhow::Result<()> {
        let args = self.tuner.args;
        for method in dependent_controls() {
            // The complement needs the model with gates, which exists after --again.
            let can_be_told = method != Method::Complement || args.shared.again;
            let is_due = args.asks_for(method) && args.shared.again;
            if is_due || !can_be_told {
                continue;
            }
            let is_own = |own: &GateRow| {
                own.method == method && own.attention == row.attention && own.goal() == row.goal()
            };
            let control = MaskedControl { method, seed: None, kept: row.kept, of: Some(penalty) };
            let closed = self.closed(&control, row, &Orders::default())?;
            let kept: HeadSet = self.tuner.heads.iter().copied().filter(|&id| !closed.contains(id)).collect();
            rows.leave_out(|own| is_own(own) && own.kept_heads != kept.names());
        }
        Ok(())
    }

    /// Returns the heads that are closed in a control of the gates in `row`.
    fn closed(&self, control: &MaskedControl, row: &GateRow, orders: &Orders) -> anyhow::Result<HeadSet> {
        let heads = self.tuner.heads;
        let first = |order: &[HeadId]| order.iter().take(heads.len() - row.kept).copied().collect();
        match (control.method, control.seed, control.of) {
            (Method::Random, Some(seed), _) => {
                Ok(first(&random_order(heads, self.tuner.description.name(), seed)))
            }
            (Method::Complement, _, Some(penalty)) => Ok(first(&self.tuner.last_to_close(penalty)?)),
            (Method::Importance, ..) => Ok(first(once(&orders.importance, || self.by_importance())?)),
            (Method::Oracle, ..) => Ok(first(once(&orders.oracle, || self.by_oracle())?)),
            _ => {
                let kept: HeadSet = row.kept_heads.parse()?;
                Ok(heads.iter().copied().filter(|&id| !kept.contains(id)).collect())
            }
        }
    }

    /// Ranks heads by their importance before further training, the least important first.
    fn by_importance(&self) -> anyhow::Result<Vec<HeadId>> {
        let estimate = self.estimate.as_ref().context("heads cannot be scored without --estimate-on")?;
        let order = estimate.scores(Order::Importance, self.base, &HeadSet::none())?.ascending();
        Ok(order.into_iter().filter(|id| self.tuner.heads.contains(id)).collect())
    }

    /// Ranks heads by the loss of score when masked alone, the smallest first, on the scored segments: uses results of `ablate-one` and
    /// measures missing ones.
    fn by_oracle(&self) -> anyhow::Result<Vec<HeadId>> {
        let Tuner { args, description, machine, heads, .. } = self.tuner;
        let (all, with) = (self.base.layout().heads(), (description, self.base));
        let oracle = Oracle::measured(&self.scored, &all, with, (&args.shared, machine))?;
        let path = description.result_path(&args.shared.results, ABLATE_ONE.name, &self.scored);
        let scores = oracle.scores(heads);
        Ok(scores.with_context(|| format!("`{}` lacks heads", path.display()))?.ascending())
    }

    /// Trains a model further, scores it and adds its row, which must be due.
    fn measure(&self, choice: &Choice, rows: &mut MeasuredRows<GateRow>) -> anyhow::Result<()> {
        let tuned = self.tuner.fine_tune(choice)?;
        stop::check()?;
        let subject = self.tuner.description.open_at(&tuned.checkpoint, self.tuner.machine)?;
        let mut row = self.tuner.row(choice, &subject.layout(), &tuned);
        let masked = choice.closed(&tuned);
        subject.evaluate(&self.dev, std::slice::from_ref(&masked), &mut |_, found| {
            row.dev_score = found.score;
            Ok(())
        })?;
        row.metric = subject.metric(&self.scored.split).name();
        let set = RowSet { masked, rows: vec![row] };
        Ok(rows.measure_other(&subject, self.base, &self.scored, set)?)
    }

    /// Writes a model with trained gates without its closed heads.
    pub fn export(&self, penalty: Penalty, export: &Export) -> anyhow::Result<()> {
        let choice = Choice::Gates(penalty);
        let tuned = self.tuner.fine_tune(&choice)?;
        let subject = self.tuner.description.open_at(&tuned.checkpoint, self.tuner.machine)?;
        let closed = choice.closed(&tuned);
        export.write(&subject, &closed, Removal::Cut, &Ablation::Zero)?;
        if !self.tuner.machine.quiet {
            let heads = self.tuner.heads.len();
            words::say!("`{}`: {} of {heads} heads removed", export.folder().display(), closed.len());
        }
        Ok(())
    }
}
