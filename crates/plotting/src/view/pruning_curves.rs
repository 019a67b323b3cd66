//! Figures 3, 4 and 6: the score over the share of masked heads (Michel et al. 2019, Sections 4.2 and 5, Appendix B).
use records::{Order, PruningRow, Scope};

use super::pruning_table::{COMPLEMENT, ORACLE, without_attention};
use super::{Context, worse_than_base};
use crate::Error;
use crate::chart::{At, Axis, COLUMN, Chart, Color, Entry, Layer, Mark, Panel, Shape, Style};
use crate::data::pruning::{Pruning, Series, interval, percent};
use crate::judge::Which;
use crate::origin::{Beside, Model};
use crate::palette::{BLUE, BROWN, GREEN, GREY, INK, ORANGE, PURPLE, SILVER, SKY, VERMILLION, mark};
use crate::scale::extent;
use crate::words::share;

/// The y axis spans at least this many points, so that rounding errors do not look like curves.
const FLAT: f64 = 0.5;

/// Which figure of the paper a subject belongs to, without extension: `figure3` has the translator and BERT on MNLI, for
/// which translators and inference stand, and language models, which the paper does not have; and `figure6` the other
/// classifiers.
///
/// Differs from the paper: Figure 6 also has a translator (IWSLT), which is a `figure3` here.
pub fn stem(pruning: &Pruning) -> &'static str {
    let is_third = matches!(pruning.beside(), Some(Beside::Wmt | Beside::Iwslt | Beside::Mnli));
    if is_third || pruning.model() == Model::Language { "figure3" } else { "figure6" }
}

/// How a curve is drawn.
struct Look {
    name: String,
    line: Style,
    mark: Option<Mark>,
}

/// The curves over all heads of the model with their intervals, single thin lines for random orders, dashed ones for reversed
/// orders; upright rules say how many heads can go by importance.
///
/// Differs from the paper: there the oracle is dashed.
///
/// # Errors
/// If there are no such curves.
pub fn figure3(pruning: &Pruning, context: Context<'_>) -> Result<Chart, Error> {
    let series = pruning.of(Scope::All)?;
    let looks: Vec<_> = series.iter().map(|series| (*series, look(series))).collect();
    let mut layers = cuts(pruning, context);
    layers.extend(pruning.floors.get(&Scope::All).map(|row| floor(row, GREY, "floor")));
    let name = if stem(pruning) == "figure3" { "Figure 3" } else { "Figure 6" };
    let title = format!("{} over the share of masked heads", pruning.metric.label());
    Ok(chart(pruning, context, (name, &title, "heads masked (%)"), &looks, layers))
}

/// One curve for each attention type, by importance, with its interval, complement and floor.
///
/// # Errors
/// If there are no such curves.
pub fn figure4(pruning: &Pruning, context: Context<'_>) -> Result<Chart, Error> {
    let look = |(attention, series)| {
        let mark = mark(attention, 1.6);
        (series, Look { name: attention.to_string(), line: Style::line(mark.color, 1.0), mark: Some(mark) })
    };
    let looks: Vec<_> = pruning.types()?.into_iter().map(look).collect();
    let floors = pruning.floors.iter().filter_map(|(scope, row)| match scope {
        Scope::One(attention) => Some(floor(row, mark(*attention, 1.0).color, "")),
        Scope::All => None,
    });
    let title = format!("{} over the share of masked heads of each attention type", pruning.metric.label());
    let mut chart =
        chart(pruning, context, ("Figure 4", &title, "heads of the type masked (%)"), &looks, floors.collect());
    let floors = pruning.floors.iter().filter(|(scope, _)| **scope != Scope::All);
    let floors: Vec<_> =
        floors.map(|(scope, row)| format!("{scope} {}", pruning.metric.amount(row.score))).collect();
    if !floors.is_empty() {
        chart.notes.push(format!("thin level lines: all heads of the type masked: {}", floors.join(", ")));
    }
    Ok(chart)
}

fn chart(
    pruning: &Pruning,
    context: Context<'_>,
    (name, title, x): (&'static str, &str, &str),
    looks: &[(&Series, Look)],
    mut layers: Vec<Layer>,
) -> Chart {
    let base = Layer::rule(At::Y(pruning.base), Style::dashed(GREY, 0.6), "");
    layers.push(base);
    for (series, look) in looks.iter().rev() {
        layers.extend(bands(series, look.line.color));
    }
    for (series, look) in looks.iter().rev() {
        layers.extend(lines(series, look, context));
    }
    Chart {
        name,
        label: format!("{}-{}", name.to_lowercase().replace(' ', ""), pruning.file.subject),
        title: format!("{title}; {}", pruning.file.title()),
        notes: notes(pruning, context, looks),
        width: COLUMN,
        columns: 1,
        legend: legend(pruning, looks),
        panels: vec![Panel {
            name: String::new(),
            x: Axis::percent(x),
            y: y_axis(pruning, looks),
            height: 150.0,
            share: 1.0,
            layers,
        }],
        color_bar: None,
    }
}

/// Holds all points, the base and the floors.
fn y_axis(pruning: &Pruning, looks: &[(&Series, Look)]) -> Axis {
    let points = looks.iter().flat_map(|(series, _)| &series.runs).flatten().map(|row| row.score);
    let floors = pruning.floors.values().map(|row| row.score);
    let (low, high) = extent(points.chain(floors).chain([pruning.base]));
    let missing = (FLAT - (high - low)).max(0.0) / 2.0;
    Axis::around(pruning.metric.axis_label(), low - missing, high + missing)
}

/// Runs of steps between which none is missing.
fn pieces(series: &Series) -> impl Iterator<Item = &[PruningRow]> {
    series.runs.iter().flat_map(|run| run.chunk_by(|left, right| right.step == left.step + 1))
}

/// The 95 % interval around a curve; random orders have none, since ten would hide each other.
fn bands(series: &Series, color: Color) -> Vec<Layer> {
    if matches!(series.curve.order, Order::Random | Order::Swap) {
        return Vec::new();
    }
    let end = |row: &PruningRow| {
        let ends = if row.masked == 0 { Some((row.score, row.score)) } else { interval(row) };
        ends.map(|(low, high)| (percent(row), low, high))
    };
    let band = |piece: &[PruningRow]| {
        let ends: Vec<_> = piece.iter().filter_map(end).collect();
        (ends.len() > 1).then_some(Layer::Band(ends, color))
    };
    pieces(series).filter_map(band).collect()
}

/// The line of a curve, or of each of its runs, with its marks: hollow where the score is significantly worse than the base.
fn lines(series: &Series, look: &Look, context: Context<'_>) -> Vec<Layer> {
    let is_complement = series.curve.is_complement;
    let style = if is_complement { Style::dashed(look.line.color, 0.7) } else { look.line };
    let point = |row: &PruningRow| (percent(row), row.score);
    let mut layers = Vec::new();
    for piece in pieces(series) {
        if series.curve.order != Order::Swap {
            layers.push(Layer::Line(piece.iter().map(point).collect(), style));
        }
        let Some(mark) = look.mark.filter(|_| !is_complement) else { continue };
        // Swaps are tried at one number of heads: the intact model is not of their making.
        let rows = piece.iter().filter(|row| series.curve.order != Order::Swap || row.masked > 0);
        let (worse, others): (Vec<_>, Vec<_>) = rows.partition(|row| context.criterion.is_loss(*row));
        for (rows, mark) in [(others, mark), (worse, mark.hollow())] {
            if !rows.is_empty() {
                layers.push(Layer::Points(rows.into_iter().map(point).collect(), mark));
            }
        }
    }
    layers
}

/// The score without any head.
fn floor(row: &PruningRow, color: Color, name: &str) -> Layer {
    Layer::rule(At::Y(row.score), Style::line(color, 0.4), name)
}

/// How many heads can go by importance, by both rules.
fn cuts(pruning: &Pruning, context: Context<'_>) -> Vec<Layer> {
    let Some(series) = pruning.find(Scope::All, Order::Importance) else { return Vec::new() };
    let judge = pruning.judge(context.criterion);
    let cut = |which| {
        let removable = series.removable(judge, which)?;
        let share = format!("{} %", share(removable.percent, removable.is_open));
        let (name, style) = match which {
            Which::ShownSafe => (format!("safe {share}"), Style::line(INK, 0.6)),
            Which::NoSignificantLoss => (format!("no sig. loss {share}"), Style::dashed(GREY, 0.6)),
        };
        Some(Layer::rule(At::X(removable.percent), style, name))
    };
    Which::BOTH.into_iter().filter_map(cut).collect()
}

fn look(series: &Series) -> Look {
    let order = series.curve.order;
    let marked = |color, width, mark| (Style::line(color, width), mark);
    let shape = |shape, radius, color| Some(Mark::new(shape, radius, color));
    let (line, mark) = match order {
        Order::Importance => marked(BLUE, 1.1, shape(Shape::Circle, 1.6, BLUE)),
        Order::Oracle => marked(VERMILLION, 1.0, shape(Shape::Square, 1.2, VERMILLION)),
        Order::Random => marked(SILVER, 0.35, None),
        Order::Entropy => marked(ORANGE, 0.7, shape(Shape::Triangle, 1.2, ORANGE)),
        Order::Confidence => marked(GREEN, 0.7, shape(Shape::Wedge, 1.2, GREEN)),
        Order::AttentionGradient => marked(PURPLE, 0.7, shape(Shape::Diamond, 1.2, PURPLE)),
        Order::ImportanceEntropy => marked(SKY, 0.7, shape(Shape::Square, 1.0, SKY)),
        Order::GreedyForward => marked(INK, 0.7, shape(Shape::Cross, 1.3, INK)),
        Order::Swap => marked(BROWN, 0.7, shape(Shape::Diamond, 2.2, BROWN)),
        Order::Floor => marked(GREY, 0.4, None),
    };
    let name = match order {
        Order::Random if series.runs.len() > 1 => format!("random ({})", series.runs.len()),
        Order::AttentionGradient => "attention gradient".to_owned(),
        Order::ImportanceEntropy => "importance + entropy".to_owned(),
        Order::GreedyForward => "greedy search".to_owned(),
        Order::Swap => "swaps".to_owned(),
        order => order.to_string(),
    };
    Look { name, line, mark }
}

/// One entry for each curve; dashes say the rest.
fn legend(pruning: &Pruning, looks: &[(&Series, Look)]) -> Vec<Entry> {
    let entry = |(series, look): &(&Series, Look)| {
        let text = format!("{}{}", look.name, pruning.state(series));
        let is_swap = series.curve.order == Order::Swap;
        let line = (!is_swap).then_some(look.line);
        Entry { line, mark: look.mark, ..Entry::text(text) }
    };
    let has_complement = looks.iter().any(|(series, _)| series.curve.is_complement);
    let complement = Entry::text("complement").line(Style::dashed(INK, 0.7));
    let base = Entry::text(format!("base {}", pruning.metric.amount(pruning.base)));
    let curves = looks.iter().filter(|(series, _)| !series.curve.is_complement).map(entry);
    curves
        .chain(has_complement.then_some(complement))
        .chain([base.line(Style::dashed(GREY, 0.6))])
        .collect()
}

fn notes(pruning: &Pruning, context: Context<'_>, looks: &[(&Series, Look)]) -> Vec<String> {
    let has = |is_meant: &dyn Fn(&Series) -> bool| looks.iter().any(|(series, _)| is_meant(series));
    let mut notes = vec![pruning.base_line()];
    notes.extend(pruning.file.of_orders());
    let sentences = [
        (has(&|series| !bands(series, GREY).is_empty()), "bands: 95 % intervals".to_owned()),
        (has(&|series| series.curve.order == Order::Random), "thin grey lines: single random orders".to_owned()),
        (
            has(&|series| !series.curve.is_complement && series.has_loss(context.criterion)),
            format!("hollow: {}", worse_than_base(&pruning.metric, context.criterion)),
        ),
        (has(&|series| series.curve.is_complement), format!("dashed, complement: {COMPLEMENT}")),
        (has(&|series| series.curve.order == Order::Oracle), format!("oracle: {ORACLE}")),
    ];
    notes.extend(sentences.into_iter().filter(|(is_so, _)| *is_so).map(|(_, text)| text));
    let is_all = looks.iter().any(|(series, _)| series.curve.scope == Scope::All);
    if is_all && pruning.find(Scope::All, Order::Importance).is_some() {
        notes.push("upright lines: how many heads can go by importance, by the two rules".to_owned());
        notes.extend(pruning.judge(context.criterion).rules("steps"));
    }
    if let Some(row) = pruning.floors.get(&Scope::All).filter(|_| is_all) {
        notes.push(format!("floor: all heads masked, {}", pruning.metric.amount(row.score)));
    }
    notes.extend(without_attention(pruning).map(str::to_owned));
    notes.extend(pruning.file.remark());
    notes
}
