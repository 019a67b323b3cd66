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

/// All curves of one ranking on a set of heads: several if it is random.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The curve, without the seed of a random ranking.
    pub curve: CurveId,
    /// Steps of each curve.
    pub runs: Vec<Vec<CurveRow>>,
}

/// Share of heads that can be masked by one rule, or its median over random rankings.
#[derive(Debug, Clone, PartialEq)]
pub struct Removable {
    /// Share of the heads, in percent.
    pub percent: f64,
    /// Minimum and maximum share over random rankings, in percent.
    pub range: Option<(f64, f64)>,
    /// Percentiles 2.5 and 97.5 of the share over resamples of the test set; `None` for several curves, or if resamples used another rule.
    pub spread: Option<(f64, f64)>,
    /// Probability that the next step would be shown dispensable if it had no cost; `None` for several curves, or without a next step.
    pub power: Option<f64>,
    /// Change of the score at this share; `None` for several curves.
    pub change: Option<Change>,
    /// `true` if more heads were not tested, so that the share might be larger.
    pub is_open: bool,
}

/// Difference from the base score, in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Change {
    /// Measured difference.
    pub delta: f64,
    /// 95% interval; `None` for the full model, or if not tested.
    pub interval: Option<(f64, f64)>,
}

impl Change {
    fn of(row: &CurveRow) -> Self {
        let interval = row.delta_interval().filter(|_| row.masked > 0);
        Self { delta: row.score_delta, interval }
    }

    /// Formats the change with its interval: `-0.73 [-2.88 to +1.37]`.
    pub fn in_words(self, metric: &Metric) -> String {
        metric.change(self.delta) + &brackets(self.interval, " to ", |delta| metric.change(delta))
    }
}

/// Share of heads that can be masked with a loss within the margin of [`RuleKind::Dispensable`], in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareWithinMargin {
    /// As measured: the last step before the first that loses more.
    pub percent: f64,
    /// The last step before the first whose 95% interval reaches the margin: up to here heads are dispensable.
    pub low: f64,
    /// The last step before the first whose 95% interval is above the margin: beyond it heads are needed.
    pub high: f64,
}

/// Scores of a setup with more and more heads masked.
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
    /// Reads a file of `iterative-prune` and the corresponding one of `joint-search`, which is left out if its model or test set differs.
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

    /// Returns the curves after each selected repair. Fine-tuned models are compared with step 0 of their curve, the fine-tuned baseline.
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

    /// Returns the curves over these heads.
    pub fn over(&self, scope: Scope) -> Result<Vec<&Series>> {
        let found: Vec<_> = self.series.iter().filter(|series| series.curve.attention == scope).collect();
        if found.is_empty() { self.no_rows(scope.name()) } else { Ok(found) }
    }

    /// Returns the curves of single attention types: by importance in the order of the paper, each before its complement, then random.
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

    /// Returns the curve of a ranking.
    pub fn find(&self, scope: Scope, order: Order) -> Option<&Series> {
        let curve = CurveId { attention: scope, order, order_seed: None, complement: false };
        self.series.iter().find(|series| series.curve == curve)
    }

    /// Returns the curve over these heads in reverse order.
    pub fn complement(&self, series: &Series) -> Option<&Series> {
        let curve = CurveId { complement: true, ..series.curve };
        self.series.iter().find(|other| other.curve == curve)
    }

    /// Returns the attention types in the rows, as a scope or among the masked heads.
    fn attentions(&self) -> Vec<Attention> {
        let named = |row: &CurveRow| {
            let scope = if let Scope::One(attention) = row.attention { Some(attention) } else { None };
            let heads = row.masked_heads.parse::<HeadSet>().unwrap_or_default();
            heads.iter().map(|head| head.attention()).chain(scope).collect::<Vec<_>>()
        };
        distinct(self.results.rows.iter().flat_map(named))
    }

    /// Returns the paper's share for the corresponding model.
    pub fn published<'a>(&self, shares: &'a [Share]) -> Option<&'a Share> {
        let figure = self.results.beside()?.figure();
        shares.iter().find(|share| share.figure == figure)
    }

    /// `true` if a step masks all heads of a model with only `self` attention.
    pub fn has_blind_step(&self) -> bool {
        let is_blind = |row: &CurveRow| row.masked == row.heads;
        self.attentions() == [Attention::SelfAttention] && self.results.rows.iter().any(is_blind)
    }

    /// Returns the share of all heads that can be masked by importance, if measured and tested.
    pub fn within_margin(&self, criterion: Criterion) -> Option<ShareWithinMargin> {
        self.find(Scope::All, Order::Importance)?.within_margin(self.results.judge(criterion))
    }
}

/// Reads the rows of a search; fails if its heads, model or test set differ.
fn searched(pruning: &Results<CurveRow>, search: ResultFile) -> Result<Results<CurveRow>> {
    let (file, search) = (&pruning.file, Results::<CurveRow>::read(search)?);
    let difference = difference(file, &search.file, &[model_entries, step_entries]);
    let both: Vec<_> = pruning.rows.iter().chain(&search.rows).cloned().collect();
    let mixed = match check_rows(&search.file.path, &both) {
        Err(records::Error::Mixed { column, expected, found, .. }) => {
            Some(format!("{column} is {found} here but {expected} there"))
        }
        checked => checked.map(|()| None)?,
    };
    let Some(difference) = difference.or(mixed) else { return Ok(search) };
    let command = command(experiment::SEARCH, &file.subject);
    let fault =
        format!("does not match `{}`: {difference}: measure it again with `{command}`", file.path.display());
    Err(faulty(&search.file.path, fault))
}

/// Returns the settings for which heads may be masked.
fn step_entries(identity: &Identity) -> Vec<Entry> {
    ["rescale", "keep_at_least", "step_percent"].map(|name| argument(identity, name)).into()
}

/// Returns these settings, and how rankings are made.
pub(crate) fn order_entries(identity: &Identity) -> Vec<Entry> {
    let names = ["recompute", "estimate_on", "estimate_limit", "granularity", "normalise", "entropy_weight"];
    // without steps the seed only draws resamples
    let seed = identity.seed.filter(|_| identity.arguments.contains_key("step_percent"));
    let made = names.map(|name| argument(identity, name));
    let seed = ("seed", seed.map(|seed| seed.to_string()));
    step_entries(identity).into_iter().chain(made).chain([seed]).collect()
}

fn argument(identity: &Identity, name: &'static str) -> Entry {
    (name, identity.arguments.get(name).map(|value| value.to_string()))
}

/// Returns the share of the heads that a row masks, in percent.
pub fn share(row: &CurveRow) -> f64 {
    percent(row.masked, row.heads)
}

/// Returns the steps before the first missing one. A curve may start at step 1, since all curves are equal with no heads masked.
fn without_gap(steps: &[CurveRow]) -> &[CurveRow] {
    let first = steps.first().map_or(0, |row| row.step);
    let follows = |(index, row): &(usize, &CurveRow)| first <= 1 && row.step == first + index;
    &steps[..steps.iter().enumerate().take_while(follows).count()]
}

fn removable(steps: &[CurveRow], judge: Judge, which: RuleKind) -> Option<Removable> {
    steps.iter().find(|row| row.masked > 0 && judge.can_tell(which, *row))?;
    // the rule reads `p_value`, which must be the p-value that decides
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

/// Returns percentiles 2.5 and 97.5 of the share, from how often walks on resamples reached each step.
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
    // of 1,000 walks 975 reach the lower end, and 26 the upper
    (!walked.is_empty()).then(|| (end(0.9745), end(0.0255)))
}

impl Series {
    /// Returns the largest share of heads that can be masked by one rule; the median over random rankings if all of them can tell.
    ///
    /// It ends before the first rejected, missing or untested step; later steps do not count. `None` if no step can tell, and for swaps
    /// with a loss: they use one number of heads, which tells nothing about fewer.
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

    /// Returns the share with a loss within the margin, with its interval from each step's; `None` for several curves or without tests.
    pub fn within_margin(&self, judge: Judge) -> Option<ShareWithinMargin> {
        let [steps] = &self.runs[..] else { return None };
        let low = self.removable(judge, RuleKind::Dispensable)?.percent;
        let before = |goes_on: &dyn Fn(&CurveRow) -> bool| {
            let kept = without_gap(steps).iter().take_while(|row| row.masked == 0 || goes_on(row));
            kept.last().map_or(0.0, share)
        };
        let percent = before(&|row| row.gain() >= -judge.margin(row.base_score));
        Some(ShareWithinMargin {
            percent,
            low,
            high: before(&|row| judge.verdict(row) != Some(Verdict::Needed)),
        })
    }

    /// Returns the step closest to `percent`, if it is near; the first of several curves.
    pub fn nearest(&self, percent: f64) -> Option<&CurveRow> {
        nearest(self.runs.iter().flatten(), share, percent)
    }

    /// Returns share and score of the step closest to `percent`, if it is near; the score is the median over random rankings.
    pub fn score_at(&self, percent: f64) -> Option<(f64, f64)> {
        let nearest = self.nearest(percent)?;
        let same = self.runs.iter().flatten().filter(|row| row.masked == nearest.masked);
        let mut scores: Vec<_> = same.map(|row| row.score).collect();
        scores.sort_by(f64::total_cmp);
        Some((share(nearest), median(&scores)?))
    }
}

/// Returns the median of ascending values; `None` without values.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle)?;
    let lower = if sorted.len() % 2 == 1 { upper } else { &sorted[middle - 1] };
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests;
