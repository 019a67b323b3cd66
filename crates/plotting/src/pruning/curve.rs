//! Curves over the share of masked heads, and how many heads can go.
use records::PruningRow;

use super::order::{Order, Scope};
use crate::significance::Criterion;

/// One curve: the steps of one order, by one seed if it is random.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Seed of a random order.
    pub seed: Option<u64>,
    /// The rows, from the first step on; `masked` never falls.
    pub steps: Vec<PruningRow>,
}

/// The heads that can go, or the mean over several runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Removable {
    /// Share of the heads, in percent.
    pub percent: f64,
    /// Standard deviation of the share over runs, in percent; absent for a single run.
    pub deviation: Option<f64>,
    /// Number of masked heads; absent for the mean of several runs.
    pub masked: Option<usize>,
    /// Score without these heads, in points.
    pub score: f64,
    /// `score` minus the base score, in points.
    pub delta: f64,
    /// Whether the curve ends here, so that more might go.
    pub is_open: bool,
}

impl Run {
    /// Whether the steps are 0, 1, 2 and so on: a killed run may have the first and the last alone.
    fn is_gapless(&self) -> bool {
        self.steps.iter().enumerate().all(|(index, row)| row.step == index)
    }

    /// Whether all p-values are adjusted, which is done when all steps are there.
    fn is_adjusted(&self) -> bool {
        self.steps.iter().all(|row| row.p_value.is_none() || row.p_holm.is_some())
    }

    /// Share of the heads that the last step masks, in percent.
    fn end(&self) -> f64 {
        self.steps.last().map_or(0.0, percent)
    }

    /// The last step before the first one that is significantly below the base, as for [`Series::removable`].
    fn removable(&self, criterion: Criterion) -> Option<Removable> {
        let mut last = None;
        let mut is_open = true;
        for row in self.steps.iter().filter(|row| row.masked > 0) {
            p_value(row, criterion)?;
            if is_loss(row, criterion) {
                is_open = false;
                break;
            }
            last = Some(row);
        }
        let any = self.steps.iter().find(|row| row.masked > 0)?;
        Some(match last {
            Some(row) => Removable {
                percent: percent(row),
                deviation: None,
                masked: Some(row.masked),
                score: row.score,
                delta: row.score_delta,
                is_open: is_open && row.masked < row.heads,
            },
            None => Removable {
                percent: 0.0,
                deviation: None,
                masked: Some(0),
                score: any.base_score,
                delta: 0.0,
                is_open: false,
            },
        })
    }
}

/// Share of the heads that a row masks, in percent.
pub fn percent(row: &PruningRow) -> f64 {
    100.0 * row.masked as f64 / row.heads as f64
}

fn p_value(row: &PruningRow, criterion: Criterion) -> Option<f64> {
    criterion.adjustment.choose(row.p_value, row.p_holm, row.p_benjamini_hochberg)
}

/// Whether the score is significantly below the base.
pub fn is_loss(row: &PruningRow, criterion: Criterion) -> bool {
    row.score_delta < 0.0 && p_value(row, criterion).is_some_and(|p_value| p_value < criterion.alpha)
}

/// A point of a curve, or the mean of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Step of the curve, counted from 0.
    pub step: usize,
    /// Share of masked heads, in percent.
    pub percent: f64,
    /// Score, in points.
    pub score: f64,
    /// Standard deviation of the score over runs; absent for a single run.
    pub deviation: Option<f64>,
    /// Whether the score of a single run is significantly below the base.
    pub is_loss: bool,
}

/// All runs of one order over the same heads: several if it is random.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Which heads are masked.
    pub scope: Scope,
    /// In which order.
    pub order: Order,
    /// The runs, at least one, by seed.
    pub runs: Vec<Run>,
}

impl Series {
    /// The curve; of several runs the mean at each step that all of them have, so that an unfinished run does not
    /// move it.
    pub fn points(&self, criterion: Criterion) -> Vec<Point> {
        let Some((first, others)) = self.runs.split_first() else { return Vec::new() };
        let point = |row: &PruningRow| {
            let same = |run: &Run| run.steps.iter().find(|other| other.step == row.step).map(|row| row.score);
            let scores: Option<Vec<f64>> =
                std::iter::once(Some(row.score)).chain(others.iter().map(same)).collect();
            let scores = scores?;
            Some(Point {
                step: row.step,
                percent: percent(row),
                score: mean(&scores),
                deviation: deviation(&scores),
                is_loss: others.is_empty() && is_loss(row, criterion),
            })
        };
        first.steps.iter().filter_map(point).collect()
    }

    /// Whether no run has been killed, or is going on still. `keeps_none` if an order ends with all heads masked; one
    /// that keeps some in each layer ends sooner, and so does a search.
    pub fn is_finished(&self, keeps_none: bool) -> bool {
        let has_all = |run: &Run| match self.order {
            Order::Swap => run.end() > 0.0,
            Order::GreedyForward => run.is_gapless() && run.end() > 0.0,
            _ => run.is_gapless() && run.end() > 0.0 && !(keeps_none && run.end() < 100.0),
        };
        self.runs.iter().all(|run| has_all(run) && run.is_adjusted())
    }

    /// The largest share of heads that can be removed without a significant loss; of several runs the mean, if all of
    /// them say.
    ///
    /// Going up the steps from 0, this is the last step before the first one whose score is significantly below the
    /// base (p < alpha and a delta below 0), as `masked / heads`. A later step that is not significant again does not
    /// count. `None` if a step on the way is missing or has no p-value, or no step masks a head.
    ///
    /// Exchanges are tried at one number of heads: a loss there does not say that fewer cannot go, so that is `None`.
    pub fn removable(&self, criterion: Criterion) -> Option<Removable> {
        let is_swap = self.order == Order::Swap;
        let removable = |run: &Run| {
            let found = if is_swap || run.is_gapless() { run.removable(criterion) } else { None };
            found.filter(|one| !is_swap || one.percent > 0.0)
        };
        let all: Option<Vec<_>> = self.runs.iter().map(removable).collect();
        let all = all?;
        let column = |value: fn(&Removable) -> f64| all.iter().map(value).collect::<Vec<_>>();
        let percents = column(|one| one.percent);
        Some(Removable {
            percent: mean(&percents),
            deviation: deviation(&percents),
            masked: if all.len() == 1 { all[0].masked } else { None },
            score: mean(&column(|one| one.score)),
            delta: mean(&column(|one| one.delta)),
            is_open: all.iter().any(|one| one.is_open),
        })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation of a sample, with n - 1.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}
