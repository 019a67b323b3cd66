//! The heads that each method chooses, and what choosing them costs.
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Context, bail};
use core_masking::{HeadId, HeadScores, HeadSet, Measure, Needs, Rule};
use experiment::{Estimate, HeadSweep, Oracle, SharedArgs, random_order};
use records::{Cost, Order};
use significance::TestArgs;
use subject::{Ablation, Description, Scored, SegmentRelevance, Subject, Work};
use training::Machine;

use crate::method::Method;
use crate::rearrange::{Derivatives, rearranged};
use crate::selectors::{MOST_GREEDY, SelectorArgs, is_trained};

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
    measured: RefCell<BTreeMap<Measure, HeadScores>>,
    passes: RefCell<Vec<Pass>>,
    /// Seconds of trainings of gates so far, those that were there before too.
    pub training_seconds: Cell<f64>,
}

/// Measures that were taken of the intact model together.
struct Pass {
    measures: BTreeSet<Measure>,
    seconds: f64,
}

impl<'a> Selection<'a> {
    pub fn new(
        (shared, selectors): (&'a SharedArgs, &'a SelectorArgs),
        description: &'a Description,
        machine: &'a Machine,
        (subject, estimate): (&'a dyn Subject, &'a Estimate),
    ) -> Self {
        let (segments, measured, passes) = (OnceCell::new(), RefCell::default(), RefCell::default());
        let training_seconds = Cell::default();
        Self {
            shared,
            selectors,
            description,
            machine,
            subject,
            estimate,
            segments,
            measured,
            passes,
            training_seconds,
        }
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
        let followed = self.relevance(1);
        let is_followed = followed.is_ok();
        if let (Err(reason), false) = (followed, self.machine.quiet) {
            words::say!("relevance is left out: {reason:#}");
        }
        let is_given = |order: &Order| match order {
            Order::By(measure) => given.contains(measure) || measure.entry().needs == Needs::Measures,
            Order::Relevance => is_followed,
            Order::GreedyForward => heads <= MOST_GREEDY,
            &order if is_trained(order) => self.description.epochs().is_some(),
            _ => true,
        };
        Ok(Order::all().iter().copied().filter(is_given).collect())
    }

    /// The heads that a method masks at each of its steps, and the seconds that it takes by itself: passes that an earlier method made,
    /// and that this one would have to make, count too. Absent of oracles, whose scores `ablate-one` may have measured before.
    ///
    /// # Errors
    /// As [`choose`](Self::choose).
    pub fn choose_timed(&self, method: &Method<'_>) -> anyhow::Result<(Vec<Chosen>, Option<f64>)> {
        let (begin, earlier) = (Instant::now(), self.passes.borrow().len());
        let trained = self.training_seconds.get();
        let chosen = self.choose(method)?;
        let first = match method.order {
            Order::Importance | Order::By(_) => method.order,
            Order::Recomputed | Order::GreedyForward | Order::Swap => Order::Importance,
            Order::Oracle | Order::OracleMean => return Ok((chosen, None)),
            order if is_trained(order) => return Ok((chosen, Some(self.training_seconds.get() - trained))),
            _ => return Ok((chosen, Some(begin.elapsed().as_secs_f64()))),
        };
        let ingredients = self.estimate.ingredients(first);
        let passes = self.passes.borrow();
        let shared =
            passes[..earlier].iter().filter(|pass| ingredients.iter().any(|one| pass.measures.contains(one)));
        let shared: f64 = shared.map(|pass| pass.seconds).sum();
        Ok((chosen, Some(shared + begin.elapsed().as_secs_f64())))
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
            Order::Oracle | Order::OracleMean => {
                let is_mean = method.order == Order::OracleMean;
                let ablation = if is_mean { self.estimate.mean_ablation() } else { Ablation::Zero };
                // the intact model, each head, and what the means are of
                let forward = (method.pool.heads.len() + 1 + usize::from(is_mean)) * self.segments()?;
                let order = method.pool.order(&self.oracle(&method.pool.heads, ablation)?);
                Ok(self.first(method, order, Cost { forward, ..Cost::default() }))
            }
            Order::FisherRearranged => self.fisher_rearranged(method),
            Order::Relevance => {
                let segments = self.relevance(self.selectors.relevance_limit as usize)?;
                let share = |id| {
                    let own =
                        |segment: &SegmentRelevance| segment.heads.get(&id).map_or(0.0, |head| head.share);
                    SegmentRelevance::mean(&segments, own)
                };
                let scores = method.pool.heads.iter().map(|&id| (id, share(id))).collect();
                let cost = Cost { forward: segments.len(), backward: segments.len(), updates: 0 };
                Ok(self.first(method, method.pool.order(&scores), cost))
            }
            Order::Importance | Order::By(_) => {
                let scores = self.scores(method.order)?;
                Ok(self.first(method, method.pool.order(&scores), self.pass(method.order)?))
            }
            Order::GreedyForward | Order::Swap => self.searched(method),
            Order::Gates | Order::Subset | Order::SubsetStraight => self.trained(method),
            Order::Floor => bail!("all heads are masked there: it is no method"),
        }
    }

    /// Scores of the heads of the intact model. Measures that take the same passes are measured together, once.
    pub fn scores(&self, order: Order) -> anyhow::Result<HeadScores> {
        let mut known = self.measured.borrow_mut();
        let missing: Vec<Measure> =
            self.estimate.ingredients(order).into_iter().filter(|one| !known.contains_key(one)).collect();
        if !missing.is_empty() {
            let is_alike =
                |one: &Measure| missing.iter().any(|other| other.entry().needs == one.entry().needs);
            let (alike, begin) = (Measure::of_passes().filter(is_alike).collect(), Instant::now());
            let found = self.subject.measure(&self.estimate.on, &HeadSet::none(), &alike)?;
            let pass = Pass { measures: alike, seconds: begin.elapsed().as_secs_f64() };
            self.passes.borrow_mut().push(pass);
            known.extend(found.into_iter().map(|(measure, means)| (measure, means.means())));
        }
        Ok(self.estimate.score(order, &known))
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
            let scores = if masked.is_empty() {
                self.scores(Order::Importance)?
            } else {
                self.estimate.scores(Order::Importance, self.subject, &masked)?
            };
            masked = method.pool.extend(&masked, &method.pool.order(&scores), count);
            cost.forward += pass.forward;
            cost.backward += pass.backward;
            Ok(Chosen { masked: masked.clone(), cost })
        };
        method.steps().iter().map(|step| next(step.count)).collect()
    }

    /// The least by Fisher's score of batches, exchanged within each module.
    fn fisher_rearranged(&self, method: &Method<'_>) -> anyhow::Result<Vec<Chosen>> {
        let measure = Measure::FisherBatches;
        let measures = BTreeSet::from([measure]);
        let found = self.subject.measure(&self.estimate.on, &HeadSet::none(), &measures)?;
        let found = &found[&measure];
        let of = |&id: &HeadId| Some((id, found.terms(id)?.derivatives.clone()));
        let derivatives: Derivatives = method.pool.heads.iter().filter_map(of).collect();
        let cost = self.pass(Order::By(measure))?;
        let mut chosen = self.first(method, method.pool.order(&found.means()), cost);
        chosen.iter_mut().for_each(|step| step.masked = rearranged(&step.masked, &derivatives));
        Ok(chosen)
    }

    /// Relevance of heads for at most this many of the segments that heads are chosen on.
    fn relevance(&self, most: usize) -> anyhow::Result<Vec<SegmentRelevance>> {
        self.description.check_relevance()?;
        let on = self.estimate.on.clone();
        let limit = on.limit.map_or(most, |limit| limit.min(most));
        Ok(self.subject.relevance(&Scored { limit: Some(limit), ..on }, Rule::Paper)?)
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
    fn oracle(&self, heads: &[HeadId], ablation: Ablation) -> anyhow::Result<HeadScores> {
        let on = self.estimate.on.clone().under(ablation);
        let path = self.description.result_path(&self.shared.results, "ablate-one", &on);
        let sweep = HeadSweep::one_at_a_time(on, &self.subject.layout(), TestArgs::default());
        let found = sweep.ingredient(self.subject, heads, &path, self.shared, self.machine)?;
        Oracle::of(found.rows).scores(heads).context("ablate-one has no row for a head")
    }
}
