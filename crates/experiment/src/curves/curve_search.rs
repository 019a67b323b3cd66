//! Searches for the heads of a curve, by scoring head sets or by training gates.
use std::cell::Cell;
use std::time::Instant;

use core_masking::{HeadId, HeadSet};
use records::{Cost, Order};
use subject::{Evaluator, FineTuning, InitialWeights, Scored, TrainedWeights, Work};
use training::{Closing, GATE_RATE, GateStart, GateTraining, Gating, MULTIPLIER_RATE, Penalty};

use super::choose::{Chooser, Chosen};
use super::{Curve, Search, Step};
use crate::error::Error;

/// A search for the heads of a curve, one step at a time.
pub struct CurveSearch<'a> {
    chooser: &'a Chooser<'a>,
    curve: &'a Curve<'a>,
    /// The pool's heads by increasing importance.
    order: Vec<HeadId>,
    /// Scores head sets on the search split; opened by the first search.
    evaluator: Option<Evaluator<'a>>,
    seconds: Option<f64>,
}

impl<'a> CurveSearch<'a> {
    /// Prepares a search; a search by score starts from a ranking by importance.
    pub fn new(chooser: &'a Chooser<'a>, curve: &'a Curve<'a>) -> Result<Self, Error> {
        if curve.order.is_trained() {
            return Ok(Self { chooser, curve, order: Vec::new(), evaluator: None, seconds: Some(0.0) });
        }
        let (begin, earlier) = (Instant::now(), chooser.known.passes.borrow().len());
        let order = curve.pool.order(&chooser.scores(Order::Importance)?);
        let seconds = chooser.seconds(curve.order, earlier, begin);
        Ok(Self { chooser, curve, order, evaluator: None, seconds })
    }

    /// Chooses the heads of a step.
    ///
    /// - `before`: heads of the previous step
    pub fn choose(&mut self, step: Step, before: Option<&Chosen>) -> Result<Chosen, Error> {
        let begin = Instant::now();
        let chosen = if step.masked == 0 {
            let cost = self.chooser.costs.then(Cost::default);
            Chosen { masked: HeadSet::none(), cost, search_score: None }
        } else if self.curve.order.is_trained() {
            let (chosen, seconds) = self.trained(step.masked)?;
            self.seconds = self.seconds.map(|before| before + seconds);
            self.chooser.known.seconds.set(self.seconds);
            return Ok(chosen);
        } else {
            self.searched(step.masked, before)?
        };
        self.seconds = self.seconds.map(|before| before + begin.elapsed().as_secs_f64());
        self.chooser.known.seconds.set(self.seconds);
        Ok(chosen)
    }

    /// Searches by score, starting from the ranking by importance.
    fn searched(&mut self, count: usize, before: Option<&Chosen>) -> Result<Chosen, Error> {
        let (Chooser { subject, search_on, selectors, shared, .. }, curve) = (self.chooser, self.curve);
        let evaluator = match self.evaluator.take() {
            Some(evaluator) => self.evaluator.insert(evaluator),
            None => self.evaluator.insert(subject.evaluator(search_on, 0)?),
        };
        let scored = Cell::new(0);
        let mut scores = |sets: &[HeadSet]| {
            scored.update(|before| before + sets.len());
            let mut scores = Vec::with_capacity(sets.len());
            evaluator.evaluate(sets, &mut |_, evaluation| {
                scores.push(evaluation.score);
                Ok(())
            })?;
            Ok(scores)
        };
        let direction = subject.metric(&search_on.split).name().direction();
        let mut search = Search { pool: curve.pool, order: &self.order, direction, scores: &mut scores };
        let is_greedy = curve.order == Order::GreedyForward;
        let (masked, search_score) = if is_greedy {
            search.grow(before.map_or_else(HeadSet::none, |before| before.masked.clone()), count)?
        } else {
            search.exchange(count, selectors.evaluations, shared.seed())?
        };
        let cost = if self.chooser.costs {
            let pass = self.chooser.pass(Order::Importance)?;
            let earlier = before.filter(|_| is_greedy).and_then(|before| before.cost);
            let earlier = earlier.map_or(pass.forward, |cost| cost.forward.max(pass.forward));
            let segments = subject.pass(search_on, 64, Work::Score)?.segments;
            Some(Cost { forward: earlier + scored.get() * segments, ..pass })
        } else {
            None
        };
        Ok(Chosen { masked, cost, search_score })
    }

    /// Trains only the gates, for this number of masked heads; returns the heads whose gates closed, and the duration in seconds.
    fn trained(&self, count: usize) -> Result<(Chosen, f64), Error> {
        let (Chooser { subject, description, selectors, shared, machine, .. }, curve) =
            (self.chooser, self.curve);
        let epochs = selectors.selector_epochs as usize;
        let split = Scored::first(description.train_split().to_owned(), None, false);
        let read = epochs * subject.pass(&split, 64, Work::Score)?.segments;
        let (heads, seed) = (curve.pool.heads.clone(), shared.seed());
        let open = heads.len() - count;
        let closing = if curve.order == Order::Gates {
            let (start, penalty) = (GateStart::Open, Penalty::Heads(open));
            Closing::Concrete { start, multiplier_rate: MULTIPLIER_RATE, penalty }
        } else {
            Closing::Subset { open, straight_through: curve.order == Order::SubsetStraight }
        };
        // Differs from Li et al. (2021), who use 0.5 for BERT and 0.2 for a translator. In the 119 updates of an epoch of `demo-language`,
        // 0.5 is no better for sampled subsets (2.676 nats with 8 of 32 heads, 2.663 at 0.05), and worse straight-through (2.961, 2.833).
        let learning_rate = GATE_RATE;
        let tuning = FineTuning {
            name: format!("{}-{open}", curve.order),
            initial: InitialWeights::Trained,
            gating: Gating::Trained(GateTraining { heads, closing, learning_rate, seed }),
            trained: TrainedWeights::None,
            epochs,
            seed,
        };
        let tuned = description.fine_tune(machine, &tuning)?;
        let gates = tuned.gates.ok_or_else(|| Error::input("a training has no gates"))?;
        let masked = curve.pool.extend(&HeadSet::none(), &curve.pool.order(&gates.scores()), count);
        let cost = Cost { forward: read, backward: read, updates: tuned.steps };
        Ok((Chosen { masked, cost: self.chooser.costs.then_some(cost), search_score: None }, tuned.seconds))
    }
}
