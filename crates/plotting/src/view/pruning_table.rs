//! How many heads can go, by two rules, beside what the paper reports for its models (Michel et al. 2019, Section 4.2 and
//! Appendix B).
use records::{Order, Scope};

use super::{Context, that_hold};
use crate::data::pruning::{Change, Pruning, Removable, Series, percent};
use crate::judge::{Judge, Which};
use crate::paper::{Paper, Share};
use crate::table::{Cell, Row, Table, names};
use crate::words::{self, tenths};

/// Name of its files, without extension.
pub const STEM: &str = "pruning";

/// Why the share of the oracle says less than it seems.
pub const ORACLE: &str = "made on the very split that is scored, so its share is optimistic";

/// What a complement is.
pub const COMPLEMENT: &str =
    "as many heads masked in the opposite order, so that those which the order masks first are kept";

/// A score is given for a share of masked heads if a step lies no further away, in percentage points.
const NEAR: f64 = 5.0;

/// One row for each curve, and one for each floor.
pub fn table(pruning: &Pruning, context: Context<'_>) -> Table {
    let (metric, judge) = (&pruning.metric, pruning.judge(context.criterion));
    let published = context.paper.filter(|_| !pruning.file.is_language()).map_or(Vec::new(), Paper::shares);
    let beside = pruning.published(&published);
    let mut columns = names(&["safe (%)", "change", "no sig. loss (%)", "change", "score at 50 %"]);
    columns.extend((!published.is_empty()).then(|| "paper (%)".to_owned()));
    let unit = metric.in_unit().strip_prefix(", ").map_or(String::new(), |unit| format!(", changes {unit}"));
    let curves = pruning.series.iter().map(|series| row(pruning, series, judge, beside));
    let mut rows: Vec<_> = curves.chain(floors(pruning)).collect();
    rows.iter_mut().for_each(|row| row.cells.resize(columns.len(), Cell::default()));
    Table {
        name: "Heads that can go",
        label: format!("{STEM}-{}", pruning.file.subject),
        title: format!(
            "Largest share of heads that can be masked: shown to be safe, and without a significant loss of {}{unit}; {}",
            metric.label(),
            pruning.file.title()
        ),
        headings: ["Order", "Largest share"],
        columns,
        rows,
        summary: summary(pruning, judge),
        remarks: remarks(pruning, &published, beside),
        ..Table::default()
    }
}

/// The share as printed: `20`, `12.5 [0 to 30]` for several runs, `≥ 90` where the climb ended for want of a test.
pub fn share(removable: &Removable) -> String {
    let range = removable.range.map(|(low, high)| format!(" [{} to {}]", tenths(low), tenths(high)));
    words::share(removable.percent, removable.is_open) + &range.unwrap_or_default()
}

/// The score near a share of masked heads, with the share of that step where it is another; empty if none is near.
pub fn score_at(pruning: &Pruning, series: &Series, share: f64) -> String {
    series.score_at(share, NEAR).map_or(String::new(), |(found, score)| {
        let amount = pruning.metric.amount(score);
        if (found - share).abs() < 0.05 { amount } else { format!("{amount} (at {} %)", tenths(found)) }
    })
}

fn row(pruning: &Pruning, series: &Series, judge: Judge, beside: Option<&Share>) -> Row {
    let of = |which| {
        let Some(removable) = series.removable(judge, which) else { return ["?"; 2].map(Cell::from) };
        let share = Cell::number(share(&removable), removable.percent);
        let change = |change: Change| Cell::number(change.in_words(&pruning.metric), change.delta);
        [share, removable.change.map_or(Cell::default(), change)]
    };
    let mut cells: Vec<_> = Which::BOTH.into_iter().flat_map(of).collect();
    cells.push(score_at(pruning, series, 50.0).into());
    let is_the_papers = pruning.find(Scope::All, Order::Importance) == Some(series);
    let paper = beside
        .filter(|_| is_the_papers)
        .map(|Share { percent, .. }| Cell::number(tenths(*percent), *percent));
    cells.push(paper.unwrap_or_default());
    Row { label: label(series), cells }
}

/// `enc-enc: random, median of 10`; `importance, complement`.
fn label(series: &Series) -> String {
    let runs = match series.runs.len() {
        1 => String::new(),
        runs => format!(", median of {runs}"),
    };
    let complement = if series.curve.is_complement { ", complement" } else { "" };
    format!("{}{}{complement}{runs}", prefix(series.curve.scope), series.curve.order)
}

fn prefix(scope: Scope) -> String {
    if scope == Scope::All { String::new() } else { format!("{scope}: ") }
}

/// The score with all heads masked stands in the column of scores, with its share.
fn floors(pruning: &Pruning) -> impl Iterator<Item = Row> {
    pruning.floors.iter().map(|(&scope, row)| {
        let score = format!("{} (at {} %)", pruning.metric.amount(row.score), tenths(percent(row)));
        let mut cells = vec![Cell::default(); 4];
        cells.push(Cell::number(score, row.score));
        Row { label: format!("{}floor, all masked", prefix(scope)), cells }
    })
}

fn summary(pruning: &Pruning, judge: Judge) -> Vec<String> {
    let mut summary = vec![
        pruning.base_line(),
        "each share is that of the last step before the first one that the rule does not accept".to_owned(),
    ];
    summary.extend(judge.rules("steps"));
    summary.extend(pruning.file.of_orders());
    let shares =
        || pruning.series.iter().flat_map(|series| Which::BOTH.map(|which| series.removable(judge, which)));
    let has = |is_meant: &dyn Fn(&Series) -> bool| pruning.series.iter().any(is_meant);
    let sentences = [
        (
            shares().any(|share| share.is_none()),
            "?: no step was tested in a way that could tell, or the only step that was searched is a loss"
                .to_owned(),
        ),
        (
            shares().flatten().any(|share| share.is_open),
            "\u{2265}: no step fails; the curve, or its tests, end here".to_owned(),
        ),
        (
            has(&|series| series.runs.len() > 1),
            "random: median and range of the shares of single orders".to_owned(),
        ),
        (has(&|series| series.curve.is_complement), format!("complement: {COMPLEMENT}")),
    ];
    summary.extend(that_hold(sentences));
    summary
}

fn remarks(pruning: &Pruning, published: &[Share], beside: Option<&Share>) -> Vec<String> {
    let all = published.iter().map(|Share { task, percent, .. }| format!("{} % ({task})", tenths(*percent)));
    let all = format!(
        "all shares in the paper, \"without noticeable loss\": {}",
        all.collect::<Vec<_>>().join(", ")
    );
    let has_oracle = pruning.series.iter().any(|series| series.curve.order == Order::Oracle);
    let paper =
        beside.map(|Share { figure, task, .. }| format!("paper: Michel et al. (2019), {figure}, {task}"));
    paper
        .into_iter()
        .chain(that_hold([(!published.is_empty(), all), (has_oracle, format!("oracle: {ORACLE}"))]))
        .chain(pruning.file.open_question())
        .chain(without_attention(pruning).map(str::to_owned))
        .collect()
}

/// What a model whose only attention type is `self` still sees with all heads masked, where it was scored so.
pub fn without_attention(pruning: &Pruning) -> Option<&'static str> {
    pruning.has_blind_step().then_some(if pruning.file.is_language() {
        "at 100 % each position sees only itself: a token is predicted from the one before it alone"
    } else {
        "at 100 % the first position, which is classified, sees only itself: every text gets the same class"
    })
}
