//! Curves over the share of masked heads: the rows of `iterative-prune` and `joint-search` (Michel et al. 2019, Section 4.2).
use std::collections::BTreeMap;

use records::check::check_rows;
use records::{Attention, CurveId, CurveRow, HeadSet, Identity, Order, Repair, Scope, TestedRow, Verdict};
use words::brackets;

use crate::findings::contrasts::against_control;
use crate::findings::error::{LeftOut, Result, command, faulty, no_attention};
use crate::findings::judge::{Criterion, Judge, RuleKind};
use crate::findings::metric::Metric;
use crate::findings::paper::Share;
use crate::findings::results::{Results, distinct, nearest, percent};
use crate::findings::same_model::{Entry, difference, model_entries};
use crate::findings::source::{ResultFile, experiment};

/// All runs of one order over the same heads: several if it is random.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The curve, without the seed of a random order.
    pub curve: CurveId,
    /// The steps of each run.
    pub runs: Vec<Vec<CurveRow>>,
}

/// The heads that can go by one rule, or the median over several runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Removable {
    /// Share of the heads, in percent.
    pub percent: f64,
    /// The least and the greatest share of several runs, in percent.
    pub range: Option<(f64, f64)>,
    /// Percentiles 2.5 and 97.5 of the share over resamples of the test set, in percent; absent for several runs, or where the walk was
    /// not repeated by this rule.
    pub spread: Option<(f64, f64)>,
    /// Chance, 0 to 1, that the next step would be shown dispensable if it cost nothing; absent for several runs, or without one.
    pub power: Option<f64>,
    /// Change by masking this share; absent for several runs.
    pub change: Option<Change>,
    /// `true` if more might go, which was not tested.
    pub is_open: bool,
}

/// A difference to the base, in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Change {
    /// As measured.
    pub delta: f64,
    /// Its 95 % interval; absent of the intact model, or if it was not tested.
    pub interval: Option<(f64, f64)>,
}

impl Change {
    fn of(row: &CurveRow) -> Self {
        let interval = row.delta_interval().filter(|_| row.masked > 0);
        Self { delta: row.score_delta, interval }
    }

    /// `-0.73 [-2.88 to +1.37]`
    pub fn in_words(self, metric: &Metric) -> String {
        metric.change(self.delta) + &brackets(self.interval, " to ", |delta| metric.change(delta))
    }
}

/// The heads that can go with a loss of at most the margin of the rule [`RuleKind::Dispensable`]: shares of the heads in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerable {
    /// As measured: the last step before the first that loses more.
    pub percent: f64,
    /// The last step before the first whose 95 % interval reaches the margin: dispensable.
    pub low: f64,
    /// The last step before the first whose 95 % interval lies above the margin: from there on heads are needed.
    pub high: f64,
}

/// Scores of a subject with more and more heads masked.
#[derive(Debug, Clone)]
pub struct Pruning {
    /// All rows.
    pub results: Results<CurveRow>,
    /// All curves.
    pub series: Vec<Series>,
    /// Scores with all heads masked.
    pub floors: BTreeMap<Scope, CurveRow>,
}

impl Pruning {
    /// Reads a file of `iterative-prune` and, where it is there, that of `joint-search` beside it, which is left out if it
    /// is of another model or test set.
    pub fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Self> {
        let mut results = Results::read(file)?;
        let search = results.file.path.with_file_name(results.file.stem(experiment::SEARCH) + ".csv");
        if search.exists() {
            let search = results.file.other(search, experiment::SEARCH);
            let found = left_out.keep(search.and_then(|search| searched(&results, search)));
            if let Some(search) = found {
                search.file.torn().into_iter().for_each(|torn| left_out.note(torn));
                results.rows.extend(search.rows);
            }
        }
        Ok(Self::of(results))
    }

    /// The curves after each of the repairs that are meant. Those of models that were trained further are compared with step 0 of the curve, which was trained
    /// equally long with all heads.
    pub(crate) fn by_repair(
        results: &Results<CurveRow>,
        is_meant: impl Fn(Repair) -> bool,
        left_out: &mut LeftOut,
    ) -> BTreeMap<Repair, Self> {
        let is_control = |one: &CurveRow, other: &CurveRow| one.masked == 0 && one.family() == other.family();
        let mut of = |repair| {
            let rows = results.rows.iter().filter(|row| row.repair() == repair).cloned().collect();
            let own = Results { file: results.file.clone(), rows };
            let is_trained = repair == Repair::Training;
            let own = if is_trained { against_control(own, is_control, left_out) } else { own };
            (repair, Self::of(own))
        };
        let repairs = results.rows.iter().map(CurveRow::repair).filter(|&repair| is_meant(repair));
        distinct(repairs).into_iter().map(&mut of).collect()
    }

    pub(crate) fn of(results: Results<CurveRow>) -> Self {
        let mut runs: BTreeMap<CurveId, Vec<CurveRow>> = BTreeMap::new();
        let mut floors = BTreeMap::new();
        for row in results.rows.iter().cloned() {
            if row.order == Order::Floor {
                floors.insert(row.attention, row);
            } else {
                runs.entry(row.curve()).or_default().push(row);
            }
        }
        let mut series: Vec<Series> = Vec::new();
        for (run, mut steps) in runs {
            let curve = CurveId { order_seed: None, ..run };
            steps.sort_by_key(|row| row.step);
            match series.last_mut().filter(|series| series.curve == curve) {
                Some(series) => series.runs.push(steps),
                None => series.push(Series { curve, runs: vec![steps] }),
            }
        }
        Self { results, series, floors }
    }

    /// The curves over these heads.
    pub fn over(&self, scope: Scope) -> Result<Vec<&Series>> {
        let found: Vec<_> = self.series.iter().filter(|series| series.curve.attention == scope).collect();
        if found.is_empty() { self.no_rows(scope.name()) } else { Ok(found) }
    }

    /// The curves of single attention types: those by importance in the order of the paper, each before its complement, then random
    /// ones.
    pub fn types(&self) -> Result<Vec<(Attention, &Series)>> {
        let by = |order: Order| {
            self.series.iter().filter_map(move |series| match series.curve {
                CurveId { attention: Scope::One(attention), order: own, .. } if own == order => {
                    Some((attention, series))
                }
                _ => None,
            })
        };
        let is_translator = by(Order::Importance).any(|(attention, _)| attention != Attention::SelfAttention);
        if is_translator {
            Ok(by(Order::Importance).chain(by(Order::Random)).collect())
        } else {
            self.no_rows("enc-enc, enc-dec or dec-dec by importance")
        }
    }

    fn no_rows<T>(&self, asked: &str) -> Result<T> {
        let mut present: Vec<_> = self.series.iter().map(|series| series.curve.attention.name()).collect();
        present.dedup();
        Err(no_attention(&self.results.file, asked, &present))
    }

    /// One curve.
    pub fn find(&self, scope: Scope, order: Order) -> Option<&Series> {
        let curve = CurveId { attention: scope, order, order_seed: None, complement: false };
        self.series.iter().find(|series| series.curve == curve)
    }

    /// The curve over the same heads in the reverse order.
    pub fn complement(&self, series: &Series) -> Option<&Series> {
        let curve = CurveId { complement: true, ..series.curve };
        self.series.iter().find(|other| other.curve == curve)
    }

    /// Attention types that the rows name, as a scope or among the masked heads.
    fn attentions(&self) -> Vec<Attention> {
        let named = |row: &CurveRow| {
            let scope = if let Scope::One(attention) = row.attention { Some(attention) } else { None };
            let heads = row.masked_heads.parse::<HeadSet>().unwrap_or_default();
            heads.iter().map(|head| head.attention()).chain(scope).collect::<Vec<_>>()
        };
        distinct(self.results.rows.iter().flat_map(named))
    }

    /// The paper's share of the model that they stand beside.
    pub fn published<'a>(&self, shares: &'a [Share]) -> Option<&'a Share> {
        let figure = self.results.beside()?.figure();
        shares.iter().find(|share| share.figure == figure)
    }

    /// `true` if a step of a model whose only attention type is `self` has no attention left.
    pub fn has_blind_step(&self) -> bool {
        let is_blind = |row: &CurveRow| row.masked == row.heads;
        self.attentions() == [Attention::SelfAttention] && self.results.rows.iter().any(is_blind)
    }

    /// The share of all heads that can go by importance, if it was measured and tested.
    pub fn tolerable(&self, criterion: Criterion) -> Option<Tolerable> {
        self.find(Scope::All, Order::Importance)?.tolerable(self.results.judge(criterion))
    }
}

/// The rows of a search over the same heads of the same model on the same test set.
fn searched(pruning: &Results<CurveRow>, search: ResultFile) -> Result<Results<CurveRow>> {
    let (file, search) = (&pruning.file, Results::<CurveRow>::read(search)?);
    let difference = difference(file, &search.file, &[model_entries, step_entries]);
    let both: Vec<_> = pruning.rows.iter().chain(&search.rows).cloned().collect();
    let mixed = match check_rows(&search.file.path, &both) {
        Err(records::Error::Mixed { column, expected, found, .. }) => {
            Some(format!("{column} is {found} but {expected} there"))
        }
        checked => checked.map(|()| None)?,
    };
    let Some(difference) = difference.or(mixed) else { return Ok(search) };
    let command = command(experiment::SEARCH, &file.subject);
    let fault =
        format!("does not go with `{}`: {difference}: make it again with `{command}`", file.path.display());
    Err(faulty(&search.file.path, fault))
}

/// Settings of the heads that may be masked.
fn step_entries(identity: &Identity) -> Vec<Entry> {
    ["rescale", "keep_at_least", "step_percent"].map(|name| argument(identity, name)).into()
}

/// The same, and how the orders of the heads are made.
pub(crate) fn order_entries(identity: &Identity) -> Vec<Entry> {
    let names = ["recompute", "estimate_on", "estimate_limit", "granularity", "normalise", "entropy_weight"];
    // without steps a seed is that of resamples alone
    let seed = identity.seed.filter(|_| identity.arguments.contains_key("step_percent"));
    let made = names.map(|name| argument(identity, name));
    let seed = ("seed", seed.map(|seed| seed.to_string()));
    step_entries(identity).into_iter().chain(made).chain([seed]).collect()
}

fn argument(identity: &Identity, name: &'static str) -> Entry {
    (name, identity.arguments.get(name).map(|value| value.to_string()))
}

/// Share of the heads that a row masks, in percent.
pub fn share(row: &CurveRow) -> f64 {
    percent(row.masked, row.heads)
}

/// The steps before the first one that is missing. Without heads masked all curves are equal, so the first may be that of
/// one masked share.
fn without_gap(steps: &[CurveRow]) -> &[CurveRow] {
    let first = steps.first().map_or(0, |row| row.step);
    let follows = |(index, row): &(usize, &CurveRow)| first <= 1 && row.step == first + index;
    &steps[..steps.iter().enumerate().take_while(follows).count()]
}

fn removable(steps: &[CurveRow], judge: Judge, which: RuleKind) -> Option<Removable> {
    steps.iter().find(|row| row.masked > 0 && judge.can_tell(which, *row))?;
    // The rule looks at `p_value`; here that is the one which counts.
    let counted = |row: &CurveRow| CurveRow { p_value: judge.criterion.p_value(row), ..row.clone() };
    let counted: Vec<_> = steps.iter().map(counted).collect();
    let last = judge.rule(which).last_accepted(&counted).map(|last| last.step);
    let accepted = steps.iter().take_while(|row| last.is_some_and(|last| row.step <= last));
    let last = accepted.clone().last();
    let next = steps.get(accepted.count());
    Some(Removable {
        percent: last.map_or(0.0, share),
        range: None,
        spread: spread(steps, judge, which),
        power: next.and_then(|next| next.power),
        change: Some(last.map_or(Change::default(), Change::of)),
        is_open: last.is_none_or(|last| last.masked < last.heads)
            && next.is_none_or(|next| !judge.can_tell(which, next)),
    })
}

/// Percentiles 2.5 and 97.5 of the share, from how often the walk along the curve got to each step.
fn spread(steps: &[CurveRow], judge: Judge, which: RuleKind) -> Option<(f64, f64)> {
    let reached = |row: &CurveRow| match which {
        RuleKind::Dispensable => row.reached_dispensable,
        RuleKind::NoSignificantLoss => row.reached_without_loss.filter(|_| judge.criterion.is_the_papers()),
    };
    let walked: Vec<_> =
        steps.iter().filter(|row| row.masked > 0).map_while(|row| Some((row, reached(row)?))).collect();
    let end = |least: f64| {
        walked.iter().take_while(|(_, reached)| *reached > least).last().map_or(0.0, |(row, _)| share(row))
    };
    // of 1,000 walks 975 get to the one, and 26 to the other
    (!walked.is_empty()).then(|| (end(0.9745), end(0.0255)))
}

impl Series {
    /// The largest share of heads that can go by one rule; of several runs the median, if all of them say.
    ///
    /// Going up the steps, this is the last one before the first that the rule does not accept; a later one that it would
    /// accept again does not count. A step that is missing or was not tested proves nothing and ends the climb. `None` if
    /// no step could tell.
    ///
    /// Exchanges are tried at one number of heads: a loss there does not say that fewer cannot go, so that is `None`.
    pub fn removable(&self, judge: Judge, which: RuleKind) -> Option<Removable> {
        let is_swap = self.curve.order == Order::Swap;
        let of_run = |steps: &Vec<CurveRow>| {
            let found = removable(if is_swap { steps } else { without_gap(steps) }, judge, which);
            found.filter(|one| !is_swap || one.percent > 0.0)
        };
        let all: Vec<Removable> = self.runs.iter().map(of_run).collect::<Option<_>>()?;
        if let [one] = &all[..] {
            return Some(one.clone());
        }
        let mut percents: Vec<_> = all.iter().map(|one| one.percent).collect();
        percents.sort_by(f64::total_cmp);
        Some(Removable {
            percent: median(&percents)?,
            range: Some((*percents.first()?, *percents.last()?)),
            spread: None,
            power: None,
            change: None,
            is_open: all.iter().any(|one| one.is_open),
        })
    }

    /// The share with a loss within the margin and its interval, which is that of the score at each step by itself; none of
    /// several runs, or where no step was tested.
    pub fn tolerable(&self, judge: Judge) -> Option<Tolerable> {
        let [steps] = &self.runs[..] else { return None };
        let low = self.removable(judge, RuleKind::Dispensable)?.percent;
        let before = |goes_on: &dyn Fn(&CurveRow) -> bool| {
            let kept = without_gap(steps).iter().take_while(|row| row.masked == 0 || goes_on(row));
            kept.last().map_or(0.0, share)
        };
        let percent = before(&|row| row.gain() >= -judge.margin(row.base_score));
        Some(Tolerable { percent, low, high: before(&|row| judge.verdict(row) != Some(Verdict::Needed)) })
    }

    /// The step nearest to `percent`, if one is near; of several runs that of the first.
    pub fn nearest(&self, percent: f64) -> Option<&CurveRow> {
        nearest(self.runs.iter().flatten(), share, percent)
    }

    /// Share and score of the step nearest to `percent`, if one is near; of several runs the median score at the same step.
    pub fn score_at(&self, percent: f64) -> Option<(f64, f64)> {
        let nearest = self.nearest(percent)?;
        let same = self.runs.iter().flatten().filter(|row| row.masked == nearest.masked);
        let mut scores: Vec<_> = same.map(|row| row.score).collect();
        scores.sort_by(f64::total_cmp);
        Some((share(nearest), median(&scores)?))
    }
}

/// Median of values in ascending order; `None` without values.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle)?;
    let lower = if sorted.len() % 2 == 1 { upper } else { &sorted[middle - 1] };
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests;
