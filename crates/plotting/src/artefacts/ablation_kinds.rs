//! Compares kinds of ablation: is a head needed whatever replaces its output?
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::ablation_kinds::{Kind, KindAgreement, KindContrast, Kinds};
use crate::findings::error::no_kinds;
use crate::findings::replicates::HeadAcrossRuns;
use crate::findings::{Criterion, Judge, Result, experiment};
use charts::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{BLUE, GREY, INK, SILVER};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use records::{AblationRow, Attention, Verdict};
use stats::family::Comparison;
use words::{count, fixed};

use crate::view::{SIGNS, by_name, judged, sheet};

const STEM: &str = "ablation-kinds";

pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "kinds", chapter::SINGLE_HEADS],
    "Effect of masking each head under each kind of ablation: zeros, its mean output, or its output in another text",
    Reads::Each(experiment::SWEEP),
    |file, request, _| {
        let found = Kinds::read(file.clone())?;
        let sheet = found.map(|found| sheet_of(&found, request.criterion));
        request.sheet_or(sheet, || no_kinds(&file, experiment::SWEEP))
    },
)
.detail("after `--ablation mean` and `--ablation resample`");

/// Maximum number of heads in the second table.
const MOST: usize = 20;

fn sheet_of(found: &Kinds, criterion: Criterion) -> Result<charts::write::Sheet> {
    let judge = found.zero().judge(criterion);
    let contrasts = found.contrasts_with_zero()?;
    let agreement =
        agreement(found, &found.agreements()?, judge).note(differences(found, &contrasts, criterion));
    let tables = [Some(agreement), heads(found, judge)];
    let chart = figure(found, &contrasts, criterion);
    Ok(sheet(&found.zero().file, STEM, chart, tables.into_iter().flatten()))
}

/// Describes for how many heads masking costs more under zero ablation than under another kind, and less.
fn differences(found: &Kinds, contrasts: &[KindContrast], criterion: Criterion) -> Vec<String> {
    let metric = found.zero().metric();
    let sentence = |own: &KindContrast| {
        let kind = found.all[own.kind].name;
        let [more, less] = own.counts(metric, criterion.alpha, |test| test.p_value);
        let [adjusted_more, adjusted_less] = own.counts(metric, criterion.alpha, |test| test.p_adjusted);
        format!(
            "tested as a difference (p < {}), masking costs more with zeros than with {kind} for {}, and less for {less}; adjusted by Holm over \
             the heads, {adjusted_more} and {adjusted_less}",
            criterion.alpha,
            count(more, "head")
        )
    };
    contrasts.iter().map(sentence).collect()
}

/// Returns a row per attention type: agreement of mean and resample ablation with zero ablation, and heads needed under each.
pub(crate) fn rows(found: &Kinds, criterion: Criterion) -> Result<Vec<Row>> {
    let (agreements, judge) = (found.agreements()?, found.zero().judge(criterion));
    let row = |attention: Attention| {
        let with_zero = |name: &str| {
            let is_meant = |one: &&KindAgreement| {
                one.attention == attention && one.kinds[0] == 0 && found.all[one.kinds[1]].name == name
            };
            let one = agreements.iter().find(is_meant);
            one.map_or([None; 3], |one| [one.spearman, one.across_halves, one.ceiling]).map(rho)
        };
        let kinds: Vec<_> = found.all.iter().map(|kind| kind.heads(attention, judge)).collect();
        let [zero, others @ ..] = &kinds[..] else { return None };
        let is_needed = |all: &Vec<HeadAcrossRuns>, head: usize| all[head].agreed() == Some(Verdict::Needed);
        let needed = |by_zero: bool, by_others: bool| {
            let is_so = |&head: &usize| {
                (is_needed(zero, head), others.iter().any(|other| is_needed(other, head)))
                    == (by_zero, by_others)
            };
            Cell::from((0..zero.len()).filter(is_so).count())
        };
        let cells = [attention.name().into(), zero.len().into()].into_iter().chain(with_zero("mean"));
        let counts = [needed(true, true), needed(true, false), needed(false, true)];
        Some(Row::new(found.zero().file.title(), cells.chain(with_zero("resample")).chain(counts)))
    };
    Ok(found.zero().attentions().into_iter().filter_map(row).collect())
}

fn rho(value: Option<f64>) -> Cell {
    value.map(|value| Cell::printed(value, |value| fixed(value, 2))).into()
}

fn agreement(found: &Kinds, agreements: &[KindAgreement], judge: Judge) -> Table {
    let own = found.zero();
    let row = |one: &KindAgreement| {
        let [first, second] = one.kinds.map(|kind| &found.all[kind]);
        let [first_heads, second_heads] = [first, second].map(|kind| kind.heads(one.attention, judge));
        let both = |[first, second]: [Verdict; 2]| {
            let pairs = first_heads.iter().zip(&second_heads);
            let is_so = |(one, other): &(&HeadAcrossRuns, &HeadAcrossRuns)| {
                (one.agreed(), other.agreed()) == (Some(first), Some(second))
            };
            Cell::from(pairs.filter(is_so).count())
        };
        let (needed, dispensable) = (Verdict::Needed, Verdict::Dispensable);
        let cells = vec![
            ("heads", first_heads.len().into()),
            ("rho", rho(one.spearman)),
            ("rho across halves", rho(one.across_halves)),
            ("ceiling across halves", rho(one.ceiling)),
            ("needed under both", both([needed, needed])),
            ("needed, dispensable", both([needed, dispensable])),
            ("dispensable, needed", both([dispensable, needed])),
            ("dispensable under both", both([dispensable, dispensable])),
        ];
        (format!("{}: {}, {}", one.attention.name(), first.name, second.name).into(), cells)
    };
    let title = own.file.titled("Agreement between kinds of ablation on the cost of masking one head");
    let table = Table::new("Kinds of ablation", own.file.label(STEM), title);
    by_name(table, ["Attention: kinds", "Heads"], agreements.iter().map(row))
        .note(KINDS)
        .note(draws(&found.all))
        .note(
            "rho: Spearman's, of the changes, on the same segments; across halves: one kind on a random half of the segments, the other kind \
             on the rest, 50 times, so that they share no noise; ceiling: the maximum rho that the noise of halves allows",
        )
        .note("all remaining heads are undecided under at least one of the two kinds")
        .note(judge.of_verdicts())
}

pub(crate) const KINDS: &str = "the output of a masked head is replaced by zeros, as in the paper (zero), by its mean over other texts (mean), or by its \
     output at the same position of another text (resample)";

pub(super) fn draws(kinds: &[Kind]) -> Option<String> {
    let draws = kinds.iter().map(|kind| kind.draws.len()).max().filter(|&draws| draws > 1)?;
    Some(format!(
        "resample: mean of {draws} draws of other texts; a verdict if all draws agree on it, otherwise undecided"
    ))
}

/// Tabulates the heads that are needed under some kind of ablation, largest loss first; `None` if there are none.
fn heads(found: &Kinds, judge: Judge) -> Option<Table> {
    let own = found.zero();
    let (metric, direction) = (own.metric(), own.metric().direction());
    // each head under all kinds
    let mut rows: Vec<Vec<HeadAcrossRuns>> = Vec::new();
    for attention in own.attentions() {
        let kinds: Vec<_> = found.all.iter().map(|kind| kind.heads(attention, judge)).collect();
        let of_head = |place: usize| kinds.iter().map(|kind| kind[place].clone()).collect();
        rows.extend((0..kinds[0].len()).map(of_head));
    }
    rows.retain(|kinds| kinds.iter().any(|kind| kind.agreed() == Some(Verdict::Needed)));
    let greatest = |kinds: &[HeadAcrossRuns]| {
        kinds.iter().map(|kind| -direction.gain(kind.mean())).fold(f64::NEG_INFINITY, f64::max)
    };
    rows.sort_by(|one, other| greatest(other).total_cmp(&greatest(one)));
    let row = |kinds: &Vec<HeadAcrossRuns>| {
        let cell = |kind: &HeadAcrossRuns| {
            let (change, (low, high)) = (kind.mean(), kind.range());
            let range = format!(" ({} to {})", metric.change(low), metric.change(high));
            let text = metric.change(change) + if low < high { &range } else { "" };
            judged(Cell::number(text, change), kind.agreed())
        };
        Row::new(kinds[0].head.to_string(), kinds.iter().map(cell))
    };
    let what = format!("Heads that are needed under some kind of ablation: change in {}", metric.label());
    let more = rows.len().saturating_sub(MOST);
    let table = Table::new("Heads by kind", own.file.label("heads-by-kind"), own.file.titled(what))
        .columns(["Head", "Change"], found.all.iter().map(|kind| kind.name.to_owned()))
        .rows(rows.iter().take(MOST).map(row))
        .note(SIGNS)
        .note(KINDS)
        .note(draws(&found.all))
        .remark((more > 0).then(|| format!("{} more are needed under some kind", count(more, "head"))))
        .note(judge.of_verdicts());
    (!rows.is_empty()).then_some(table)
}

/// Number of heads named in the figure.
const NAMED: usize = 10;

const INTERVAL: Style = Style::line(INK, 0.6);
const CERTAIN: Mark = Mark::new(Shape::Circle, 1.8, BLUE);
const DRAW: Mark = Mark::new(Shape::Tick, 2.0, GREY);

/// Effect of masking a head under one kind, minus the effect under zero ablation.
struct Difference {
    /// Difference of the score, averaged over draws.
    change: f64,
    /// Difference for each draw.
    draws: Vec<f64>,
    /// Only for a kind with a single draw.
    test: Option<Comparison>,
}

impl Difference {
    /// Returns the differences of all heads under a kind, in row order.
    fn all(found: &Kinds, place: usize, contrasts: &[KindContrast]) -> Vec<Self> {
        let contrast = contrasts.iter().find(|contrast| contrast.kind == place);
        let own = &found.all[place].draws;
        let of_row = |(row, zero): (usize, &AblationRow)| {
            let draws: Vec<f64> =
                own.iter().map(|draw| draw.rows[row].score_delta - zero.score_delta).collect();
            let change = draws.iter().sum::<f64>() / draws.len() as f64;
            Self { change, draws, test: contrast.map(|contrast| contrast.tests[row]) }
        };
        found.zero().rows.iter().enumerate().map(of_row).collect()
    }
}

/// Draws a panel per kind other than zero ablation: one row for each of the heads that differ most, and one row for all others.
fn figure(found: &Kinds, contrasts: &[KindContrast], criterion: Criterion) -> Chart {
    let own = found.zero();
    let (metric, kinds) = (own.metric(), 1..found.all.len());
    let differences: Vec<_> = kinds.map(|place| Difference::all(found, place, contrasts)).collect();
    let size = |row: &usize| differences.iter().map(|all| all[*row].change.abs()).fold(0.0, f64::max);
    let mut order: Vec<usize> = (0..own.rows.len()).collect();
    order.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let (named, others) = order.split_at(NAMED.min(order.len()));
    let mut names: Vec<String> = named.iter().map(|&row| own.rows[row].head_id().in_words()).collect();
    names.extend((!others.is_empty()).then(|| format!("{} others", others.len())));
    let panel = |(place, all): (usize, &Vec<Difference>)| {
        let label = format!("change in {}: {} minus zeros", metric.label(), found.all[place + 1].name);
        Panel::rows(of_differences(label, all, named), names.clone(), rows_of(all, named, others, criterion))
            .in_row(place)
    };
    let panels: Vec<Panel> = differences.iter().enumerate().map(panel).collect();
    let has_draws = found.all.iter().any(|kind| kind.draws.len() > 1);
    let what =
        format!("Change in {} by masking each head: other kinds of ablation minus zeros", metric.label());
    Chart::new("Kinds of ablation", own.file.label(STEM), own.file.titled(what))
        .note(format!(
            "the {} heads for which kinds differ most; {} 0 masking costs more with the other kind than with zeros",
            named.len(),
            metric.worse_side()
        ))
        .note("intervals are for each head separately; the heads are selected by these differences, which makes them look larger")
        .note(KINDS)
        .note(draws(&found.all))
        .entries((!contrasts.is_empty()).then(|| Entry { line: Some(INTERVAL), ..Entry::mark("95% interval", CERTAIN.hollow()) }))
        .entries((!contrasts.is_empty()).then(|| Entry::mark(format!("p < {} after Holm", criterion.alpha), CERTAIN)))
        .entries(has_draws.then(|| Entry::mark("each draw", DRAW)))
        .entries((!others.is_empty()).then(|| Entry::mark("each other head", OTHER)))
        .panels(panels.len(), panels)
}

const OTHER: Mark = Mark::new(Shape::Tick, 3.5, SILVER);

/// Returns the axis for all differences of a kind and the intervals of the named heads.
fn of_differences(label: String, all: &[Difference], named: &[usize]) -> Axis {
    let intervals = named.iter().filter_map(|&row| all[row].test?.interval);
    let ends = intervals.flat_map(|ends| [ends.low, ends.high]);
    let (low, high) = extent(all.iter().flat_map(|one| one.draws.iter().copied()).chain(ends).chain([0.0]));
    Axis::around(label, low, high)
}

fn rows_of(all: &[Difference], named: &[usize], others: &[usize], criterion: Criterion) -> Vec<Layer> {
    let mut layers = vec![Layer::Rule(At::X(0.0), Style::line(GREY, 0.5))];
    for (height, &row) in named.iter().enumerate() {
        let (height, own) = (height as f64 + 0.5, &all[row]);
        if let Some(ends) = own.test.and_then(|test| test.interval) {
            layers.push(Layer::Line(vec![(ends.low, height), (ends.high, height)], INTERVAL));
        }
        if own.draws.len() > 1 {
            layers.push(Layer::Points(own.draws.iter().map(|&draw| (draw, height)).collect(), DRAW));
        }
        let is_certain = own.test.and_then(|test| test.p_adjusted).is_some_and(|p| p < criterion.alpha);
        let mark = if is_certain { CERTAIN } else { CERTAIN.hollow() };
        layers.push(Layer::Points(vec![(own.change, height)], mark));
    }
    let last = named.len() as f64 + 0.5;
    layers.push(Layer::Points(others.iter().map(|&row| (all[row].change, last)).collect(), OTHER));
    layers
}
