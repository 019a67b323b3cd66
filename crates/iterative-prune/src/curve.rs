//! The score along an order of heads.
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::Context;
use core_masking::{HeadId, HeadScores, HeadSet};
use experiment::{MeasuredRows, Pool, RowPlan, RowSet, check_heads, random_order};
use records::{BASE, CurveId, MetricName, Order, PruningRow, TestedRow};

use crate::Pruning;

/// One line of Figure 3.
#[derive(Debug, Clone)]
pub struct Curve<'a> {
    /// The heads that are ordered.
    pub pool: &'a Pool,
    /// Their order; the floor has none.
    pub order: Option<Order>,
    /// Seed of a random order.
    pub seed: Option<u64>,
    /// Reverses the order.
    pub complement: bool,
}

impl<'a> Curve<'a> {
    /// All curves of an order over a pool: one for each seed of a random one, and of any other its complement. That of a
    /// random order would be another random order.
    pub fn of(pool: &'a Pool, order: Order, seeds: &[u64]) -> Vec<Self> {
        let curve = |seed, complement| Self { pool, order: Some(order), seed, complement };
        if order == Order::Random {
            return seeds.iter().map(|&seed| curve(Some(seed), false)).collect();
        }
        vec![curve(None, false), curve(None, true)]
    }

    /// The floor of a pool's curves.
    pub fn floor(pool: &'a Pool) -> Self {
        Self { pool, order: None, seed: None, complement: false }
    }

    /// Numbers of masked heads at its steps.
    fn counts(&self) -> Vec<usize> {
        match self.order {
            Some(_) => self.pool.counts(),
            None => vec![self.pool.heads.len()],
        }
    }

    /// Its rows, without scores, for the heads that are masked at each step.
    fn row(&self, step: usize, masked: &HeadSet, metric: MetricName) -> PruningRow {
        PruningRow {
            order_seed: self.seed,
            complement: self.complement,
            ..self.pool.row(self.order.unwrap_or(Order::Floor), step, masked, metric)
        }
    }

    /// Its name in result files.
    pub fn id(&self) -> CurveId {
        let curve = self.pool.curve(self.order.unwrap_or(Order::Floor));
        CurveId { order_seed: self.seed, complement: self.complement, ..curve }
    }

    /// Returns true if a row belongs to this curve.
    pub fn holds(&self, other: &impl TestedRow) -> bool {
        self.id().to_string() == other.family()
    }

    /// The masked heads at each step; `intact`: scores on the intact model, by order, as far as they are known.
    fn steps(&self, pruning: &Pruning<'_>, intact: &mut IntactScores) -> anyhow::Result<Vec<HeadSet>> {
        if self.order.is_none() {
            return Ok(vec![self.pool.heads.iter().copied().collect()]);
        }
        let mut masked = HeadSet::none();
        let mut order = self.order(pruning, &masked, intact)?;
        if self.complement {
            order = self.reversed(pruning, order)?;
        }
        let mut steps = Vec::new();
        for count in self.pool.counts() {
            if pruning.args.recompute && !self.complement && !masked.is_empty() {
                order = self.order(pruning, &masked, intact)?;
            }
            masked = self.pool.extend(&masked, &order, count);
            steps.push(masked.clone());
        }
        Ok(steps)
    }

    /// The heads from the last that the curve masks to the first. `order`: that of the intact model.
    fn reversed(&self, pruning: &Pruning<'_>, mut order: Vec<HeadId>) -> anyhow::Result<Vec<HeadId>> {
        let mut sequence: Vec<HeadId> = Vec::new();
        let mut masked = HeadSet::none();
        for count in self.pool.counts() {
            if pruning.args.recompute && !masked.is_empty() {
                order = self.order(pruning, &masked, &mut IntactScores::new())?;
            }
            let next = self.pool.extend(&masked, &order, count);
            sequence.extend(order.iter().filter(|&&id| next.contains(id) && !masked.contains(id)));
            masked = next;
        }
        // Heads that a layer must keep are the last of all.
        sequence.extend(order.iter().filter(|&&id| !masked.contains(id)));
        sequence.reverse();
        Ok(sequence)
    }

    /// The pool's heads that are not masked, those to be masked first in front.
    fn order(
        &self,
        pruning: &Pruning<'_>,
        masked: &HeadSet,
        intact: &mut IntactScores,
    ) -> anyhow::Result<Vec<HeadId>> {
        let heads = &self.pool.heads;
        let scores = match self.order.context("a floor has no order")? {
            Order::Random => {
                let order = random_order(heads, pruning.name, self.seed.unwrap_or_default());
                order.into_iter().zip(0..).map(|(id, place)| (id, f64::from(place))).collect()
            }
            Order::Oracle => pruning.oracle(heads)?,
            order if masked.is_empty() => match intact.entry(order) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(place) => place.insert(pruning.scores(order, masked)?).clone(),
            },
            order => pruning.scores(order, masked)?,
        };
        Ok(self.pool.order(&scores))
    }
}

/// Scores on the intact model, which serve the curves of an order over all pools.
type IntactScores = BTreeMap<Order, HeadScores>;

/// The rows of these curves: each curve is a family.
pub fn plan(curves: &[Curve<'_>]) -> RowPlan {
    let curves = || curves.iter().map(|curve| (curve.id(), curve.counts().len()));
    let names = curves().flat_map(|(id, steps)| (0..steps).map(move |step| id.step(step)));
    let families = curves().map(|(id, steps)| (id.to_string(), steps));
    RowPlan { families: families.collect(), places: names.zip(0..).collect() }
}

/// Scores all steps of `curves` that have no row yet; head sets that several curves share are scored once.
///
/// # Errors
/// If heads cannot be ordered, the split is at fault, or the file cannot be written.
pub fn draw(
    pruning: &Pruning<'_>,
    curves: &[Curve<'_>],
    rows: &mut MeasuredRows<PruningRow>,
) -> anyhow::Result<()> {
    rows.renew(|row| curves.iter().any(|curve| curve.holds(row)));
    let sets = sets(pruning, curves, rows)?;
    Ok(rows.measure(pruning.subject, &pruning.scored, BASE, sets)?)
}

/// The head sets whose rows are missing.
///
/// # Errors
/// If heads cannot be ordered, or a row is of another order than now.
pub fn sets<R: TestedRow + From<PruningRow>>(
    pruning: &Pruning<'_>,
    curves: &[Curve<'_>],
    rows: &MeasuredRows<R>,
) -> anyhow::Result<Vec<RowSet<R>>> {
    let metric = pruning.metric().name();
    let of_step = |curve: &Curve<'_>, step: usize| R::from(curve.row(step, &HeadSet::none(), metric));
    let is_due =
        |curve: &&Curve<'_>| (0..curve.counts().len()).any(|step| rows.is_due(&of_step(curve, step)));
    let mut sets = Vec::new();
    let mut intact = IntactScores::new();
    for curve in curves.iter().filter(is_due) {
        let stored = |step: usize| rows.rows().find(|stored| stored.key() == of_step(curve, step).key());
        for (step, masked) in curve.steps(pruning, &mut intact)?.into_iter().enumerate() {
            if let Some(stored) = stored(step) {
                check_heads(stored, stored.masked_heads().unwrap_or_default(), Some(&masked))?;
            }
            let row = R::from(curve.row(step, &masked, metric));
            if rows.is_due(&row) {
                RowSet::add(&mut sets, masked, row);
            }
        }
    }
    Ok(sets)
}
