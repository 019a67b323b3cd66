//! Curves over the share of masked heads: the rows of `iterative-prune` and `joint-search` (Michel et al. 2019, Section 4.2).
use std::collections::BTreeMap;

use anyhow::Result;
use records::check::check_rows;
use records::{Attention, Head, Identity, Order, PruningRow, Scope, TestedRow};

use super::same::{Entry, difference, model_entries};
use crate::error::{Fault, LeftOut, alone};
use crate::judge::{Criterion, Judge, Which};
use crate::origin::Beside;
use crate::paper::Share;
use crate::source::ResultFile;
use crate::words::Metric;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "iterative-prune";

/// The experiment that adds curves, where it was run.
const SEARCH: &str = "joint-search";

/// Which curve of a scope and an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CurveId {
    pub scope: Scope,
    pub order: Order,
    pub is_complement: bool,
}

/// All runs of one order over the same heads: several if it is random.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub curve: CurveId,
    pub runs: Vec<Vec<PruningRow>>,
}

/// The heads that can go by one rule, or the median over several runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Removable {
    /// Share of the heads, in percent.
    pub percent: f64,
    /// The least and the greatest share of several runs, in percent.
    pub range: Option<(f64, f64)>,
    /// What masking so many changes; absent for several runs.
    pub change: Option<Change>,
    pub is_open: bool,
}

/// A difference to the base, in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Change {
    pub delta: f64,
    /// Its 95 % interval; absent of the intact model, or if it was not tested.
    pub interval: Option<(f64, f64)>,
}

impl Change {
    fn of(row: &PruningRow) -> Self {
        let interval = row.delta_low.zip(row.delta_high).filter(|_| row.masked > 0);
        Self { delta: row.score_delta, interval }
    }

    /// `-0.73 [-2.88 to +1.37]`
    pub fn in_words(self, metric: &Metric) -> String {
        let interval =
            self.interval.map(|(low, high)| format!(" [{} to {}]", metric.change(low), metric.change(high)));
        metric.change(self.delta) + &interval.unwrap_or_default()
    }
}

/// The heads that can go with a loss of at most the margin of the rule [`Which::ShownSafe`]: shares of the heads in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerable {
    /// As measured: the last step before the first that loses more.
    pub percent: f64,
    /// The last step before the first whose 95 % interval holds a greater loss: shown to be safe.
    pub low: f64,
    /// The last step before the first whose 95 % interval holds greater losses only: from there on it is shown to lose more.
    pub high: f64,
}

/// What masking more and more heads does to the score of a subject.
#[derive(Debug, Clone)]
pub struct Pruning {
    pub file: ResultFile,
    pub metric: Metric,
    /// Score of the intact model, in the unit of the metric.
    pub base: f64,
    pub series: Vec<Series>,
    pub floors: BTreeMap<Scope, PruningRow>,
}

impl Pruning {
    /// Reads a file of `iterative-prune` and, where it is there, that of `joint-search` beside it, which is left out if it
    /// is of another model or test set.
    pub fn read(mut file: ResultFile, left_out: &mut LeftOut) -> Result<Self> {
        let rows: Vec<PruningRow> = file.rows(EXPERIMENT)?;
        let search = file.path.with_file_name(file.stem(SEARCH) + ".csv");
        let found = if search.exists() {
            let searched = ResultFile::of(search, &file.subject, SEARCH);
            left_out.keep(searched.and_then(|search| searched_rows(&file, &rows, search)))?
        } else {
            None
        };
        Ok(Self::new(file, rows.into_iter().chain(found.unwrap_or_default()).collect()))
    }

    /// Of rows of one run, of which there is at least one.
    pub fn new(file: ResultFile, rows: Vec<PruningRow>) -> Self {
        let (metric, base) = (Metric::new(&rows[0].metric), rows[0].base_score);
        let mut runs: BTreeMap<(CurveId, Option<u64>), Vec<PruningRow>> = BTreeMap::new();
        let mut floors = BTreeMap::new();
        for row in rows {
            let curve = CurveId { scope: row.attention, order: row.order, is_complement: row.complement };
            if row.order == Order::Floor {
                floors.insert(row.attention, row);
            } else {
                runs.entry((curve, row.order_seed)).or_default().push(row);
            }
        }
        let mut series: Vec<Series> = Vec::new();
        for ((curve, _), mut steps) in runs {
            steps.sort_by_key(|row| row.step);
            match series.last_mut().filter(|series| series.curve == curve) {
                Some(series) => series.runs.push(steps),
                None => series.push(Series { curve, runs: vec![steps] }),
            }
        }
        Self { file, metric, base, series, floors }
    }

    /// The curves over these heads.
    pub fn of(&self, scope: Scope) -> Result<Vec<&Series>> {
        let found: Vec<_> = self.series.iter().filter(|series| series.curve.scope == scope).collect();
        if found.is_empty() { self.no_rows(scope.name()) } else { Ok(found) }
    }

    /// The curves by importance of single attention types, in the order of the paper, each before its complement.
    pub fn types(&self) -> Result<Vec<(Attention, &Series)>> {
        let by_type = |series| match series {
            &Series {
                curve: CurveId { scope: Scope::One(attention), order: Order::Importance, .. }, ..
            } => Some((attention, series)),
            _ => None,
        };
        let types: Vec<_> = self.series.iter().filter_map(by_type).collect();
        let is_translator = types.iter().any(|(attention, _)| *attention != Attention::SelfAttention);
        if is_translator { Ok(types) } else { self.no_rows("enc-enc, enc-dec or dec-dec by importance") }
    }

    fn no_rows<T>(&self, asked: &str) -> Result<T> {
        let mut present: Vec<_> = self.series.iter().map(|series| series.curve.scope.name()).collect();
        present.dedup();
        let (path, present) = (self.file.path.display(), present.join(", "));
        Err(Fault::Asked(format!("no rows for attention type {asked}: `{path}` has {present}")).into())
    }

    /// One curve.
    pub fn find(&self, scope: Scope, order: Order) -> Option<&Series> {
        self.series.iter().find(|series| series.curve == CurveId { scope, order, is_complement: false })
    }

    /// The curve over the same heads in the reverse order.
    pub fn complement(&self, series: &Series) -> Option<&Series> {
        let curve = CurveId { is_complement: true, ..series.curve };
        self.series.iter().find(|other| other.curve == curve)
    }

    fn rows(&self) -> impl Iterator<Item = &PruningRow> {
        self.series.iter().flat_map(|series| &series.runs).flatten().chain(self.floors.values())
    }

    /// Attention types that the rows name, as a scope or among the masked heads.
    fn attentions(&self) -> Vec<Attention> {
        let named = |row: &PruningRow| {
            let scope = if let Scope::One(attention) = row.attention { Some(attention) } else { None };
            let heads = Head::list(&row.masked_heads).unwrap_or_default();
            heads.into_iter().map(|head| head.attention).chain(scope).collect::<Vec<_>>()
        };
        let found: Vec<_> = self.rows().flat_map(named).collect();
        Attention::ALL.into_iter().filter(|attention| found.contains(attention)).collect()
    }

    /// What of the paper the curves stand beside.
    pub fn beside(&self) -> Option<Beside> {
        self.file.beside(self.metric.name(), &self.attentions())
    }

    /// The paper's share of the model that they stand beside.
    pub fn published<'a>(&self, shares: &'a [Share]) -> Option<&'a Share> {
        let figure = self.beside()?.figure;
        shares.iter().find(|share| share.figure == figure)
    }

    /// Whether a step of a model whose only attention type is `self` has no attention left.
    pub fn has_blind_step(&self) -> bool {
        self.attentions() == [Attention::SelfAttention] && self.rows().any(|row| row.masked == row.heads)
    }

    /// The share of all heads that can go by importance, if it was measured and tested.
    pub fn tolerable(&self, criterion: Criterion) -> Option<Tolerable> {
        self.find(Scope::All, Order::Importance)?.tolerable(self.judge(criterion))
    }

    /// What decides whether heads can go.
    pub fn judge(&self, criterion: Criterion) -> Judge {
        Judge::new(&self.metric, &self.file, criterion)
    }

    /// `base BLEU 36.05`.
    pub fn base_line(&self) -> String {
        format!("base {}", self.metric.described(self.base))
    }
}

/// The rows of a search over the same heads of the same model on the same test set.
fn searched_rows(file: &ResultFile, rows: &[PruningRow], mut search: ResultFile) -> Result<Vec<PruningRow>> {
    let found: Vec<PruningRow> = search.rows(SEARCH)?;
    let signed = file.identity().zip(search.identity());
    let signed = signed.and_then(|(one, other)| difference([one, other], &[model_entries, step_entries]));
    let both: Vec<_> = rows.iter().chain(&found).cloned().collect();
    let mixed = match check_rows(&search.path, &both) {
        Err(records::Error::Mixed { column, expected, found, .. }) => {
            Some((column.to_owned(), found, expected))
        }
        checked => checked.map(|()| None)?,
    };
    let Some((entry, here, expected)) = signed.or(mixed) else { return Ok(found) };
    let (there, subject) = (file.path.display(), &file.subject);
    let command = format!("iterative-prune --search <method> experiments/{subject}.toml");
    let difference = format!("{entry} is {here} but {expected} there");
    Err(alone(
        &search.path,
        &format!("does not go with `{there}`: {difference}: make it again with `{command}`"),
    ))
}

/// Which heads may be masked, and how.
fn step_entries(identity: &Identity) -> Vec<Entry> {
    let argument = |name| (name, identity.arguments.get(name).map(|value| value.to_string()));
    vec![argument("rescale"), argument("keep_at_least"), argument("step_percent")]
}

/// Share of the heads that a row masks, in percent.
pub fn percent(row: &PruningRow) -> f64 {
    100.0 * row.masked as f64 / row.heads as f64
}

/// The steps before the first one that is missing. Without heads masked all curves are equal, so the first may be that of
/// one masked share.
fn without_gap(steps: &[PruningRow]) -> &[PruningRow] {
    let first = steps.first().map_or(0, |row| row.step);
    let follows = |(index, row): &(usize, &PruningRow)| first <= 1 && row.step == first + index;
    &steps[..steps.iter().enumerate().take_while(follows).count()]
}

/// As for [`Series::removable`], of these `steps`.
fn removable(steps: &[PruningRow], judge: Judge, which: Which) -> Option<Removable> {
    steps.iter().find(|row| row.masked > 0 && judge.can_tell(which, *row))?;
    // The rule looks at `p_value`; here that is the one which counts.
    let counted = |row: &PruningRow| PruningRow { p_value: judge.criterion.p_value(row), ..row.clone() };
    let counted: Vec<_> = steps.iter().map(counted).collect();
    let last = judge.rule(which).last_accepted(&counted).map(|last| last.step);
    let accepted = steps.iter().take_while(|row| last.is_some_and(|last| row.step <= last));
    let last = accepted.clone().last();
    let next = steps.get(accepted.count());
    Some(Removable {
        percent: last.map_or(0.0, percent),
        range: None,
        change: Some(last.map_or(Change::default(), Change::of)),
        is_open: last.is_none_or(|last| last.masked < last.heads)
            && next.is_none_or(|next| !judge.can_tell(which, next)),
    })
}

impl Series {
    /// The largest share of heads that can go by one rule; of several runs the median, if all of them say.
    ///
    /// Going up the steps, this is the last one before the first that the rule does not accept; a later one that it would
    /// accept again does not count. A step that is missing or was not tested proves nothing and ends the climb. `None` if
    /// no step could tell.
    ///
    /// Exchanges are tried at one number of heads: a loss there does not say that fewer cannot go, so that is `None`.
    pub fn removable(&self, judge: Judge, which: Which) -> Option<Removable> {
        let is_swap = self.curve.order == Order::Swap;
        let of_run = |steps: &Vec<PruningRow>| {
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
            change: None,
            is_open: all.iter().any(|one| one.is_open),
        })
    }

    /// The share with a loss within the margin and its interval, which is that of the score at each step by itself; none of
    /// several runs, or where no step was tested.
    pub fn tolerable(&self, judge: Judge) -> Option<Tolerable> {
        let [steps] = &self.runs[..] else { return None };
        let low = self.removable(judge, Which::ShownSafe)?.percent;
        let before = |gain: &dyn Fn(&PruningRow) -> f64| {
            let margin = |row: &PruningRow| row.base_score.abs() * judge.margin_percent() / 100.0;
            let kept =
                without_gap(steps).iter().take_while(|row| row.masked == 0 || gain(row) >= -margin(row));
            kept.last().map_or(0.0, percent)
        };
        let most = |row: &PruningRow| {
            let ends = row.delta_low.zip(row.delta_high).map(|(low, high)| [low, high]);
            let gains = ends.unwrap_or([f64::INFINITY; 2]).map(|delta| row.direction().gain(delta));
            gains[0].max(gains[1])
        };
        Some(Tolerable { percent: before(&|row| row.difference(None).gain), low, high: before(&most) })
    }

    /// Share and score of the step nearest to `share`, in percent and in the unit of the metric, if one lies within `gap` of
    /// it; of several runs the median score at the same step.
    pub fn score_at(&self, share: f64, gap: f64) -> Option<(f64, f64)> {
        let distance = |row: &PruningRow| (percent(row) - share).abs();
        let rows = || self.runs.iter().flatten().filter(|row| distance(row) <= gap);
        let nearest = rows().min_by(|left, right| distance(left).total_cmp(&distance(right)))?;
        let mut scores: Vec<_> =
            rows().filter(|row| row.masked == nearest.masked).map(|row| row.score).collect();
        scores.sort_by(f64::total_cmp);
        Some((percent(nearest), median(&scores)?))
    }
}

/// Of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle)?;
    let lower = if sorted.len() % 2 == 1 { upper } else { &sorted[middle - 1] };
    Some((lower + upper) / 2.0)
}

/// The ends of the 95 % interval of a row's score, if it was tested.
pub fn interval(row: &impl TestedRow) -> Option<(f64, f64)> {
    let tests = row.tests();
    Some((tests.base_score + tests.delta_low?, tests.base_score + tests.delta_high?))
}

#[cfg(test)]
mod tests;
