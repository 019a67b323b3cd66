//! Heads that each ranking or search masks, and the cost of choosing them.
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use core_masking::{HeadId, HeadScores, HeadSet, Measure, Needs};
use records::{Cost, CurveRow, Order};
use subject::{Ablation, Description, Scored, SegmentRelevance, Subject, Work};
use training::Machine;

use super::rearrange::{Derivatives, rearranged};
use super::{Curve, SelectorArgs, Step};
use crate::args::SharedArgs;
use crate::error::Error;
use crate::measured::MeasuredRows;
use crate::order::{Estimate, Oracle, random_order};

/// Maximum number of heads n for which greedy-forward is offered by default: it scores about n² / 2 head sets.
const MAX_GREEDY: usize = 100;

/// Heads that a step masks, and how they were chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Masked heads.
    pub masked: HeadSet,
    /// Cost of choosing them; `None` if costs are not compared.
    pub cost: Option<Cost>,
    /// Score on the search split; `None` for rankings.
    pub search_score: Option<f64>,
}

impl Chosen {
    /// Reads a choice back from its row.
    pub fn of_row(row: &CurveRow) -> Result<Self, Error> {
        let cost = row.forward.map(|_| row.cost());
        Ok(Self { masked: row.masked_heads.parse()?, cost, search_score: row.search_score })
    }
}

/// Inputs and state of rankings and searches.
pub struct Chooser<'a> {
    /// Arguments of the run.
    pub shared: &'a SharedArgs,
    /// Arguments of the searches.
    pub selectors: &'a SelectorArgs,
    /// The setup.
    pub description: &'a Description,
    /// The machine.
    pub machine: &'a Machine,
    /// The model with its data.
    pub subject: &'a Subject,
    /// Segments on which heads are ranked; `None` if no order needs them.
    pub estimate: Option<&'a Estimate>,
    /// Segments for the oracle, on which heads are masked one at a time.
    pub oracle_on: Scored,
    /// Segments on which searches score head sets.
    pub search_on: Scored,
    /// Rankings and searches of this run; criteria that they share are measured together.
    pub orders: Vec<Order>,
    /// True if heads are ranked again after each step, with the heads chosen so far masked.
    pub recompute: bool,
    /// True if costs are recorded.
    pub costs: bool,
    /// Measurements made so far.
    pub known: Known,
}

/// Measurements made so far to choose heads.
#[derive(Default)]
pub struct Known {
    segments: OnceCell<usize>,
    measured: RefCell<BTreeMap<Measure, HeadScores>>,
    /// Criteria that were measured together, with the duration in seconds.
    pub(super) passes: RefCell<Vec<(BTreeSet<Measure>, f64)>>,
    /// Duration of the last choice in seconds, including shared earlier passes; `None` if unknown.
    pub(super) seconds: Cell<Option<f64>>,
}

/// Returns the rankings and searches that are possible for the setup and this many heads; reports if greedy-forward or relevance is not.
pub fn possible_orders(
    (description, subject, machine): (&Description, &Subject, &Machine),
    estimate: &Estimate,
    heads: usize,
) -> Result<Vec<Order>, Error> {
    if heads > MAX_GREEDY && !machine.quiet {
        words::say!(
            "greedy-forward is left out, since it would score thousands of sets of {heads} heads: --order can add it"
        );
    }
    let given = subject.measures(&estimate.on)?;
    let relevance = relevance((description, subject), &estimate.on, 1);
    if let (Err(reason), false) = (&relevance, machine.quiet) {
        words::say!("relevance is left out: {reason:#}");
    }
    let is_possible = |order: &Order| match order {
        Order::By(measure) => given.contains(measure) || measure.entry().needs == Needs::Measures,
        Order::Relevance => relevance.is_ok(),
        Order::GreedyForward => heads <= MAX_GREEDY,
        order if order.is_trained() => description.epochs().is_some(),
        _ => true,
    };
    Ok(Order::all().iter().copied().filter(is_possible).collect())
}

/// Returns the criterion that an order measures or starts from, if any.
fn first_measured(order: Order) -> Option<Order> {
    match order {
        Order::Recomputed | Order::GreedyForward | Order::Swap => Some(Order::Importance),
        order => order.is_measured().then_some(order),
    }
}

/// Computes the relevance of heads on at most `most` segments of `on`.
fn relevance(
    (description, subject): (&Description, &Subject),
    on: &Scored,
    most: usize,
) -> Result<Vec<SegmentRelevance>, Error> {
    description.check_relevance()?;
    let limit = on.limit.map_or(most, |limit| limit.min(most));
    Ok(subject.relevance(&Scored { limit: Some(limit), ..on.clone() })?)
}

impl<'a> Chooser<'a> {
    /// Returns the segments and settings for ranking heads, or an error if no order of the run needed them.
    pub fn estimate(&self) -> Result<&Estimate, Error> {
        self.estimate.ok_or_else(|| Error::input("heads cannot be ranked without --estimate-on"))
    }

    /// Records how long the last choice took.
    pub fn note_seconds(&self, order: Order, rows: &mut MeasuredRows<CurveRow>) {
        if let Some(seconds) = self.known.seconds.take().filter(|_| self.costs) {
            rows.note_choosing(order.name(), seconds);
        }
    }

    /// Returns the heads that a ranking masks at each of these steps.
    pub fn ranked(&self, curve: &Curve<'_>, steps: &[Step]) -> Result<Vec<Chosen>, Error> {
        let (begin, earlier) = (Instant::now(), self.known.passes.borrow().len());
        let none = HeadSet::none();
        let cost = self.ranking_cost(curve)?;
        let chosen = |masked: HeadSet| {
            let cost = if masked.is_empty() { cost.map(|_| Cost::default()) } else { cost };
            Chosen { masked, cost, search_score: None }
        };
        let chosen: Vec<Chosen> = match curve.order {
            // the floor masks all heads, even those that --keep-at-least would keep
            Order::Floor => vec![chosen(curve.pool.heads.iter().copied().collect())],
            Order::FisherRearranged => {
                self.fisher_rearranged(curve, steps)?.into_iter().map(chosen).collect()
            }
            order => {
                let first = self.ranking(curve, &none)?;
                let ranking = if curve.complement { self.reversed(curve, first)? } else { first };
                if self.is_recomputed(order) && !curve.complement {
                    self.recomputed(curve, steps, ranking, cost)?
                } else {
                    let extended = |step: &Step| curve.pool.extend(&none, &ranking, step.masked);
                    steps.iter().map(extended).map(chosen).collect()
                }
            }
        };
        self.known.seconds.set(self.seconds(curve.order, earlier, begin));
        Ok(chosen)
    }

    /// Returns the duration of a choice in seconds, including the passes that it shares with earlier orders. `None` for oracles, whose
    /// scores `ablate-one` may have measured before.
    pub(super) fn seconds(&self, order: Order, earlier: usize, begin: Instant) -> Option<f64> {
        let own = begin.elapsed().as_secs_f64();
        if matches!(order, Order::Oracle | Order::OracleMean) {
            return None;
        }
        let Some(first) = first_measured(order) else { return Some(own) };
        let ingredients = self.estimate?.ingredients(first);
        let passes = self.known.passes.borrow();
        let is_shared = |(measures, _): &&(BTreeSet<Measure>, f64)| !measures.is_disjoint(&ingredients);
        Some(own + passes[..earlier].iter().filter(is_shared).map(|(_, seconds)| seconds).sum::<f64>())
    }

    fn is_recomputed(&self, order: Order) -> bool {
        self.recompute && order.is_measured() || order == Order::Recomputed
    }

    /// Returns the pool's open heads in the order in which they are to be masked.
    fn ranking(&self, curve: &Curve<'_>, masked: &HeadSet) -> Result<Vec<HeadId>, Error> {
        let pool = curve.pool;
        let scores = match curve.order {
            Order::Random => {
                let seed = curve.seed.unwrap_or_default();
                let order = random_order(&pool.heads, self.description.name(), seed);
                order.into_iter().zip(0..).map(|(id, place)| (id, f64::from(place))).collect()
            }
            Order::Oracle => self.oracle(&pool.heads, None)?,
            Order::OracleMean => self.oracle(&pool.heads, Some(self.estimate()?.mean_ablation()))?,
            Order::Relevance => self.relevances(&pool.heads)?,
            order => {
                let measured = first_measured(order).unwrap_or(order);
                if masked.is_empty() {
                    self.scores(measured)?
                } else {
                    self.estimate()?.scores(measured, self.subject, masked)?
                }
            }
        };
        Ok(pool.order(&scores))
    }

    /// Returns all heads in the reverse of the order in which the curve masks them.
    ///
    /// - `order`: ranking on the full model
    fn reversed(&self, curve: &Curve<'_>, mut order: Vec<HeadId>) -> Result<Vec<HeadId>, Error> {
        let mut sequence: Vec<HeadId> = Vec::new();
        let mut masked = HeadSet::none();
        for count in curve.pool.counts() {
            if self.is_recomputed(curve.order) && !masked.is_empty() {
                order = self.ranking(curve, &masked)?;
            }
            let next = curve.pool.extend(&masked, &order, count);
            sequence.extend(order.iter().filter(|&&id| next.contains(id) && !masked.contains(id)));
            masked = next;
        }
        // Heads that a layer must keep are last before the reversal.
        sequence.extend(order.iter().filter(|&&id| !masked.contains(id)));
        sequence.reverse();
        Ok(sequence)
    }

    /// Returns the heads of each step, ranking again before each step with the heads chosen so far masked.
    fn recomputed(
        &self,
        curve: &Curve<'_>,
        steps: &[Step],
        mut order: Vec<HeadId>,
        pass: Option<Cost>,
    ) -> Result<Vec<Chosen>, Error> {
        let (mut masked, mut cost) = (HeadSet::none(), pass.map(|_| Cost::default()));
        let mut choose = |step: &Step| {
            if !masked.is_empty() {
                order = self.ranking(curve, &masked)?;
            }
            masked = curve.pool.extend(&masked, &order, step.masked);
            if let (Some(cost), Some(pass)) = (&mut cost, pass.filter(|_| step.masked > 0)) {
                cost.forward += pass.forward;
                cost.backward += pass.backward;
            }
            Ok(Chosen { masked: masked.clone(), cost, search_score: None })
        };
        steps.iter().map(&mut choose).collect()
    }

    /// Returns a criterion for all heads of the full model. Criteria that share passes are measured together, once.
    pub(super) fn scores(&self, order: Order) -> Result<HeadScores, Error> {
        let estimate = self.estimate()?;
        let ingredients = estimate.ingredients(order);
        let mut known = self.known.measured.borrow_mut();
        let needs = |measure: &Measure| measure.entry().needs;
        let missing: Vec<_> = ingredients.iter().filter(|one| !known.contains_key(one)).map(needs).collect();
        if !missing.is_empty() {
            let wanted = self.orders.iter().filter_map(|&order| first_measured(order));
            let given = self.subject.measures(&estimate.on)?;
            let wanted =
                wanted.flat_map(|order| estimate.ingredients(order)).filter(|one| given.contains(one));
            let together = wanted.chain(ingredients).filter(|one| missing.contains(&needs(one))).collect();
            let begin = Instant::now();
            let found = self.subject.measure(&estimate.on, &HeadSet::none(), &together)?;
            self.known.passes.borrow_mut().push((together, begin.elapsed().as_secs_f64()));
            known.extend(found.into_iter().map(|(measure, means)| (measure, means.means())));
        }
        Ok(estimate.score(order, &known))
    }

    /// Returns the heads with the smallest batch Fisher information at each step, rearranged within modules.
    fn fisher_rearranged(&self, curve: &Curve<'_>, steps: &[Step]) -> Result<Vec<HeadSet>, Error> {
        let (measure, none) = (Measure::FisherBatches, HeadSet::none());
        let found = self.subject.measure(&self.estimate()?.on, &none, &BTreeSet::from([measure]))?;
        let found = &found[&measure];
        let of = |&id: &HeadId| Some((id, found.terms(id)?.derivatives.clone()));
        let derivatives: Derivatives = curve.pool.heads.iter().filter_map(of).collect();
        let order = curve.pool.order(&found.means());
        let set = |step: &Step| rearranged(&curve.pool.extend(&none, &order, step.masked), &derivatives);
        Ok(steps.iter().map(set).collect())
    }

    fn relevances(&self, heads: &[HeadId]) -> Result<HeadScores, Error> {
        let most = self.selectors.relevance_limit as usize;
        let segments = relevance((self.description, self.subject), &self.estimate()?.on, most)?;
        let share = |id| {
            let own = |segment: &SegmentRelevance| segment.heads.get(&id).map_or(0.0, |head| head.share);
            SegmentRelevance::mean(&segments, own)
        };
        Ok(heads.iter().map(|&id| (id, share(id))).collect())
    }

    /// Returns the loss of quality from ablating each head, from results of `ablate-one`; missing rows are measured.
    fn oracle(&self, heads: &[HeadId], ablation: Option<Ablation>) -> Result<HeadScores, Error> {
        let on = self.oracle_on.clone();
        let on = if let Some(ablation) = ablation { on.under(ablation) } else { on };
        // A sweep of all heads serves other experiments too. If costs are compared, only the curve's heads are measured.
        let measured = if self.costs { heads.to_vec() } else { self.subject.layout().heads() };
        let with = (self.shared, self.machine);
        let scores = Oracle::measured(&on, &measured, (self.description, self.subject), with)?.scores(heads);
        scores.ok_or_else(|| Error::input("ablate-one has no row for a head"))
    }

    /// Returns the cost of a ranking; `None` if costs are not recorded.
    fn ranking_cost(&self, curve: &Curve<'_>) -> Result<Option<Cost>, Error> {
        if !self.costs {
            return Ok(None);
        }
        let forward = |forward| Cost { forward, ..Cost::default() };
        let heads = curve.pool.heads.len();
        Ok(Some(match curve.order {
            Order::Random | Order::Floor => Cost::default(),
            // the full model and each head; means take one more pass
            Order::Oracle => forward((heads + 1) * self.segments()?),
            Order::OracleMean => forward((heads + 2) * self.segments()?),
            Order::Relevance => {
                let segments = self.segments()?.min(self.selectors.relevance_limit as usize);
                Cost { forward: segments, backward: segments, updates: 0 }
            }
            order => self.pass(order)?,
        }))
    }

    /// Returns the cost of ranking all heads once by a criterion.
    pub(super) fn pass(&self, order: Order) -> Result<Cost, Error> {
        let is_forward =
            |measure: Measure| !measure.is_gradient() && measure.entry().needs != Needs::Measures;
        let forward = self.segments()?;
        let backward = if matches!(order, Order::By(measure) if is_forward(measure)) { 0 } else { forward };
        Ok(Cost { forward, backward, updates: 0 })
    }

    /// Returns the number of segments that heads are ranked on.
    fn segments(&self) -> Result<usize, Error> {
        if let Some(&known) = self.known.segments.get() {
            return Ok(known);
        }
        let segments = self.subject.pass(&self.estimate()?.on, 64, Work::Score)?.segments;
        Ok(*self.known.segments.get_or_init(|| segments))
    }
}
