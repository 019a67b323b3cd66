//! Compares all setups: how many heads can be masked, which heads several tasks share, and effect sizes. The paper has no such page.
use std::collections::BTreeSet;

use crate::artefacts::cross_domain::{COLUMNS, HOW_TO_READ, cells};
use crate::findings::paper::Share;
use crate::findings::{Ablations, Criterion, PAPER, Pairing, Pruning, ShareWithinMargin, SubjectResults};
use crate::view::three;
use charts::chart::{self, At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style, Ticks};
use charts::palette::{BLUE, GREY, INK, VERMILLION};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use records::verdicts::MARGIN_PERCENT;
use records::{AblationRow, Attention, TestedRow as _, Verdict};
use words::{range, tenths, typeset};

/// Share of heads that can be masked in one of our setups, one of the paper's models, or both if comparable.
#[derive(Clone, Copy)]
struct Compared<'a> {
    ours: Option<(&'a Pruning, ShareWithinMargin)>,
    published: Option<&'a Share>,
}

/// Returns our shares with the paper's next to them, then those of the paper without a counterpart.
fn shares_of<'a>(
    all: &'a [SubjectResults],
    published: &'a [Share],
    criterion: Criterion,
) -> Vec<Compared<'a>> {
    let of = |pruning: &'a Pruning| {
        let found = pruning.within_margin(criterion)?;
        Some(Compared { ours: Some((pruning, found)), published: pruning.published(published) })
    };
    let mut shares: Vec<_> = all.iter().filter_map(|subject| of(subject.pruning.as_ref()?)).collect();
    let alone = published.iter().filter(|one| shares.iter().all(|share| share.published != Some(one)));
    let alone: Vec<_> = alone.map(|one| Compared { ours: None, published: Some(one) }).collect();
    shares.extend(alone);
    shares
}

impl Compared<'_> {
    /// Returns its name, with `of_ours` for our setups.
    fn name(self, of_ours: fn(&Pruning) -> String) -> String {
        let theirs = || self.published.map_or(String::new(), |share| format!("paper: {}", share.task));
        self.ours.map_or_else(theirs, |(pruning, _)| of_ours(pruning))
    }

    fn row(self) -> Row {
        let number = |value: f64| Cell::printed(value, tenths);
        let published = |share: &Share| {
            Cell::number(format!("{} ({})", tenths(share.percent), share.figure), share.percent)
        };
        let base = self.ours.map(|(pruning, _)| pruning.results.described_base());
        let of = |value: fn(ShareWithinMargin) -> f64| {
            Cell::from(self.ours.map(|(_, found)| number(value(found))))
        };
        let found = [of(|found| found.percent), of(|found| found.low), of(|found| found.high)];
        let cells = [base.into()].into_iter().chain(found).chain([self.published.map(published).into()]);
        Row::new(self.name(|pruning| pruning.results.file.title()), cells)
    }
}

fn of_shares() -> String {
    format!(
        "masked by importance. The dot is the share up to which the measured loss is within the margin, {MARGIN_PERCENT}% of the score \
         (of the perplexity, for nats) unless the files set another one. Up to the lower end of the interval heads are dispensable \
         together; beyond the upper end they are needed. The interval comes from the score at each step separately, and is only as fine as the steps. The paper's shares are \
         judged by eye, from other models and other data"
    )
}

/// Plots the shares of all setups with intervals, and the paper's.
pub fn shares(all: &[SubjectResults], criterion: Criterion) -> Option<Sheet> {
    let found = shares_of(all, &PAPER.shares, criterion);
    if found.iter().all(|share| share.ours.is_none()) {
        return None;
    }
    let (name, title) = ("Prunable heads", "Share of heads that can be masked together, in percent");
    let table = Table::new(name, "comparison-shares", title)
        .columns(["Setup", "Share"], ["base", "share (%)", "from (%)", "to (%)", "paper (%)"])
        .rows(found.iter().map(|share| share.row()))
        .note(of_shares());
    let ours = Mark::new(Shape::Circle, 2.4, BLUE);
    let theirs = Mark::new(Shape::Diamond, 2.8, VERMILLION).hollow();
    let places = || found.iter().enumerate().map(|(place, share)| (place as f64 + 0.5, share));
    let measured = || places().filter_map(|(height, share)| Some((height, share.ours?.1)));
    let interval = |(height, found): (f64, ShareWithinMargin)| {
        Layer::Line(vec![(found.low, height), (found.high, height)], Style::line(BLUE, 1.0))
    };
    let mut layers: Vec<_> = measured().map(interval).collect();
    layers.push(Layer::Points(measured().map(|(height, found)| (found.percent, height)).collect(), ours));
    let of_paper = places().filter_map(|(height, share)| Some((share.published?.percent, height)));
    layers.push(Layer::Points(of_paper.collect(), theirs));
    let subjects = found.iter().map(|share| share.name(|pruning| pruning.results.file.subject.clone()));
    let chart = Chart::new(name, "comparison-shares-chart", title)
        .note(of_shares())
        .entries([
            Entry::mark("ours, with 95% interval", ours),
            Entry::mark("paper, same kind of task, judged by eye", theirs),
        ])
        .panels(1, vec![Panel::rows(Axis::percent("share of heads (%)"), subjects.collect(), layers)])
        .wide();
    Some(Sheet::new("comparison-shares", chart, [table]))
}

/// Heads of one attention type in a sweep, which are tested together.
type Family<'a> = (&'a Ablations, Attention);

const EFFECTS: &str = "Effect sizes";
const TITLE_OF_EFFECTS: &str =
    "Cost of masking one head, in percent of the score or, for nats per token, of the perplexity";

const CHOSEN: &str = "the largest loss is selected from many, which its interval does not account for";

/// Plots the effects of single heads, in percent of the score, for each family of tests.
pub fn effects(all: &[SubjectResults], criterion: Criterion) -> Option<Sheet> {
    // there are no percentages of a base score of 0, which a Matthews correlation can have
    let sweeps = all.iter().filter_map(|subject| subject.sweep.as_ref()).filter(|sweep| sweep.base() != 0.0);
    let families = sweeps.flat_map(|sweep| sweep.attentions().into_iter().map(move |one| (sweep, one)));
    let families: Vec<Family> = families.collect();
    if families.is_empty() {
        return None;
    }
    let (chart, table) = (chart_of_effects(&families, criterion), table_of_effects(&families, criterion));
    Some(Sheet::new("comparison-effects", chart, [table]))
}

fn table_of_effects(families: &[Family<'_>], criterion: Criterion) -> Table {
    let row = |&(sweep, attention): &Family<'_>| {
        let mut losses: Vec<_> = sweep.family(attention).into_iter().map(|row| loss(sweep, row)).collect();
        losses.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let value = losses[(share * (losses.len() - 1) as f64).round() as usize];
            Cell::printed(value, |value| typeset(value, 2))
        };
        let significant = criterion.adjusted().tally(sweep.family(attention)).significant;
        let verdicts = three(sweep.judge(criterion).verdicts(sweep.family(attention)));
        let ends = greatest(sweep, attention).and_then(|row| interval_of_loss(sweep, row));
        let ends = ends.map(|ends| Cell::interval(ends, |value| typeset(value, 2)));
        let sizes = [at(0.0), at(0.5), at(1.0), ends.into(), significant.into()];
        let cells = [losses.len().into()].into_iter().chain(verdicts).chain(sizes);
        Row::new(format!("{}, {attention}", sweep.file.title()), cells)
    };
    let columns = [
        "heads",
        "needed",
        "dispensable",
        "undecided",
        "minimum (%)",
        "median (%)",
        "maximum (%)",
        "its 95% interval",
        "significant, adjusted",
    ];
    Table::new(EFFECTS, "comparison-effects", TITLE_OF_EFFECTS)
        .columns(["Setup and attention", "Loss"], columns)
        .rows(families.iter().map(row))
        .note(of_verdicts())
        .note("below 0 the score gets better without the head; adjusted for the heads of the attention type")
        .note(CHOSEN)
}

fn of_verdicts() -> String {
    format!(
        "needed: the whole 95% interval of the loss is above the margin of {MARGIN_PERCENT}% (unless the files set another one); \
         dispensable: below it"
    )
}

/// Plots a row of marks per family, with a mark per verdict; heads without a verdict are drawn as dispensable.
fn chart_of_effects(families: &[Family<'_>], criterion: Criterion) -> Chart {
    let points = |verdict: Verdict| -> Vec<(f64, f64)> {
        let each = families.iter().enumerate().flat_map(|(height, (sweep, attention))| {
            let judge = sweep.judge(criterion);
            let own =
                move |row: &&AblationRow| judge.verdict(*row).unwrap_or(Verdict::Dispensable) == verdict;
            let rows = sweep.family(*attention).into_iter().filter(own);
            rows.map(move |row| (loss(sweep, row), height as f64 + 0.5))
        });
        each.collect()
    };
    let kinds = [Verdict::Dispensable, Verdict::Undecided, Verdict::Needed];
    let marks = [
        Mark::new(Shape::Tick, 4.0, BLUE),
        Mark::new(Shape::Circle, 1.6, INK).hollow(),
        Mark::new(Shape::Circle, 1.8, VERMILLION),
    ];
    let points = kinds.map(points);
    let intervals = families.iter().enumerate().filter_map(|(place, (sweep, attention))| {
        let ends = interval_of_loss(sweep, greatest(sweep, *attention)?)?;
        Some((place as f64 + 0.5, ends))
    });
    let intervals: Vec<(f64, (f64, f64))> = intervals.collect();
    let ends = intervals.iter().flat_map(|(_, (low, high))| [*low, *high]);
    let x = symmetric_log(extent(points.iter().flatten().map(|(loss, _)| *loss).chain(ends).chain([0.0])));
    let of_greatest = Style::line(INK, 0.5);
    let mut layers = vec![Layer::Rule(At::X(0.0), Style::dashed(GREY, 0.6))];
    layers.extend(intervals.into_iter().map(|(height, (low, high))| {
        Layer::Line(vec![(place(low), height), (place(high), height)], of_greatest)
    }));
    let on_axis =
        |points: Vec<(f64, f64)>| points.into_iter().map(|(loss, height)| (place(loss), height)).collect();
    layers.extend(points.into_iter().zip(marks).map(|(points, mark)| Layer::Points(on_axis(points), mark)));
    layers.extend(
        [-1.0, 1.0].map(|side| Layer::Rule(At::X(place(side * MARGIN_PERCENT)), Style::line(GREY, 0.4))),
    );
    let names =
        families.iter().map(|(sweep, one)| format!("{}, {}", sweep.file.subject, one.in_words())).collect();
    Chart::new(EFFECTS, "comparison-effects-chart", TITLE_OF_EFFECTS)
        .note("a mark for each head; masking heads on the right of 0 makes the score worse; the axis is linear within the margin and logarithmic beyond it")
        .note(of_verdicts())
        .note(CHOSEN)
        .entries(kinds.into_iter().zip(marks).map(|(verdict, mark)| Entry::mark(verdict.to_string(), mark)))
        .entries([Entry::line("95% interval of the largest loss", of_greatest)])
        .entries([Entry::line(format!("margin (±{MARGIN_PERCENT}%)"), Style::line(GREY, 0.4))])
        .panels(1, vec![Panel::rows(x, names, layers)])
        .wide()
}

/// Returns the position of a loss on an axis that is linear within the margin and logarithmic beyond it.
fn place(percent: f64) -> f64 {
    (percent / MARGIN_PERCENT).asinh()
}

fn symmetric_log((low, high): (f64, f64)) -> Axis {
    let ticks = [-100.0, -10.0, -MARGIN_PERCENT, 0.0, MARGIN_PERCENT, 10.0, 100.0, 1000.0, 10000.0];
    let ticks = ticks.into_iter().filter(|tick| (low..=high).contains(tick));
    let ticks = ticks.map(|tick| (place(tick), vec![typeset(tick, 0)])).collect();
    let label = "loss with the head masked (%, symmetric log scale)";
    Axis { ticks: Ticks::Names(ticks), ..Axis::of_at_least(label, (place(low), place(high)), 1.0) }
}

fn greatest(sweep: &Ablations, attention: Attention) -> Option<&AblationRow> {
    let rows = sweep.family(attention).into_iter();
    rows.max_by(|one, other| loss(sweep, one).total_cmp(&loss(sweep, other)))
}

/// Returns the 95% interval of a loss.
fn interval_of_loss(sweep: &Ablations, row: &AblationRow) -> Option<(f64, f64)> {
    let ends = row.delta_interval()?;
    let [one, other] = [ends.0, ends.1].map(|delta| percent_lost(sweep, delta));
    Some((one.min(other), one.max(other)))
}

/// Returns the loss caused by masking a head, in percent of the score or perplexity.
fn loss(sweep: &Ablations, row: &AblationRow) -> f64 {
    percent_lost(sweep, row.score_delta)
}

fn percent_lost(sweep: &Ablations, delta: f64) -> f64 {
    sweep.metric().percent_lost(delta, sweep.base())
}

/// Draws a matrix of tasks for each model: r below the diagonal, its interval above.
fn chart_of_tasks(pairings: &[Pairing], title: &str) -> Chart {
    let models: BTreeSet<&str> = pairings.iter().map(|pairing| pairing.pretrained.as_str()).collect();
    let panel = |model: &&str| {
        let own = || pairings.iter().filter(|pairing| pairing.pretrained == **model);
        let tasks: BTreeSet<&String> = own().flat_map(|pairing| &pairing.subjects).collect();
        let tasks: Vec<&String> = tasks.into_iter().collect();
        let cell = |row: usize, column: usize| {
            let names = [tasks[row], tasks[column]];
            let found = own().find(|pairing| names.iter().all(|name| pairing.subjects.contains(name)));
            let found = found.filter(|_| row != column).map(|pairing| &pairing.row);
            let ends = found.and_then(|row| row.pearson_low.zip(row.pearson_high));
            let text = if column < row {
                found.and_then(|row| row.pearson).map(|r| typeset(r, 2))
            } else {
                ends.map(|ends| range(ends, |r| typeset(r, 2)))
            };
            let value = if row == column { Some(0.0) } else { found.and_then(|row| row.pearson) };
            chart::Cell { value, text: text.unwrap_or_default(), ..chart::Cell::default() }
        };
        Panel::matrix(("", &tasks), ("", &tasks), 18.0, cell).named(*model)
    };
    Chart::new("One pretrained model, several tasks", "comparison-tasks-chart", title)
        .entries([Entry::text("below the diagonal: r over the heads; above the diagonal: its 95% interval")])
        .panels(1, models.iter().map(panel).collect())
        .bar("r", chart::BAR_COLORS.map(|r| typeset(r, 1)))
}

/// Tabulates each pair of tasks of one pretrained model.
pub fn tasks(pairings: &[Pairing]) -> Option<Sheet> {
    let row = |pairing: &Pairing| {
        let [first, second] = &pairing.subjects;
        let label = format!("{}: {first} and {second}", pairing.pretrained);
        let scope = Cell::from(pairing.row.attention.name());
        let importance =
            pairing.importance.map(|both| both.map(|value| Cell::printed(value, |value| typeset(value, 2))));
        let tested = std::iter::once(scope).chain(cells(&pairing.row));
        Row::new(label, tested.chain(importance.unwrap_or_default()))
    };
    let columns = ["attention"].into_iter().chain(COLUMNS).chain(["r of importance", "rho of importance"]);
    let title = "Correlation of the scores with one head masked, between tasks that one pretrained model was \
         fine-tuned on";
    let table = Table::new("One pretrained model, several tasks", "comparison-tasks", title)
        .columns(["Model and tasks", "Agreement"], columns)
        .rows(pairings.iter().map(row))
        .note("interval of r: jackknife over the segments of both tasks")
        .note(HOW_TO_READ);
    (!pairings.is_empty()).then(|| Sheet::new("comparison-tasks", chart_of_tasks(pairings, title), [table]))
}
