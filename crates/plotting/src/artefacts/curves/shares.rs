//! Shares of heads that can be masked by two rules, next to the paper's (Michel et al. 2019, Section 4.2 and Appendix B).
use crate::findings::paper::Share;
use crate::findings::pruning::{Change, share as masked_share};
use crate::findings::results::distinct;
use crate::findings::{Criterion, Metric, PAPER, Pruning, Removable, ResultFile, RuleKind, Series};
use charts::table::{Cell, Row, Table};
use records::{CurveRow, Order, Scope};
use words::{brackets, fixed, tenths};

pub const STEM: &str = "pruning";

/// Caution for rankings such as the oracle.
pub const OPTIMISTIC: &str = "made on the scored split, so its share is optimistic";

/// Definition of a complement.
pub const COMPLEMENT: &str = "equally many heads masked in the opposite order, the most important ones first";

/// Names of the columns; the last is left out if there are no published numbers to compare with.
const COLUMNS: [&str; 7] =
    ["dispensable (%)", "change", "power", "no sig. loss (%)", "change", "score at 50%", "paper (%)"];

/// Definition of the spread of a share.
pub const SPREAD: &str =
    "in parentheses: percentiles 2.5 and 97.5 of the share on 1,000 resamples of the test set";

/// Definition of the power.
pub const POWER: &str = "power: the probability of showing that the next step is dispensable if it cost nothing but changed equally many segments";

type BothShares = [Option<Removable>; 2];

/// Tabulates a row per curve, and one per floor, whose share is next to its score.
pub fn table(pruning: &Pruning, criterion: Criterion) -> Table {
    let (results, file) = (&pruning.results, &pruning.results.file);
    let published = if file.is_language() { &[] } else { PAPER.shares.as_slice() };
    let (beside, names) =
        (pruning.published(published), &COLUMNS[..if published.is_empty() { 6 } else { 7 }]);
    let (metric, judge) = (results.metric(), results.judge(criterion));
    let both = |series: &Series| RuleKind::BOTH.map(|which| series.removable(judge, which));
    let shares: Vec<BothShares> = pruning.series.iter().map(both).collect();
    let of_series = pruning.series.iter().zip(&shares);
    let of_series = of_series.map(|(series, shares)| row(pruning, series, shares, beside));
    let of_floors = pruning.floors.iter().map(|(&scope, row)| floor(&metric, scope, row));
    let (label, unit) = (metric.label(), metric.in_unit(", changes in"));
    let title =
        "Largest share of heads that can be masked: dispensable together, and without a significant loss of";
    Table::new("Prunable heads", file.label(STEM), file.titled(format!("{title} {label}{unit}")))
        .columns(["Order", "Largest share"], names.iter().copied())
        .rows(of_series.chain(of_floors).map(|row| row.cut(names.len())))
        .note(results.base_line())
        .note("share: heads masked at the last step before the first one that the rule rejects")
        .note(judge.rules("steps"))
        .note(shares.as_flattened().iter().flatten().any(|share| share.spread.is_some()).then_some(SPREAD))
        .note(power(pruning))
        .note(file.of_orders())
        .note(signs(pruning, shares.as_flattened()))
        .remark(beside.map(|share| format!("paper: Michel et al. (2019), {}, {}", share.figure, share.task)))
        .remark(all_published(published))
        .remark(optimistic(file, pruning.series.iter()))
        .remark(file.open_question())
        .remark(without_attention(pruning))
}

/// Explains power and, for the first step by importance, gives the size of a sufficient test set.
pub fn power(pruning: &Pruning) -> Option<String> {
    let all = || pruning.series.iter().flat_map(|series| series.runs.iter().flatten());
    all().find_map(|row| row.power)?;
    let steps = pruning.find(Scope::All, Order::Importance).and_then(|series| series.runs.first());
    let first = steps.and_then(|steps| steps.iter().find(|row| row.masked > 0));
    let enough = first.and_then(|row| row.power.zip(row.segments_for_power)).map(|(power, segments)| {
        let (power, segments) = (fixed(power, 2), fixed(segments, 0));
        format!("; at the first step by importance it is {power}, and {segments} segments would give 0.80")
    });
    Some(format!("{POWER}{}", enough.unwrap_or_default()))
}

/// Returns the share of heads that can be masked by both rules, the change there, and the score with half of them masked.
fn row(pruning: &Pruning, series: &Series, shares: &BothShares, beside: Option<&Share>) -> Row {
    let metric = pruning.results.metric();
    let share_and_change = |removable: &Option<Removable>| {
        let Some(removable) = removable else { return [(); 2].map(|()| Cell::gap("?")) };
        let change = |change: Change| Cell::number(change.in_words(&metric), change.delta);
        [Cell::number(share(removable, ""), removable.percent), removable.change.map(change).into()]
    };
    let [[dispensable, changed], without_loss] = shares.each_ref().map(share_and_change);
    let power = shares[0]
        .as_ref()
        .and_then(|share| share.power)
        .map(|power| Cell::printed(power, |power| fixed(power, 2)));
    let is_the_papers = pruning.find(Scope::All, Order::Importance) == Some(series);
    let paper = beside.filter(|_| is_the_papers).map(|share| Cell::printed(share.percent, tenths));
    let last = [score_at(pruning, series, 50.0), paper.into()];
    Row::new(label(series), [dispensable, changed, power.into()].into_iter().chain(without_loss).chain(last))
}

fn floor(metric: &Metric, scope: Scope, row: &CurveRow) -> Row {
    let score = format!("{} (at {}%)", metric.amount(row.score), tenths(masked_share(row)));
    let score = [Cell::number(score, row.score), Cell::default()];
    Row::new(
        format!("{}floor, all masked", prefix(scope)),
        [(); 5].map(|()| Cell::default()).into_iter().chain(score),
    )
}

fn signs(pruning: &Pruning, shares: &[Option<Removable>]) -> Vec<String> {
    let has_gap = shares.iter().any(Option::is_none);
    let is_open = shares.iter().flatten().any(|share| share.is_open);
    let has_several = pruning.series.iter().any(|series| series.runs.len() > 1);
    let has_complement = pruning.series.iter().any(|series| series.curve.complement);
    let gap = "?: no step was tested in a way that could decide, or the only searched step is a loss";
    let signs = [
        (has_gap, gap.to_owned()),
        (is_open, "\u{2265}: no step fails; the curve or its tests end here".to_owned()),
        (has_several, "random: median and range of the shares over orders".to_owned()),
        (has_complement, format!("complement: {COMPLEMENT}")),
    ];
    signs.into_iter().filter(|(is_there, _)| *is_there).map(|(_, sign)| sign).collect()
}

/// Names the rankings that were made on the scored split.
pub fn optimistic<'a>(file: &ResultFile, series: impl Iterator<Item = &'a Series>) -> Option<String> {
    let orders = series.map(|series| series.curve.order).filter(|&order| file.is_made_on_scored(order));
    let orders = distinct(orders);
    let names: Vec<_> = orders.into_iter().map(Order::name).collect();
    (!names.is_empty()).then(|| format!("{}: {OPTIMISTIC}", names.join(" and ")))
}

fn all_published(published: &[Share]) -> Option<String> {
    let task = |share: &Share| format!("{}% ({})", tenths(share.percent), share.task);
    let all = published.iter().map(task).collect::<Vec<_>>().join(", ");
    (!all.is_empty()).then(|| format!("all shares in the paper, \"without noticeable loss\": {all}"))
}

/// Formats a share: `20 (10 to 30)` with its spread, `12.5 [0 to 30]` for several curves, `≥ 90` if tests ended before a rejected step.
pub fn share(removable: &Removable, unit: &str) -> String {
    let spread = removable.spread.map(|(low, high)| format!(" ({} to {})", tenths(low), tenths(high)));
    words::share(removable.percent, removable.is_open)
        + unit
        + &spread.unwrap_or_default()
        + &brackets(removable.range, " to ", tenths)
}

/// Formats the score near a share of masked heads, with the share if it differs; empty if no step is near.
pub fn score_at(pruning: &Pruning, series: &Series, percent: f64) -> Cell {
    let found = series.score_at(percent).map(|(found, score)| {
        let is_another = (found - percent).abs() >= 0.05;
        let at = if is_another { format!(" (at {}%)", tenths(found)) } else { String::new() };
        Cell::number(pruning.results.metric().amount(score) + &at, score)
    });
    found.into()
}

/// Names a curve: `enc-enc: random, median of 10`; `importance, complement`.
fn label(series: &Series) -> String {
    let runs = match series.runs.len() {
        1 => String::new(),
        runs => format!(", median of {runs}"),
    };
    let complement = if series.curve.complement { ", complement" } else { "" };
    format!("{}{}{complement}{runs}", prefix(series.curve.attention), series.curve.order)
}

fn prefix(scope: Scope) -> String {
    if scope == Scope::All { String::new() } else { format!("{scope}: ") }
}

/// Explains what a model with only `self` attention sees with all heads masked; `None` if that was not scored.
pub fn without_attention(pruning: &Pruning) -> Option<&'static str> {
    pruning.has_blind_step().then_some(if pruning.results.file.is_language() {
        "at 100% each position sees only itself: a token is predicted from the previous token alone"
    } else {
        "at 100% the first position, which is classified, sees only itself: every text gets the same class"
    })
}
