//! Figures 3, 4 and 6: the score over the share of masked heads (Michel et al. 2019, Sections 4.2 and 5, Appendix B).
use crate::findings::ablation_kinds::folded;
use crate::findings::pruning::share;
use crate::findings::results::interval;
use crate::findings::{Criterion, LeftOut, Pruning, Replicates, Result, RuleKind, Series, experiment};
use charts::chart::{At, Axis, Chart, Color, Entry, Layer, Panel, Shape, Style};
use charts::palette::{BLUE, BROWN, GREEN, GREY, INK, ORANGE, PURPLE, SILVER, SKY, VERMILLION};
use charts::scale::extent;
use charts::write::Sheet;
use records::{Attention, CurveId, CurveRow, Order, Scope};
use words::count;

use super::shares::{self, COMPLEMENT, optimistic, without_attention};
use crate::artefact::{Artefact, Reads, chapter};
use crate::artefacts::replicates::shares as shares_of_runs;
use crate::view::curve::{Curve, Point, base_entry, over_base, scores};
use crate::view::{BANDS, Request, hollow, mark, sheet};

pub(in crate::artefacts) const FIGURE3: Artefact = Artefact::new(
    ["figure3", "prune", chapter::MANY_HEADS],
    "Score over the share of masked heads, and how many heads can be masked",
    Reads::Each(experiment::PRUNING),
    |file, request, left_out| third(&Pruning::read(file, left_out)?, request, left_out),
)
.also("figure6")
.detail("for classifiers other than MNLI, Figure 6");

pub(in crate::artefacts) const FIGURE4: Artefact = Artefact::new(
    ["figure4", "reproduce-figure4", chapter::MANY_HEADS],
    "Score over the share of masked heads of each attention type",
    Reads::Each(experiment::PRUNING),
    |file, request, left_out| fourth(&Pruning::read(file, left_out)?, request, left_out),
);

/// An axis that begins below this share of its end starts at 0.
const NEAR_ZERO: f64 = 0.2;

const FLOOR: Style = Style::dotted(INK, 0.7);

const THIN: f64 = 0.35;

/// Importance in other runs: a lighter colour, with short dashes that differ from random rankings in greyscale.
const OTHERS: Style = Style { color: SKY, width: 0.7, dash: [1.8, 1.2] };

/// Explains the curve under mean ablation.
const FOLDED: &str = "mean: by importance, with the outputs of masked heads replaced by their means, which can be folded into the bias of the output \
     projection if the model has one";

/// Name of a figure, and its file name.
type FigureName = [&'static str; 2];

const THIRD: FigureName = ["Figure 3", "figure3"];
const FOURTH: FigureName = ["Figure 4", "figure4"];
const SIXTH: FigureName = ["Figure 6", "figure6"];

/// Returns the figure of the paper that a setup belongs to. Figure 3 covers translation and inference, and language models, which the paper
/// lacks; Figure 6 covers the other classifiers.
///
/// Differs from the paper: Figure 6 there also has a translator (IWSLT), which is in Figure 3 here.
fn third_or_sixth(pruning: &Pruning) -> FigureName {
    let is_third = pruning.results.beside().is_some_and(|beside| beside.of_both((), ()).is_some());
    if is_third || pruning.results.file.is_language() { THIRD } else { SIXTH }
}

/// Draws the table of shares and Figure 3 or 6.
pub fn third(pruning: &Pruning, request: &Request<'_>, left_out: &mut LeftOut) -> Result<Vec<Sheet>> {
    let (file, table) = (&pruning.results.file, shares::table(pruning, request.criterion));
    let [_, stem] = third_or_sixth(pruning);
    let others = Replicates::curves(pruning, left_out);
    let others = left_out.keep_if_there(others).unwrap_or_default();
    let folded = folded(pruning, left_out);
    let folded = left_out.keep(folded).flatten();
    let chart = figure3(pruning, &others, folded.as_ref(), request.criterion);
    let chart = request.if_there(chart, left_out)?;
    let chart = chart.map(|chart| sheet(file, stem, chart, []));
    Ok([sheet(file, shares::STEM, None, [table])].into_iter().chain(chart).collect())
}

/// Draws Figure 4, for models with several attention types.
pub fn fourth(pruning: &Pruning, request: &Request<'_>, left_out: &mut LeftOut) -> Result<Vec<Sheet>> {
    let chart = request.if_there(figure4(pruning, request.criterion), left_out)?;
    let [_, stem] = FOURTH;
    Ok(chart.map(|chart| sheet(&pruning.results.file, stem, chart, [])).into_iter().collect())
}

/// Plots the curves over all heads with intervals, thin lines for random rankings, and dashed lines for reversed rankings. Vertical lines
/// mark the share that can be masked by importance.
///
/// Differs from the paper: there the oracle is dashed.
fn figure3(
    pruning: &Pruning,
    others: &[Pruning],
    folded: Option<&Pruning>,
    criterion: Criterion,
) -> Result<Chart> {
    // complements of other rankings are only in the table
    let is_meant = |series: &&Series| !series.curve.complement || series.curve.order == Order::Importance;
    let series = pruning.over(Scope::All)?.into_iter().filter(is_meant);
    let drawn = series.map(|series| (series, curve(series, look(series), criterion)));
    let folded = folded.and_then(|folded| folded.find(Scope::All, Order::Importance));
    let folded = folded.map(|series| {
        (
            series,
            curve(series, Curve::look("mean ablation", BROWN, 1.0, Some((Shape::Wedge, 1.4))), criterion),
        )
    });
    let has_folded = folded.is_some();
    let drawn = drawn.chain(folded).collect();
    let (metric, floor) = (pruning.results.metric(), pruning.floors.get(&Scope::All));
    let rule = floor.map(|row| Layer::Rule(At::Y(row.score), FLOOR));
    let title = format!("{} over the share of masked heads", metric.label());
    let axis = "heads masked (%)";
    let cuts = cuts(pruning, criterion);
    let has_cuts = cuts.iter().any(|layer| matches!(layer, Layer::Rule(..)));
    let by_importance = others.iter().filter_map(|other| other.find(Scope::All, Order::Importance));
    let place = |row: &CurveRow| (share(row), row.score);
    let lines = by_importance.flat_map(|series| &series.runs);
    let lines: Vec<Layer> = lines.map(|run| Layer::Line(run.iter().map(place).collect(), OTHERS)).collect();
    let number = lines.len();
    let layers = cuts.into_iter().chain(rule).chain(lines).collect();
    Ok(chart(pruning, criterion, (third_or_sixth(pruning), &title, axis), drawn, layers)
        .note(
            has_cuts.then_some(
                "vertical lines: share of heads that can be masked by importance, by the two rules",
            ),
        )
        .note(has_cuts.then_some(pruning.results.judge(criterion).rules("steps")))
        .note(has_cuts.then(|| shares::power(pruning)).flatten())
        .entries(
            (number > 0).then(|| Entry::line(format!("{} with other seeds", count(number, "run")), OTHERS)),
        )
        .note((number > 0).then_some("light, short dashes: by importance, in runs with other seeds"))
        .note(shares_of_runs(&Replicates::shares_of([pruning].into_iter().chain(others), criterion)))
        .entries(floor.map(|_| Entry::line("floor", FLOOR)))
        .note(has_folded.then_some(FOLDED))
        .note(floor.map(|row| format!("floor: all heads masked, {}", metric.amount(row.score)))))
}

/// Plots one curve by importance per attention type, with interval, complement and floor, and thin lines for random rankings.
fn figure4(pruning: &Pruning, criterion: Criterion) -> Result<Chart> {
    let metric = pruning.results.metric();
    let drawn = |(attention, series): (Attention, _)| {
        let mark = mark(attention, 1.6);
        let (width, shape) =
            if is_random(series) { (THIN, None) } else { (1.0, Some((mark.shape, mark.radius))) };
        let look = Curve::look(attention.in_words(), mark.color, width, shape);
        (series, curve(series, look, criterion))
    };
    let drawn: Vec<_> = pruning.types()?.into_iter().map(drawn).collect();
    let has_random = drawn.iter().any(|(series, _)| is_random(series));
    let (mut rules, mut floors) = (Vec::new(), Vec::new());
    for (scope, row) in &pruning.floors {
        let Scope::One(attention) = *scope else { continue };
        rules.push(Layer::Rule(At::Y(row.score), Style::dotted(mark(attention, 1.0).color, 0.7)));
        floors.push(format!("{} {}", scope.in_words(), metric.amount(row.score)));
    }
    let title = format!("{} over the share of masked heads of each attention type", metric.label());
    let has_floor = !floors.is_empty();
    let floors =
        has_floor.then(|| format!("dotted, floor: all heads of the type masked: {}", floors.join(", ")));
    let axis = "heads of the type masked (%)";
    Ok(chart(pruning, criterion, (FOURTH, &title, axis), drawn, rules)
        .entries(has_random.then(|| Entry::line("random", Style::line(INK, THIN))))
        .entries(has_floor.then(|| Entry::line("floor", FLOOR)))
        .note(floors))
}

/// Draws these curves in front of other layers.
pub(super) fn chart(
    pruning: &Pruning,
    criterion: Criterion,
    ([name, stem], title, x): (FigureName, &str, &str),
    drawn: Vec<(&Series, Curve)>,
    mut layers: Vec<Layer>,
) -> Chart {
    let (file, metric, base) = (&pruning.results.file, pruning.results.metric(), pruning.results.base());
    let curves: Vec<&Curve> = drawn.iter().map(|(_, curve)| curve).collect();
    layers.extend(over_base(base, &curves));
    let floors = pruning.floors.values().map(|row| row.score);
    let lines = layers.iter().flat_map(|layer| match layer {
        Layer::Line(places, _) => places.iter().map(|place| place.1).collect(),
        _ => Vec::new(),
    });
    let heights = curves.iter().flat_map(|curve| curve.heights()).chain(lines).chain(floors);
    let (low, high) = extent(heights.chain([base]));
    let low = if (0.0..NEAR_ZERO * high).contains(&low) { 0.0 } else { low };
    let axes = [Axis::percent(x), scores(&metric, [low, high].into_iter())];
    let has_order = |order| drawn.iter().any(|(series, _)| series.curve.order == order);
    let has_complement = drawn.iter().any(|(series, _)| series.curve.complement);
    // random rankings of several attention types share one entry, as do complements
    let is_named = |series: &Series| !is_random(series) || series.curve.attention == Scope::All;
    let named = drawn.iter().filter(|(series, _)| !series.curve.complement && is_named(series));
    Chart::new(name, file.label(stem), file.titled(title))
        .note(pruning.results.base_line())
        .note(file.of_orders())
        .note(curves.iter().any(|curve| !curve.bands().is_empty()).then_some(BANDS))
        .note(has_order(Order::Random).then_some("thin lines: random orders, one line each"))
        .note(
            curves
                .iter()
                .any(|curve| curve.has_hollow())
                .then(|| hollow(&metric, "the full model", criterion)),
        )
        .note(has_complement.then_some(format!("dashed, complement of importance: {COMPLEMENT}")))
        .note(optimistic(file, drawn.iter().map(|(series, _)| *series)))
        .note(without_attention(pruning))
        .entries(named.map(|(_, curve)| curve.entry()))
        .entries(complement_entry(has_complement))
        .entries([base_entry("full model", &metric, base)])
        .panels(1, vec![Panel::new(axes, 160.0, layers)])
}

/// Returns each style once; complements share one entry.
pub(super) fn legend(drawn: &[(&Series, Curve)]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (_, curve) in drawn.iter().filter(|(series, _)| !series.curve.complement) {
        if !entries.contains(&curve.entry()) {
            entries.push(curve.entry());
        }
    }
    entries
}

pub(super) fn complement_entry(has_complement: bool) -> Option<Entry> {
    has_complement.then(|| Entry::line("complement", Style::dashed(INK, 0.7)))
}

/// Returns a curve in a given style, with a line per run, broken at missing steps. A complement is dashed and has no marks. Random rankings
/// have no intervals, since ten would hide each other. Swaps at one number of heads are only a mark, not joined to the full model.
pub(super) fn curve(series: &Series, look: Curve, criterion: Criterion) -> Curve {
    let CurveId { order, complement: is_complement, .. } = series.curve;
    let is_swap = order == Order::Swap
        && series.runs.iter().all(|run| run.iter().filter(|row| row.masked > 0).count() == 1);
    let point = |row: &CurveRow| {
        let full_model = (row.masked == 0).then_some((row.score, row.score));
        let ends = interval(row).or(full_model).filter(|_| !is_random(series));
        Point { x: share(row), y: row.score, ends, is_worse: criterion.is_loss(row) }
    };
    let runs = series.runs.iter().flat_map(|run| run.chunk_by(|left, right| right.step == left.step + 1));
    let points = |run: &[CurveRow]| run.iter().filter(|row| !is_swap || row.masked > 0).map(point).collect();
    let dashed = |line: Style| if is_complement { Style::dashed(line.color, 0.7) } else { line };
    let line = look.line.filter(|_| !is_swap).map(dashed);
    Curve { line, mark: look.mark.filter(|_| !is_complement), pieces: runs.map(points).collect(), ..look }
}

/// Returns vertical lines at the share that can be masked by importance, by both rules, with their names.
fn cuts(pruning: &Pruning, criterion: Criterion) -> Vec<Layer> {
    let Some(series) = pruning.find(Scope::All, Order::Importance) else { return Vec::new() };
    let judge = pruning.results.judge(criterion);
    let looks = [("dispensable", Style::line(INK, 0.6)), ("no sig. loss", Style::dashed(INK, 0.6))];
    let (mut layers, mut names) = (Vec::new(), Vec::<(f64, String, _)>::new());
    for (which, (name, style)) in RuleKind::BOTH.into_iter().zip(looks) {
        let Some(removable) = series.removable(judge, which) else { continue };
        let share = shares::share(&removable, "%");
        layers.push(Layer::Rule(At::X(removable.percent), style));
        match names.last_mut() {
            Some((percent, both, _)) if *percent == removable.percent => {
                *both = format!("{} and {name} {share}", looks[0].0);
            }
            _ => names.push((removable.percent, format!("{name} {share}"), style.color)),
        }
    }
    layers.push(Layer::Tops(names));
    layers
}

pub(super) fn is_random(series: &Series) -> bool {
    series.curve.order == Order::Random
}

/// Styles of rankings by a criterion, in the order of the table of criteria, repeated if necessary.
const MEASURES: [(Color, (Shape, f64)); 7] = [
    (PURPLE, (Shape::Diamond, 1.2)),
    (ORANGE, (Shape::Triangle, 1.2)),
    (GREEN, (Shape::Wedge, 1.2)),
    (SKY, (Shape::Square, 1.0)),
    (INK, (Shape::Star, 1.2)),
    (BROWN, (Shape::Circle, 1.2)),
    (GREY, (Shape::Diamond, 1.2)),
];

pub(super) fn look(series: &Series) -> Curve {
    let random = format!("random ({})", series.runs.len());
    let (name, color, width, mark) = match series.curve.order {
        Order::Importance => ("importance", BLUE, 1.1, Some((Shape::Circle, 1.6))),
        Order::Oracle => ("oracle", VERMILLION, 1.0, Some((Shape::Square, 1.2))),
        Order::Random if series.runs.len() > 1 => (&random[..], SILVER, THIN, None),
        Order::Random => ("random", SILVER, THIN, None),
        Order::GreedyForward => ("greedy search", INK, 0.7, Some((Shape::Cross, 1.3))),
        Order::Swap => ("swaps", BROWN, 0.7, Some((Shape::Diamond, 2.2))),
        Order::Floor => ("floor", GREY, 0.4, None),
        other => {
            let place = Order::all().iter().position(|&order| order == other).unwrap_or_default();
            let (color, mark) = MEASURES[(place - 3) % MEASURES.len()]; // importance, oracle and random come first
            let label = if let Order::By(measure) = other { measure.entry().label } else { None };
            (label.unwrap_or(other.name()), color, 0.7, Some(mark))
        }
    };
    Curve::look(name, color, width, mark)
}
