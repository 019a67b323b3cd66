//! The heads that each method chooses, and what choosing them costs.
use std::cell::OnceCell;

use anyhow::{Context, bail};
use core_masking::{HeadId, HeadScores, HeadSet, Measure, Needs};
use experiment::{Estimate, HeadSweep, Oracle, SharedArgs, random_order};
use records::Order;
use significance::TestArgs;
use subject::{Description, Subject, Work};
use training::Machine;

use crate::method::Method;
use crate::selectors::{MOST_GREEDY, SelectorArgs, is_trained};

/// Cost of choosing heads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Segments that the model reads forward.
    pub forward: usize,
    /// Of these, segments whose loss is followed backward.
    pub backward: usize,
    /// Updates of what chooses them, where that is trained.
    pub updates: usize,
}

/// Heads that a method masks.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The heads.
    pub masked: HeadSet,
    /// Cost of choosing them.
    pub cost: Cost,
}

/// Parts that all choices share.
pub struct Selection<'a> {
    pub shared: &'a SharedArgs,
    pub selectors: &'a SelectorArgs,
    pub description: &'a Description,
    pub machine: &'a Machine,
    pub subject: &'a dyn Subject,
    /// Segments that heads are chosen on.
    pub estimate: &'a Estimate,
    segments: OnceCell<usize>,
}

impl<'a> Selection<'a> {
    pub fn new(
        (shared, selectors): (&'a SharedArgs, &'a SelectorArgs),
        description: &'a Description,
        machine: &'a Machine,
        (subject, estimate): (&'a dyn Subject, &'a Estimate),
    ) -> Self {
        Self { shared, selectors, description, machine, subject, estimate, segments: OnceCell::new() }
    }

    /// Methods for which the subject, and the split that heads are chosen on, have what they need, of this many `heads`. Says so where
    /// greedy-forward is left out.
    ///
    /// # Errors
    /// If the split is at fault.
    pub fn possible(&self, heads: usize) -> anyhow::Result<Vec<Order>> {
        if heads > MOST_GREEDY && !self.machine.quiet {
            words::say!(
                "greedy-forward is left out, which would score thousands of sets of {heads} heads: --method names it"
            );
        }
        let given = self.subject.measures(&self.estimate.on)?;
        let is_given = |order: &Order| match order {
            Order::By(measure) => given.contains(measure) || measure.entry().needs == Needs::Measures,
            Order::Importance | Order::Oracle | Order::Random | Order::Recomputed | Order::Swap => true,
            Order::GreedyForward => heads <= MOST_GREEDY,
            &order if is_trained(order) => self.description.epochs().is_some(),
            _ => false,
        };
        Ok(Order::all().iter().copied().filter(is_given).collect())
    }

    /// The heads that a method masks at each of its steps.
    ///
    /// # Errors
    /// If the split that they are chosen on is at fault, or lacks what the method needs.
    pub fn choose(&self, method: &Method<'_>) -> anyhow::Result<Vec<Chosen>> {
        match method.order {
            Order::Recomputed => self.recomputed(method),
            Order::Random => {
                let seed = method.seed.unwrap_or_default();
                let order = random_order(&method.pool.heads, self.description.name(), seed);
                Ok(self.first(method, order, Cost::default()))
            }
            Order::Oracle => {
                let forward = (method.pool.heads.len() + 1) * self.segments()?;
                let order = method.pool.order(&self.oracle(&method.pool.heads)?);
                Ok(self.first(method, order, Cost { forward, ..Cost::default() }))
            }
            Order::Importance | Order::By(_) => {
                let scores = self.estimate.scores(method.order, self.subject, &HeadSet::none())?;
                Ok(self.first(method, method.pool.order(&scores), self.pass(method.order)?))
            }
            Order::GreedyForward | Order::Swap => self.searched(method),
            Order::Gates | Order::Subset | Order::SubsetStraight => self.trained(method),
            other => bail!("method {other} cannot choose heads yet"),
        }
    }

    /// The first heads of an order at each step.
    fn first(&self, method: &Method<'_>, mut order: Vec<HeadId>, cost: Cost) -> Vec<Chosen> {
        if method.complement {
            order.reverse();
        }
        let masked = |count| method.pool.extend(&HeadSet::none(), &order, count);
        method.steps().iter().map(|step| Chosen { masked: masked(step.count), cost }).collect()
    }

    /// The least important heads, scored again without those of the steps before.
    fn recomputed(&self, method: &Method<'_>) -> anyhow::Result<Vec<Chosen>> {
        let (mut masked, mut cost) = (HeadSet::none(), Cost::default());
        let pass = self.pass(Order::Importance)?;
        let mut next = |count| {
            let scores = self.estimate.scores(Order::Importance, self.subject, &masked)?;
            masked = method.pool.extend(&masked, &method.pool.order(&scores), count);
            cost.forward += pass.forward;
            cost.backward += pass.backward;
            Ok(Chosen { masked: masked.clone(), cost })
        };
        method.steps().iter().map(|step| next(step.count)).collect()
    }

    /// Cost of scoring all heads once.
    pub fn pass(&self, order: Order) -> anyhow::Result<Cost> {
        let is_forward =
            |measure: Measure| !measure.is_gradient() && measure.entry().needs != Needs::Measures;
        let forward = self.segments()?;
        let backward = if matches!(order, Order::By(measure) if is_forward(measure)) { 0 } else { forward };
        Ok(Cost { forward, backward, updates: 0 })
    }

    /// Number of segments that heads are chosen on.
    fn segments(&self) -> anyhow::Result<usize> {
        if let Some(&known) = self.segments.get() {
            return Ok(known);
        }
        let segments = self.subject.pass(&self.estimate.on, 64, Work::Score)?.segments;
        Ok(*self.segments.get_or_init(|| segments))
    }

    /// The score that is lost without each head on the split that heads are chosen on.
    fn oracle(&self, heads: &[HeadId]) -> anyhow::Result<HeadScores> {
        let on = &self.estimate.on;
        let sweep = HeadSweep::one_at_a_time(on.clone(), &self.subject.layout(), TestArgs::default());
        let path = self.description.result_path(&self.shared.results, "ablate-one", on);
        let found = sweep.ingredient(self.subject, heads, &path, self.shared, self.machine)?;
        Oracle::of(found.rows).scores(heads).context("ablate-one has no row for a head")
    }
}
