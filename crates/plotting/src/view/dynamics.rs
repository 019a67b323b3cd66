//! Figure 5: what masking heads does to the score while a model is trained, in pictures and in numbers (Michel et al. 2019,
//! Section 6).
use super::{Context, open_question};
use crate::Error;
use crate::chart::{At, Axis, Chart, Color, Entry, Layer, Mark, Panel, Shape, Style, TEXT, Ticks};
use crate::data::dynamics::{Checkpoint, Dynamics, percent};
use crate::palette::{BLUE, GREEN, GREY, PURPLE, SKY, ramp};
use crate::paper::{FIGURE_5, Paper};
use crate::scale::{LogAxis, extent};
use crate::table::{Cell, Row, Table};
use crate::words::{share, tenths};

/// Name of its files, without extension.
pub const STEM: &str = "figure5";

/// Shares of the score that the paper's claim is about, in percent.
const KEPT: [f64; 2] = [90.0, 85.0];

/// The scores in percent of the unpruned one; and the shares of heads that can go.
pub fn tables(dynamics: &Dynamics, context: Context<'_>) -> Vec<Table> {
    vec![percentages(dynamics), removable(dynamics, context.paper)]
}

fn heading(dynamics: &Dynamics) -> &'static str {
    if dynamics.is_by_epoch() { "Epoch" } else { "Updates" }
}

/// One row for each checkpoint, one column for each share of masked heads.
fn percentages(dynamics: &Dynamics) -> Table {
    let shares = dynamics.shares();
    let (metric, proportional) = (dynamics.metric.label(), dynamics.metric.proportional());
    let cell = |checkpoint: &Checkpoint, masked: usize| {
        let Some(row) = checkpoint.step(masked) else { return Cell::default() };
        checkpoint.kept(row.score).map_or("n/a".into(), |kept| Cell::number(format!("{kept:.1}"), kept))
    };
    let row = |checkpoint: &Checkpoint| {
        let label = format!("{} [{}]", dynamics.number(checkpoint), dynamics.unpruned(checkpoint));
        Row::new(label, shares.iter().map(|&(masked, _)| cell(checkpoint, masked)))
    };
    let bracket = if proportional == metric { "which stands" } else { "whose nats a token stand" };
    Table {
        name: "Figure 5",
        label: format!("figure5-{}", dynamics.file.subject),
        title: format!(
            "{proportional} with some percent of heads masked, in percent of the unpruned {proportional} of the same \
             checkpoint, {bracket} in brackets; {}",
            dynamics.file.title()
        ),
        row_heading: heading(dynamics),
        column_heading: "Masked",
        columns: shares.iter().map(|&(_, percent)| tenths(percent)).collect(),
        rows: dynamics.checkpoints.iter().map(row).collect(),
        summary: dynamics.file.of_orders().into_iter().chain(dynamics.notes()).collect(),
        remarks: dynamics.file.remark().into_iter().collect(),
        ..Table::default()
    }
}

/// One row for each checkpoint: what can go, beside the paper's unpruned BLEU where epochs can be compared.
fn removable(dynamics: &Dynamics, published: Option<&Paper>) -> Table {
    let metric = &dynamics.metric;
    let paper = published.filter(|_| metric.name() == "bleu" && dynamics.is_by_epoch());
    let remark = open_question(dynamics.file.model()).or_else(|| published.map(paper_remark));
    let mut columns = vec!["unpruned".to_owned()];
    columns.extend(paper.map(|_| "paper".to_owned()));
    columns.extend(KEPT.map(|least| format!("{} % kept", tenths(least))));
    let row = |checkpoint: &Checkpoint| {
        let mut cells = vec![Cell::number(dynamics.unpruned(checkpoint), checkpoint.base())];
        cells.extend(paper.map(|paper| paper_bleu(paper, checkpoint)));
        cells.extend(KEPT.map(|least| match checkpoint.removable(least) {
            Some((percent, is_open)) => Cell::number(share(percent, is_open), percent),
            None => "?".into(),
        }));
        let state = if dynamics.is_finished(checkpoint) { "" } else { ", not finished" };
        Row { label: format!("{}{state}", dynamics.number(checkpoint)), cells }
    };
    Table {
        name: "Heads that can go during training",
        label: format!("figure5-kept-{}", dynamics.file.subject),
        title: format!(
            "Largest share of heads, in percent, that can be masked with {} % of the unpruned {} kept; {}",
            KEPT.map(tenths).join(" and "),
            metric.proportional(),
            dynamics.file.title()
        ),
        row_heading: heading(dynamics),
        column_heading: "Heads",
        columns,
        rows: dynamics.checkpoints.iter().map(row).collect(),
        summary: removable_summary(dynamics),
        remarks: remark.into_iter().chain(dynamics.file.remark()).collect(),
        ..Table::default()
    }
}

fn removable_summary(dynamics: &Dynamics) -> Vec<String> {
    let shares = || dynamics.checkpoints.iter().flat_map(|one| KEPT.map(|least| one.removable(least)));
    let mut summary =
        vec!["the share is that of the last step before the first one that keeps less".to_owned()];
    if shares().any(|found| found.is_none()) {
        summary.push("?: a step on the way is missing, or the unpruned score is 0.0 or below".to_owned());
    }
    if shares().flatten().any(|(_, is_open)| is_open) {
        summary.push("\u{2265}: no step of the curve keeps less".to_owned());
    }
    summary.extend(dynamics.notes());
    summary
}

/// Of the same epoch; empty where the paper has none.
fn paper_bleu(paper: &Paper, checkpoint: &Checkpoint) -> Cell {
    let same = paper.epochs.iter().find(|row| Some(row.epoch) == checkpoint.epoch);
    same.map_or(Cell::default(), |row| Cell::number(format!("{:.1}", row.unpruned_bleu), row.unpruned_bleu))
}

fn paper_remark(paper: &Paper) -> String {
    let epochs = paper.epochs.iter().map(|row| format!("{} [{:.1}]", row.epoch, row.unpruned_bleu));
    format!(
        "paper: Michel et al. (2019), Figure 5, IWSLT: {} % of heads from epoch 10 on, with 85 to 90 % of BLEU kept; epochs \
         and their unpruned BLEU {}",
        tenths(paper.value(FIGURE_5)),
        epochs.collect::<Vec<_>>().join(", ")
    )
}

/// Left one line for each share of masked heads over the training, right one for each of the first two and the last two
/// checkpoints over shares, each with its interval and its name at its end; scores in percent of the checkpoint's own.
///
/// # Errors
/// If no checkpoint has a score above 0.
pub fn figure5(dynamics: &Dynamics) -> Result<Chart, Error> {
    let comparable = dynamics.comparable()?;
    let curves = [over_training(dynamics, &comparable), over_shares(dynamics, &comparable)];
    let axis = y_axis(dynamics, &curves);
    let [left, right] = curves;
    let numbers: Vec<_> = comparable.iter().map(|one| dynamics.number(one)).collect();
    let log = LogAxis::of(&numbers);
    let tick = |one: &&Checkpoint| {
        let number = dynamics.number(one);
        (log.place(number), vec![number.to_string(), format!("[{}]", dynamics.unpruned(one))])
    };
    let (low, high) = log.extent();
    let unit = if dynamics.is_by_epoch() { "epoch" } else { "updates" };
    let label = format!("{unit}, log scale [unpruned {}]", dynamics.metric.label());
    let over_log = Axis {
        ticks: Ticks::Names(comparable.iter().map(tick).collect()),
        gap: log.gap(),
        ..Axis::around(label, low, high)
    };
    let panel = |name: &str, x: Axis, y: Axis, curves: Vec<Curve>, share: f64| Panel {
        name: name.to_owned(),
        x,
        y,
        height: 150.0,
        share,
        layers: layers(curves),
    };
    let metric = dynamics.metric.proportional();
    Ok(Chart {
        name: "Figure 5",
        label: format!("figure5-curves-{}", dynamics.file.subject),
        title: format!(
            "{metric} with heads masked during training, in percent of the unpruned {metric} of the same checkpoint; {}",
            dynamics.file.title()
        ),
        notes: dynamics
            .file
            .of_orders()
            .into_iter()
            .chain(["bands: 95 % intervals of the scores; the unpruned score counts as exact".to_owned()])
            .chain(["the axis ends at the lowest curve, not at 0".to_owned()])
            .chain(dynamics.notes())
            .chain(dynamics.file.remark())
            .collect(),
        width: TEXT,
        columns: 2,
        legend: vec![Entry::text("unpruned").line(Style::dashed(GREY, 0.6))],
        panels: vec![
            panel("heads masked", over_log, axis.clone(), left, 0.55),
            panel("checkpoint", Axis::percent("heads masked (%)"), axis.silent(), right, 0.45),
        ],
        color_bar: None,
    })
}

/// One line with its interval: x, value, and ends.
struct Curve {
    name: String,
    color: Color,
    mark: Mark,
    pieces: Vec<Vec<Point>>,
}

#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
    ends: Option<(f64, f64)>,
}

fn y_axis(dynamics: &Dynamics, curves: &[Vec<Curve>]) -> Axis {
    let points = curves.iter().flatten().flat_map(|curve| &curve.pieces).flatten();
    let (low, high) = extent(points.map(|point| point.y).chain([100.0]));
    Axis::around(format!("{} (% of unpruned)", dynamics.metric.proportional()), low, high)
}

fn layers(curves: Vec<Curve>) -> Vec<Layer> {
    let end = |curve: &Curve| {
        let last = curve.pieces.last()?.last()?;
        Some((last.y, curve.name.clone(), curve.color))
    };
    let ends = curves.iter().filter_map(end).collect();
    let mut layers = vec![Layer::rule(At::Y(100.0), Style::dashed(GREY, 0.6), "")];
    for piece in curves.iter().flat_map(|curve| curve.pieces.iter().map(move |piece| (curve, piece))) {
        let ends = |point: &Point| point.ends.map(|(low, high)| (point.x, low, high));
        let band: Vec<_> = piece.1.iter().filter_map(ends).collect();
        layers.extend((band.len() > 1).then_some(Layer::Band(band, piece.0.color)));
    }
    for curve in &curves {
        for piece in &curve.pieces {
            let places: Vec<_> = piece.iter().map(|point| (point.x, point.y)).collect();
            layers.push(Layer::Line(places.clone(), Style::line(curve.color, 0.9)));
            layers.push(Layer::Points(places, curve.mark));
        }
    }
    layers.push(Layer::Ends(ends));
    layers
}

/// A point of a checkpoint's step; absent where nothing is a percentage of its score.
fn point(checkpoint: &Checkpoint, masked: usize, x: f64) -> Option<Point> {
    let row = checkpoint.step(masked)?;
    let y = checkpoint.kept(row.score)?;
    let ends = if row.masked == 0 { Some((y, y)) } else { checkpoint.kept_interval(row) };
    Some(Point { x, y, ends })
}

/// A line for each share, the darker the more heads are masked; nothing is drawn across a checkpoint that lacks one.
fn over_training(dynamics: &Dynamics, comparable: &[&Checkpoint]) -> Vec<Curve> {
    let numbers: Vec<_> = comparable.iter().map(|one| dynamics.number(one)).collect();
    let log = LogAxis::of(&numbers);
    let shares = dynamics.shares();
    let shapes = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Wedge, Shape::Diamond];
    let curve = |(index, &(masked, percent)): (usize, &(usize, f64))| {
        let at = |one: &Checkpoint| point(one, masked, log.place(dynamics.number(one)));
        let points: Vec<_> = dynamics.checkpoints.iter().map(at).collect();
        let pieces = points.split(Option::is_none).filter(|piece| !piece.is_empty());
        let color = ramp(index as f64 / shares.len().saturating_sub(1).max(1) as f64);
        Curve {
            name: format!("{} %", tenths(percent)),
            color,
            mark: Mark::new(shapes[index % shapes.len()], 1.2, color),
            pieces: pieces.map(|piece| piece.iter().flatten().copied().collect()).collect(),
        }
    };
    shares.iter().enumerate().map(curve).collect()
}

/// A line for each of the first two and the last two checkpoints; nothing is drawn across a missing step.
fn over_shares(dynamics: &Dynamics, comparable: &[&Checkpoint]) -> Vec<Curve> {
    let is_chosen = |index: usize| index < 2 || index + 2 >= comparable.len();
    let chosen = comparable.iter().enumerate().filter(|(index, _)| is_chosen(*index)).map(|(_, one)| *one);
    let looks = [(SKY, Shape::Circle), (GREEN, Shape::Square), (PURPLE, Shape::Triangle), (BLUE, Shape::Diamond)];
    let curve = |(one, (color, shape)): (&Checkpoint, (Color, Shape))| {
        let pieces = one.steps.chunk_by(|left, right| right.step == left.step + 1);
        let at = |row: &records::DynamicsRow| point(one, row.masked, percent(row));
        Curve {
            name: dynamics.name(one),
            color,
            mark: Mark::new(shape, 1.4, color),
            pieces: pieces.map(|piece| piece.iter().filter_map(at).collect()).collect(),
        }
    };
    chosen.zip(looks).map(curve).collect()
}
