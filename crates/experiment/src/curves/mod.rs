//! Pruning curves: heads are masked step by step, by a ranking or a search (Michel et al. 2019, Section 4.2, Figures 3, 4 and 6). The model
//! of each step may be repaired, for example by further training.
mod choose;
mod curve_search;
mod rearrange;
mod retraining;
mod search;
mod selectors;

use core_masking::HeadSet;
use records::{BASE, Cost, CurveId, CurveRow, MetricName, Order, Repair, Row, TestedRow};
use subject::{Scored, Subject};
use training::stop;

pub use choose::{Chooser, Chosen, Known, possible_orders};
pub use retraining::Retraining;
pub use search::Search;
pub use selectors::SelectorArgs;

use curve_search::CurveSearch;

use crate::error::Error;
use crate::measured::{MeasuredRows, RowPlan, RowSet};
use crate::pool::Pool;

/// A curve: the heads of a pool, and a ranking or search that masks them.
#[derive(Debug, Clone, Copy)]
pub struct Curve<'a> {
    /// The heads that can be masked.
    pub pool: &'a Pool,
    /// The ranking or search; [`Order::Floor`] masks all heads at once.
    pub order: Order,
    /// Seed of a random order.
    pub seed: Option<u64>,
    /// Reverses the ranking.
    pub complement: bool,
}

/// A step of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Number of the step in files; step 0 masks no head, except on the floor.
    pub place: usize,
    /// Number of masked heads.
    pub masked: usize,
}

/// Steps that have a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// All steps, from the full model to all heads masked.
    All,
    /// Steps that mask some heads but not all; with further training also the fine-tuned baseline.
    Inner,
    /// Steps that mask at most this percentage of the heads; for [`Order::Swap`] only the full model and the last of these.
    UpTo(u64),
}

impl<'a> Curve<'a> {
    /// Returns all curves of these orders over a pool: one per seed of the random order, and also the complement of each ranking for which
    /// `complement` is true. A random order has no complement because that would be another random order; a search has none either.
    pub fn all(
        pool: &'a Pool,
        orders: &[Order],
        seeds: &[u64],
        complement: impl Fn(Order) -> bool,
    ) -> Vec<Self> {
        let of_order = |&order: &Order| {
            let curve = Self { pool, order, seed: None, complement: false };
            match order {
                Order::Random => seeds.iter().map(|&seed| Self { seed: Some(seed), ..curve }).collect(),
                _ if complement(order) && order.is_ranking() => {
                    vec![curve, Self { complement: true, ..curve }]
                }
                _ => vec![curve],
            }
        };
        orders.iter().flat_map(of_order).collect()
    }

    /// Returns the curve with a single row, in which all heads of a pool are masked.
    pub fn floor(pool: &'a Pool) -> Self {
        Self { pool, order: Order::Floor, seed: None, complement: false }
    }

    /// Returns its name in result files.
    pub fn id(&self) -> CurveId {
        CurveId { order_seed: self.seed, complement: self.complement, ..self.pool.curve(self.order) }
    }

    /// Returns the steps that have a row.
    pub fn steps(&self, steps: Steps, repair: Option<Repair>) -> Vec<Step> {
        let heads = self.pool.heads.len();
        if self.order == Order::Floor {
            return vec![Step { place: 0, masked: heads }];
        }
        let all = self.pool.counts().into_iter().enumerate().map(|(place, masked)| Step { place, masked });
        match steps {
            Steps::All => all.collect(),
            Steps::Inner => {
                let is_meant = |step: &Step| match step.masked {
                    0 => repair == Some(Repair::Training),
                    masked => masked < heads,
                };
                all.filter(is_meant).collect()
            }
            Steps::UpTo(percent) => {
                let limit = (heads as u64 * percent).div_ceil(100) as usize;
                let mut steps: Vec<Step> = all.take_while(|step| step.masked <= limit).collect();
                if self.order == Order::Swap {
                    let inner = 1..steps.len().saturating_sub(1);
                    steps.drain(inner.start.min(inner.end)..inner.end);
                }
                steps
            }
        }
    }

    /// Returns the row of a step, without scores.
    fn row(&self, step: Step, masked: &HeadSet, metric: MetricName, repair: Option<Repair>) -> CurveRow {
        CurveRow {
            repair,
            order_seed: self.seed,
            complement: self.complement,
            ..self.pool.row(self.order, step.place, masked, metric)
        }
    }
}

/// Refuses to continue a curve if the stored row masked other heads than the curve would mask now, for example because the oracle was
/// measured again.
///
/// - `stored`: masked heads of the row in the file
/// - `now`: heads that the step masks now; `None` if the curve no longer has this step
pub fn check_heads(row: &impl TestedRow, stored: &str, now: Option<&HeadSet>) -> Result<(), Error> {
    match now {
        Some(now) if now.names() == stored => Ok(()),
        _ => Err(Error::input(format!(
            "row `{}` masked different heads: compute it again with --again",
            row.name()
        ))),
    }
}

/// Settings shared by all curves of a run.
pub struct Curves<'a> {
    /// Chooses heads by rankings and searches.
    pub chooser: Chooser<'a>,
    /// Segments to score.
    pub scored: Scored,
    /// Steps that have a row.
    pub steps: Steps,
    /// Repairs to compare; `[None]` if models are scored without repair.
    pub repairs: Vec<Option<Repair>>,
    /// Maximum number of segments for fitting the least-squares repair.
    pub fit_limit: usize,
    /// Settings for further training; `None` without it.
    pub retraining: Option<Retraining<'a>>,
}

impl Curves<'_> {
    fn subject(&self) -> &Subject {
        self.chooser.subject
    }

    fn metric(&self) -> MetricName {
        self.subject().metric(&self.scored.split).name()
    }

    /// Returns the rows of these curves. Each curve with each repair is one family of tests.
    pub fn plan(&self, curves: &[Curve<'_>]) -> RowPlan {
        let mut plan = RowPlan::default();
        for (curve, &repair) in
            curves.iter().flat_map(|curve| self.repairs.iter().map(move |one| (curve, one)))
        {
            let rows = curve.steps(self.steps, repair).into_iter();
            let rows: Vec<CurveRow> =
                rows.map(|step| curve.row(step, &HeadSet::none(), self.metric(), repair)).collect();
            let Some(first) = rows.first() else { continue };
            let is_open = matches!(self.steps, Steps::UpTo(_)); // another run may add steps
            plan.families.insert(first.family(), if is_open { 0 } else { rows.len() });
            for row in &rows {
                let place = plan.places.len();
                plan.places.insert(row.name(), place);
            }
        }
        plan
    }

    /// Measures the steps of these curves that have no row yet. A head set that several rankings share is scored once. Each step of a
    /// search is scored as soon as it is found, so that a killed run can resume there.
    pub fn measure(&self, curves: &[Curve<'_>], rows: &mut MeasuredRows<CurveRow>) -> Result<(), Error> {
        // Further training depends on the scope, so curves of two scopes share no head sets.
        let together = |one: &Curve<'_>, other: &Curve<'_>| {
            let is_cheap = !one.order.is_search() && !other.order.is_search();
            is_cheap && !self.chooser.costs && one.pool.scope == other.pool.scope
        };
        for curves in curves.chunk_by(together) {
            if curves[0].order.is_search() {
                self.measure_search(&curves[0], rows)?;
            } else {
                self.measure_rankings(curves, rows)?;
            }
        }
        Ok(())
    }

    /// Returns the repairs for which one of these steps has no row yet.
    fn due(&self, curve: &Curve<'_>, steps: &[Step], rows: &MeasuredRows<CurveRow>) -> Vec<Option<Repair>> {
        let is_due = |repair: &Option<Repair>| {
            let own = curve.steps(self.steps, *repair).into_iter().filter(|step| steps.contains(step));
            let mut own = own.map(|step| curve.row(step, &HeadSet::none(), self.metric(), *repair));
            own.any(|row| rows.is_due(&row))
        };
        self.repairs.iter().copied().filter(is_due).collect()
    }

    /// Returns all steps that a curve has with any of the repairs.
    fn all_steps(&self, curve: &Curve<'_>) -> Vec<Step> {
        let mut steps: Vec<Step> =
            self.repairs.iter().flat_map(|&repair| curve.steps(self.steps, repair)).collect();
        steps.sort_by_key(|step| step.place);
        steps.dedup();
        steps
    }

    fn measure_rankings(&self, curves: &[Curve<'_>], rows: &mut MeasuredRows<CurveRow>) -> Result<(), Error> {
        let mut sets: Vec<(Option<Repair>, Vec<RowSet<CurveRow>>)> =
            self.repairs.iter().map(|&repair| (repair, Vec::new())).collect();
        for curve in curves {
            let steps = self.all_steps(curve);
            let due = self.due(curve, &steps, rows);
            if due.is_empty() {
                continue;
            }
            let chosen = self.chooser.ranked(curve, &steps)?;
            self.chooser.note_seconds(curve.order, rows);
            for (repair, sets) in sets.iter_mut().filter(|(repair, _)| due.contains(repair)) {
                let own = curve.steps(self.steps, *repair);
                for (&step, chosen) in steps.iter().zip(&chosen).filter(|(step, _)| own.contains(step)) {
                    self.add(curve, step, chosen, *repair, rows, sets)?;
                }
            }
        }
        let scope = curves[0].pool.scope;
        sets.into_iter().try_for_each(|(repair, sets)| self.measure_repaired(scope, repair, sets, rows))
    }

    fn measure_search(&self, curve: &Curve<'_>, rows: &mut MeasuredRows<CurveRow>) -> Result<(), Error> {
        let steps = self.all_steps(curve);
        if self.due(curve, &steps, rows).is_empty() {
            return Ok(());
        }
        let mut search = None;
        let (mut before, mut is_whole) = (None, true);
        for step in steps {
            // Rows with different repairs mask the same heads.
            let found = rows.rows().find(|row| row.curve() == curve.id() && row.step == step.place);
            let chosen = match found.map(Chosen::of_row).transpose()? {
                Some(chosen) => chosen,
                None => {
                    let search = match &mut search {
                        Some(search) => search,
                        None => search.insert(CurveSearch::new(&self.chooser, curve)?),
                    };
                    search.choose(step, before.as_ref())?
                }
            };
            is_whole &= found.is_none();
            for repair in self.due(curve, &[step], rows) {
                let mut sets = Vec::new();
                self.add(curve, step, &chosen, repair, rows, &mut sets)?;
                self.measure_repaired(curve.pool.scope, repair, sets, rows)?;
            }
            before = Some(chosen);
        }
        if is_whole {
            self.chooser.note_seconds(curve.order, rows);
        }
        Ok(())
    }

    /// Adds the row of a step to the sets to be measured, unless it has been measured already.
    fn add(
        &self,
        curve: &Curve<'_>,
        step: Step,
        Chosen { masked, cost, search_score }: &Chosen,
        repair: Option<Repair>,
        rows: &MeasuredRows<CurveRow>,
        sets: &mut Vec<RowSet<CurveRow>>,
    ) -> Result<(), Error> {
        let row = curve.row(step, masked, self.metric(), repair);
        if let Some(stored) = rows.rows().find(|stored| stored.key() == row.key()) {
            return check_heads(stored, &stored.masked_heads, Some(masked));
        }
        if rows.is_due(&row) {
            let Cost { forward, backward, updates } = cost.unwrap_or_default();
            let told = |number| cost.map(|_| number);
            let row = CurveRow {
                search_score: *search_score,
                updates: repair.map(|_| 0),
                forward: told(forward),
                backward: told(backward),
                selection_updates: told(updates),
                ..row
            };
            RowSet::add(sets, masked.clone(), row);
        }
        Ok(())
    }

    /// Repairs the models with these heads masked and adds their rows.
    fn measure_repaired(
        &self,
        scope: records::Scope,
        repair: Option<Repair>,
        sets: Vec<RowSet<CurveRow>>,
        rows: &mut MeasuredRows<CurveRow>,
    ) -> Result<(), Error> {
        let subject = self.subject();
        match repair {
            None | Some(Repair::None) => rows.measure(subject, &self.scored, BASE, sets),
            Some(Repair::Mean) => {
                let folded = self.scored.clone().under(self.chooser.estimate()?.mean_ablation());
                rows.measure(subject, &folded, BASE, sets)
            }
            Some(Repair::LeastSquares) => {
                let on = &self.chooser.estimate()?.on;
                let limit = on.limit.map(|limit| limit.min(self.fit_limit));
                let few = Scored { limit, ..on.clone() };
                sets.into_iter().try_for_each(|set| {
                    stop::check()?;
                    let fitted = subject.refitted(&set.masked, &few)?;
                    rows.measure_other(&fitted, subject, &self.scored, set)
                })
            }
            Some(Repair::Training) => {
                let Some(retraining) = &self.retraining else { return Ok(()) };
                sets.into_iter()
                    .try_for_each(|set| retraining.measure((subject, &self.scored), scope, set, rows))
            }
        }
    }
}
