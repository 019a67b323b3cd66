//! Curves over the share of masked heads, and how many heads can go.
use records::{Order, PruningRow};

use super::order::Curve;
use crate::significance::{Criterion, Rules, Which};

/// One curve: the steps of one order, by one seed if it is random.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Seed of a random order.
    pub seed: Option<u64>,
    /// The rows, from the first step on; `masked` never falls.
    pub steps: Vec<PruningRow>,
}

/// The heads that can go by one rule, or the median over several runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Removable {
    /// Share of the heads, in percent.
    pub percent: f64,
    /// The least and the greatest share of several runs, in percent.
    pub range: Option<(f64, f64)>,
    /// What is left without these heads; absent for several runs.
    pub step: Option<Step>,
    /// Whether the climb ended for want of a test, so that more might go.
    pub is_open: bool,
}

/// One step of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Number of masked heads.
    pub masked: usize,
    /// Score without them, in the unit of the metric.
    pub score: f64,
    /// `score` minus the base score, in the unit of the metric.
    pub delta: f64,
}

impl Run {
    /// Whether no step is missing: a killed run may have the first and the last alone.
    fn is_gapless(&self) -> bool {
        self.without_gap().len() == self.steps.len()
    }

    /// The steps before the first one that is missing. Without heads masked all curves are equal, so the first may be
    /// that of one masked share.
    fn without_gap(&self) -> &[PruningRow] {
        let first = self.steps.first().map_or(0, |row| row.step);
        let steps = self.steps.iter().enumerate();
        let length = steps.take_while(|(index, row)| first <= 1 && row.step == first + index).count();
        &self.steps[..length]
    }

    /// Whether all p-values are adjusted, which is done when all steps are there.
    fn is_adjusted(&self) -> bool {
        self.steps.iter().all(|row| row.p_value.is_none() || row.p_adjusted.is_some())
    }

    /// Share of the heads that the last step masks, in percent.
    fn end(&self) -> f64 {
        self.steps.last().map_or(0.0, percent)
    }

    /// As for [`Series::removable`], of these `steps`.
    fn removable(steps: &[PruningRow], rules: Rules, which: Which) -> Option<Removable> {
        let any = steps.iter().find(|row| row.masked > 0 && rules.can_tell(which, *row))?;
        // The rule looks at `p_value`; here that is the one which counts.
        let counted = |row: &PruningRow| PruningRow { p_value: rules.criterion.p_value(row), ..row.clone() };
        let counted: Vec<_> = steps.iter().map(counted).collect();
        let last = rules.rule(which).last_accepted(&counted).map(|last| last.step);
        let accepted = steps.iter().take_while(|row| last.is_some_and(|last| row.step <= last));
        let last = accepted.clone().last();
        let next = steps.get(accepted.count());
        Some(Removable {
            percent: last.map_or(0.0, percent),
            range: None,
            step: Some(Step {
                masked: last.map_or(0, |row| row.masked),
                score: last.map_or(any.base_score, |row| row.score),
                delta: last.map_or(0.0, |row| row.score_delta),
            }),
            is_open: last.is_none_or(|last| last.masked < last.heads)
                && next.is_none_or(|next| !rules.can_tell(which, next)),
        })
    }
}

/// Share of the heads that a row masks, in percent.
pub fn percent(row: &PruningRow) -> f64 {
    100.0 * row.masked as f64 / row.heads as f64
}

/// All runs of one order over the same heads: several if it is random.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Which heads are masked, and in which order.
    pub curve: Curve,
    /// The runs, at least one, by seed.
    pub runs: Vec<Run>,
}

impl Series {
    /// Whether no run has been killed, or is going on still. `keeps_none` if an order ends with all heads masked; one
    /// that keeps some in each layer ends sooner, and so does a search.
    pub fn is_finished(&self, keeps_none: bool) -> bool {
        let keeps_none = keeps_none && !self.curve.is_complement;
        let has_all = |run: &Run| match self.curve.order {
            Order::Swap => run.end() > 0.0,
            Order::GreedyForward => run.is_gapless() && run.end() > 0.0,
            _ => run.is_gapless() && run.end() > 0.0 && !(keeps_none && run.end() < 100.0),
        };
        self.runs.iter().all(|run| has_all(run) && run.is_adjusted())
    }

    /// The largest share of heads that can go by one rule; of several runs the median, if all of them say.
    ///
    /// Going up the steps, this is the last one before the first that the rule does not accept; a later one that it would
    /// accept again does not count. A step that is missing or was not tested proves nothing and ends the climb. `None` if
    /// no step could tell.
    ///
    /// Exchanges are tried at one number of heads: a loss there does not say that fewer cannot go, so that is `None`.
    pub fn removable(&self, rules: Rules, which: Which) -> Option<Removable> {
        let is_swap = self.curve.order == Order::Swap;
        let removable = |run: &Run| {
            let found = Run::removable(if is_swap { &run.steps } else { run.without_gap() }, rules, which);
            found.filter(|one| !is_swap || one.percent > 0.0)
        };
        let all: Option<Vec<_>> = self.runs.iter().map(removable).collect();
        let all = all?;
        if let [one] = &all[..] {
            return Some(one.clone());
        }
        let mut percents: Vec<_> = all.iter().map(|one| one.percent).collect();
        percents.sort_by(f64::total_cmp);
        Some(Removable {
            percent: median(&percents)?,
            range: Some((*percents.first()?, *percents.last()?)),
            step: None,
            is_open: all.iter().any(|one| one.is_open),
        })
    }

    /// Share and score of the step nearest to `share`, in percent and in the unit of the metric, if one lies within `gap` of it; of several
    /// runs the median score at the same step.
    pub fn score_at(&self, share: f64, gap: f64) -> Option<(f64, f64)> {
        let distance = |row: &PruningRow| (percent(row) - share).abs();
        let rows = || self.runs.iter().flat_map(|run| &run.steps).filter(|row| distance(row) <= gap);
        let nearest = rows().min_by(|left, right| distance(left).total_cmp(&distance(right)))?;
        let mut scores: Vec<_> =
            rows().filter(|row| row.masked == nearest.masked).map(|row| row.score).collect();
        scores.sort_by(f64::total_cmp);
        Some((percent(nearest), median(&scores)?))
    }

    /// Whether a step is significantly worse than the base.
    pub fn has_loss(&self, criterion: Criterion) -> bool {
        self.runs.iter().flat_map(|run| &run.steps).any(|row| criterion.is_loss(row))
    }
}

/// Of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle)?;
    let lower = if sorted.len() % 2 == 1 { upper } else { &sorted[middle - 1] };
    Some((lower + upper) / 2.0)
}
