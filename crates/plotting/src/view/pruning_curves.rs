//! Figures 3, 4 and 6: the score over the share of masked heads (Michel et al. 2019, Sections 4.2 and 5, Appendix B).
use anyhow::Result;
use records::{Attention, Order, PruningRow, Scope};

use super::curve::{Curve, Point};
use super::pruning_table::{COMPLEMENT, ORACLE, without_attention};
use super::{BANDS, Context, that_hold};
use crate::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style};
use crate::data::pruning::{CurveId, Pruning, Series, interval, percent};
use crate::judge::Which;
use crate::origin::Beside;
use crate::palette::{BLUE, BROWN, GREEN, GREY, INK, ORANGE, PURPLE, SILVER, SKY, VERMILLION, mark};
use crate::scale::extent;
use crate::words::share;

/// The y axis spans at least this many points, so that rounding errors do not look like curves.
pub(super) const FLAT: f64 = 0.5;

/// An axis that begins below this share of its end begins at 0.
const NEAR_ZERO: f64 = 0.2;

pub(super) const BASE: Style = Style::dashed(GREY, 0.6);
const FLOOR: Style = Style::dotted(INK, 0.7);

/// Which figure of the paper a subject belongs to, without extension: `figure3` has the translator and BERT on MNLI, for
/// which translators and inference stand, and language models, which the paper does not have; and `figure6` the other
/// classifiers.
///
/// Differs from the paper: Figure 6 also has a translator (IWSLT), which is a `figure3` here.
pub fn stem(pruning: &Pruning) -> &'static str {
    let is_third = pruning.beside().is_some_and(|beside| beside.translates() || beside == Beside::MNLI);
    if is_third || pruning.file.is_language() { "figure3" } else { "figure6" }
}

/// The curves over all heads of the model with their intervals, single thin lines for random orders, dashed ones for reversed
/// orders; upright rules say how many heads can go by importance.
///
/// Differs from the paper: there the oracle is dashed.
pub fn figure3(pruning: &Pruning, context: Context<'_>) -> Result<Chart> {
    let drawn = |series| Drawn::new(series, look(series), context);
    // Those of the other orders are rows of the table.
    let is_meant = |series: &&Series| !series.curve.is_complement || series.curve.order == Order::Importance;
    let curves: Vec<_> = pruning.of(Scope::All)?.into_iter().filter(is_meant).map(drawn).collect();
    let floor = pruning.floors.get(&Scope::All);
    let rule = floor.map(|row| Layer::Rule(At::Y(row.score), FLOOR));
    let name = if stem(pruning) == "figure3" { "Figure 3" } else { "Figure 6" };
    let title = format!("{} over the share of masked heads", pruning.metric.label());
    let layers = cuts(pruning, context).into_iter().chain(rule).collect();
    let mut chart = chart(pruning, context, (name, &title, "heads masked (%)"), &curves, layers);
    if pruning.find(Scope::All, Order::Importance).is_some() {
        chart.notes.push("upright lines: how many heads can go by importance, by the two rules".to_owned());
        chart.notes.extend(pruning.judge(context.criterion).rules("steps"));
    }
    if let Some(row) = floor {
        chart.legend.push(Entry::line("floor", FLOOR));
        chart.notes.push(format!("floor: all heads masked, {}", pruning.metric.amount(row.score)));
    }
    Ok(chart)
}

/// One curve for each attention type, by importance, with its interval, complement and floor.
pub fn figure4(pruning: &Pruning, context: Context<'_>) -> Result<Chart> {
    let drawn = |(attention, series): (Attention, _)| {
        let (mark, name) = (mark(attention, 1.6), attention.to_string());
        let look =
            Curve { name, line: Some(Style::line(mark.color, 1.0)), mark: Some(mark), pieces: Vec::new() };
        Drawn::new(series, look, context)
    };
    let curves: Vec<_> = pruning.types()?.into_iter().map(drawn).collect();
    let (mut rules, mut floors) = (Vec::new(), Vec::new());
    for (scope, row) in &pruning.floors {
        let Scope::One(attention) = *scope else { continue };
        rules.push(Layer::Rule(At::Y(row.score), Style::dotted(mark(attention, 1.0).color, 0.7)));
        floors.push(format!("{scope} {}", pruning.metric.amount(row.score)));
    }
    let title = format!("{} over the share of masked heads of each attention type", pruning.metric.label());
    let mut chart =
        chart(pruning, context, ("Figure 4", &title, "heads of the type masked (%)"), &curves, rules);
    let thin = format!("dotted, floor: all heads of the type masked: {}", floors.join(", "));
    chart.notes.extend(that_hold([(!floors.is_empty(), thin)]));
    Ok(chart)
}

fn chart(
    pruning: &Pruning,
    context: Context<'_>,
    (name, title, x): (&'static str, &str, &str),
    curves: &[Drawn<'_>],
    mut layers: Vec<Layer>,
) -> Chart {
    layers.push(Layer::Rule(At::Y(pruning.base), BASE));
    layers.extend(curves.iter().rev().flat_map(|drawn| drawn.curve.bands()));
    layers.extend(curves.iter().rev().flat_map(|drawn| drawn.curve.lines()));
    let floors = pruning.floors.values().map(|row| row.score);
    let heights = curves.iter().flat_map(|drawn| drawn.curve.heights());
    let (low, high) = extent(heights.chain(floors).chain([pruning.base]));
    let y = (if (0.0..NEAR_ZERO * high).contains(&low) { 0.0 } else { low }, high);
    let axes = [Axis::around(x, 0.0, 100.0), Axis::of_at_least(pruning.metric.axis_label(), y, FLAT)];
    Chart {
        name,
        label: format!("{}-{}", name.to_lowercase().replace(' ', ""), pruning.file.subject),
        title: format!("{title}; {}", pruning.file.title()),
        notes: notes(pruning, context, curves),
        legend: legend(pruning, curves),
        panels: vec![Panel::new("", axes, 160.0, layers)],
        ..Chart::default()
    }
}

/// What is measured and how it is drawn.
pub(super) struct Drawn<'a> {
    pub series: &'a Series,
    pub curve: Curve,
}

impl<'a> Drawn<'a> {
    /// A line for each run, broken where a step is missing, that looks as given; of the reverse order it is dashed and has no
    /// marks. Random orders have no intervals, since ten would hide each other. Swaps are tried at one number of heads: the
    /// intact model is not of their making.
    pub fn new(series: &'a Series, look: Curve, context: Context<'_>) -> Self {
        let CurveId { order, is_complement, .. } = series.curve;
        let is_swap = order == Order::Swap;
        let point = |row: &PruningRow| {
            let intact = (row.masked == 0).then_some((row.score, row.score));
            let ends = interval(row).or(intact).filter(|_| order != Order::Random);
            Point { x: percent(row), y: row.score, ends, is_worse: context.criterion.is_loss(row) }
        };
        let runs = series.runs.iter().flat_map(|run| run.chunk_by(|left, right| right.step == left.step + 1));
        let points =
            |run: &[PruningRow]| run.iter().filter(|row| !is_swap || row.masked > 0).map(point).collect();
        let dashed = |line: Style| if is_complement { Style::dashed(line.color, 0.7) } else { line };
        let line = look.line.filter(|_| !is_swap).map(dashed);
        let mark = look.mark.filter(|_| !is_complement);
        Self { series, curve: Curve { line, mark, pieces: runs.map(points).collect(), ..look } }
    }
}

/// How many heads can go by importance, by both rules: upright lines with their names.
fn cuts(pruning: &Pruning, context: Context<'_>) -> Vec<Layer> {
    let Some(series) = pruning.find(Scope::All, Order::Importance) else { return Vec::new() };
    let judge = pruning.judge(context.criterion);
    let [safe, no_loss] = Which::BOTH;
    let (mut layers, mut names) = (Vec::new(), Vec::new());
    for (which, name, style) in
        [(safe, "safe", Style::line(INK, 0.6)), (no_loss, "no sig. loss", Style::dashed(INK, 0.6))]
    {
        let Some(removable) = series.removable(judge, which) else { continue };
        let share = share(removable.percent, removable.is_open);
        layers.push(Layer::Rule(At::X(removable.percent), style));
        names.push((removable.percent, format!("{name} {share} %"), style.color));
    }
    layers.push(Layer::Tops(names));
    layers
}

/// How an order looks, without its steps.
pub(super) fn look(series: &Series) -> Curve {
    let order = series.curve.order;
    let (color, width, mark) = match order {
        Order::Importance => (BLUE, 1.1, Some((Shape::Circle, 1.6))),
        Order::Oracle => (VERMILLION, 1.0, Some((Shape::Square, 1.2))),
        Order::Random => (SILVER, 0.35, None),
        Order::Entropy => (ORANGE, 0.7, Some((Shape::Triangle, 1.2))),
        Order::Confidence => (GREEN, 0.7, Some((Shape::Wedge, 1.2))),
        Order::AttentionGradient => (PURPLE, 0.7, Some((Shape::Diamond, 1.2))),
        Order::ImportanceEntropy => (SKY, 0.7, Some((Shape::Square, 1.0))),
        Order::GreedyForward => (INK, 0.7, Some((Shape::Cross, 1.3))),
        Order::Swap => (BROWN, 0.7, Some((Shape::Diamond, 2.2))),
        Order::Floor => (GREY, 0.4, None),
    };
    let name = match order {
        Order::Random if series.runs.len() > 1 => format!("random ({})", series.runs.len()),
        Order::AttentionGradient => "attention gradient".to_owned(),
        Order::ImportanceEntropy => "importance + entropy".to_owned(),
        Order::GreedyForward => "greedy search".to_owned(),
        Order::Swap => "swaps".to_owned(),
        order => order.to_string(),
    };
    let mark = mark.map(|(shape, radius)| Mark::new(shape, radius, color));
    Curve { name, line: Some(Style::line(color, width)), mark, pieces: Vec::new() }
}

/// One entry for each curve; dashes say the rest.
fn legend(pruning: &Pruning, curves: &[Drawn<'_>]) -> Vec<Entry> {
    let entry = |Drawn { curve, .. }: &Drawn<'_>| Entry {
        line: curve.line,
        mark: curve.mark,
        ..Entry::text(curve.name.clone())
    };
    let (turned, plain): (Vec<_>, Vec<_>) = curves.iter().partition(|drawn| drawn.series.curve.is_complement);
    let complement = turned.first().map(|_| Entry::line("complement", Style::dashed(INK, 0.7)));
    let base = Entry::line(format!("base {}", pruning.metric.amount(pruning.base)), BASE);
    plain.into_iter().map(entry).chain(complement).chain([base]).collect()
}

fn notes(pruning: &Pruning, context: Context<'_>, curves: &[Drawn<'_>]) -> Vec<String> {
    let has = |is_meant: &dyn Fn(&Series) -> bool| curves.iter().any(|drawn| is_meant(drawn.series));
    let (side, criterion) = (pruning.metric.worse_side(), context.criterion.in_words());
    let sentences = [
        (curves.iter().any(|drawn| !drawn.curve.bands().is_empty()), BANDS.to_owned()),
        (
            has(&|series| series.curve.order == Order::Random),
            "thin grey lines: single random orders".to_owned(),
        ),
        (curves.iter().any(|drawn| drawn.curve.has_hollow()), format!("hollow: {side} base, {criterion}")),
        (
            has(&|series| series.curve.is_complement),
            format!("dashed, complement of importance: {COMPLEMENT}"),
        ),
        (has(&|series| series.curve.order == Order::Oracle), format!("oracle: {ORACLE}")),
    ];
    let orders = pruning.file.of_orders().into_iter();
    let blind = without_attention(pruning).map(str::to_owned);
    let base = std::iter::once(pruning.base_line());
    base.chain(orders).chain(that_hold(sentences)).chain(blind).collect()
}
