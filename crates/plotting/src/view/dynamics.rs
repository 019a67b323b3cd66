//! Figure 5: what masking heads does to the score while a model is trained, in pictures and in numbers (Michel et al. 2019,
//! Section 6).
use anyhow::Result;
use records::DynamicsRow;

use super::curve::{Curve, Point};
use super::{BANDS, Context, that_hold};
use crate::chart::{At, Axis, Chart, Color, Entry, Layer, Mark, Panel, Shape, Style, TEXT, Ticks};
use crate::data::dynamics::{Checkpoint, Dynamics, percent};
use crate::palette::{BLUE, GREEN, GREY, PURPLE, SKY, ramp};
use crate::paper::{FIGURE_5, Paper, Published};
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
        headings: [heading(dynamics), "Masked"],
        columns: shares.iter().map(|&(_, percent)| tenths(percent)).collect(),
        rows: dynamics.checkpoints.iter().map(row).collect(),
        summary: dynamics.file.of_orders().into_iter().chain(dynamics.left_out()).collect(),
        ..Table::default()
    }
}

/// One row for each checkpoint: what can go.
fn removable(dynamics: &Dynamics, published: Option<&Paper>) -> Table {
    let metric = &dynamics.metric;
    let remark = dynamics.file.open_question().or_else(|| published.map(paper_remark));
    let mut columns = vec!["unpruned".to_owned()];
    columns.extend(KEPT.map(|least| format!("{} % kept", tenths(least))));
    let row = |checkpoint: &Checkpoint| {
        let mut cells = vec![Cell::number(dynamics.unpruned(checkpoint), checkpoint.base())];
        cells.extend(KEPT.map(|least| match checkpoint.removable(least) {
            Some((percent, is_open)) => Cell::number(share(percent, is_open), percent),
            None => "?".into(),
        }));
        Row { label: dynamics.number(checkpoint).to_string(), cells }
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
        headings: [heading(dynamics), "Heads"],
        columns,
        rows: dynamics.checkpoints.iter().map(row).collect(),
        summary: removable_summary(dynamics),
        remarks: remark.into_iter().collect(),
        ..Table::default()
    }
}

fn removable_summary(dynamics: &Dynamics) -> Vec<String> {
    let shares = || dynamics.checkpoints.iter().flat_map(|one| KEPT.map(|least| one.removable(least)));
    let sentences = [
        (true, "the share is that of the last step before the first one that keeps less"),
        (
            shares().any(|found| found.is_none()),
            "?: a step on the way is missing, or the unpruned score is 0.0 or below",
        ),
        (shares().flatten().any(|(_, is_open)| is_open), "\u{2265}: no step of the curve keeps less"),
    ];
    that_hold(sentences.map(|(holds, text)| (holds, text.to_owned()))).chain(dynamics.left_out()).collect()
}

fn paper_remark(paper: &Paper) -> String {
    let epoch = |row: &Published| Some(format!("{} [{:.1}]", row.epoch?, row.unpruned_bleu?));
    let epochs = paper.rows("figure5").iter().filter_map(epoch);
    format!(
        "paper: Michel et al. (2019), Figure 5, IWSLT: {} % of heads from epoch 10 on, with 85 to 90 % of BLEU kept; epochs \
         and their unpruned BLEU {}",
        tenths(paper.value(FIGURE_5)),
        epochs.collect::<Vec<_>>().join(", ")
    )
}

/// Left one line for each share of masked heads over the training, right one for each of the first two and the last two
/// checkpoints over shares, each with its interval and its name at its end; scores in percent of the checkpoint's own.
pub fn figure5(dynamics: &Dynamics) -> Result<Chart> {
    let comparable = dynamics.comparable()?;
    let log = LogAxis::of(&comparable.iter().map(|one| dynamics.number(one)).collect::<Vec<_>>());
    let (left, right) = (over_training(dynamics, log), over_shares(dynamics, &comparable));
    let (low, high) = extent(left.iter().chain(&right).flat_map(Curve::heights).chain([100.0]));
    let metric = dynamics.metric.proportional();
    let y = Axis::around(format!("{metric} (% of unpruned)"), low, high);
    let tick = |one: &&Checkpoint| {
        let number = dynamics.number(one);
        (log.place(number), vec![number.to_string(), format!("[{}]", dynamics.unpruned(one))])
    };
    let unit = heading(dynamics).to_lowercase();
    let label = format!("{unit}, log scale [unpruned {}]", dynamics.metric.label());
    let (low, high) = log.extent();
    let ticks = Ticks::Names(comparable.iter().map(tick).collect());
    let over_log = Axis { ticks, gap: log.gap(), ..Axis::around(label, low, high) };
    let over_percent = Axis::around("heads masked (%)", 0.0, 100.0);
    let panels = [
        Panel {
            share: 0.55,
            ..Panel::new("a line for each share of masked heads", [over_log, y.clone()], 150.0, layers(&left))
        },
        Panel {
            share: 0.45,
            ..Panel::new("a line for each checkpoint", [over_percent, y.silent()], 150.0, layers(&right))
        },
    ];
    let ends = [BANDS, "the axis ends at the lowest curve, not at 0"].map(str::to_owned);
    let notes = dynamics.file.of_orders().into_iter().chain(ends).chain(dynamics.left_out());
    Ok(Chart {
        name: "Figure 5",
        label: format!("figure5-curves-{}", dynamics.file.subject),
        title: format!(
            "{metric} with heads masked during training, in percent of the unpruned {metric} of the same checkpoint; {}",
            dynamics.file.title()
        ),
        notes: notes.collect(),
        width: TEXT,
        columns: 2,
        legend: vec![Entry::line("unpruned", Style::dashed(GREY, 0.6))],
        panels: panels.into(),
        ..Chart::default()
    })
}

fn layers(curves: &[Curve]) -> Vec<Layer> {
    let end = |curve: &Curve| Some((curve.pieces.last()?.last()?.y, curve.name.clone(), curve.line?.color));
    let ends = Layer::Ends(curves.iter().filter_map(end).collect());
    let base = Layer::Rule(At::Y(100.0), Style::dashed(GREY, 0.6));
    let bands = curves.iter().flat_map(Curve::bands);
    std::iter::once(base).chain(bands).chain(curves.iter().flat_map(Curve::lines)).chain([ends]).collect()
}

fn curve(name: String, mark: Mark, pieces: Vec<Vec<Point>>) -> Curve {
    Curve { name, line: Some(Style::line(mark.color, 0.9)), mark: Some(mark), pieces }
}

/// A point of a checkpoint's step; absent where nothing is a percentage of its score.
fn point(checkpoint: &Checkpoint, row: &DynamicsRow, x: f64) -> Option<Point> {
    let y = checkpoint.kept(row.score)?;
    let ends = if row.masked == 0 { Some((y, y)) } else { checkpoint.kept_interval(row) };
    Some(Point { x, y, ends, is_worse: false })
}

/// A line for each share, the darker the more heads are masked; nothing is drawn across a checkpoint that lacks one.
fn over_training(dynamics: &Dynamics, log: LogAxis) -> Vec<Curve> {
    let shares = dynamics.shares();
    let shapes = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Wedge, Shape::Diamond];
    let of_share = |(index, &(masked, percent)): (usize, &(usize, f64))| {
        let at = |one: &Checkpoint| point(one, one.step(masked)?, log.place(dynamics.number(one)));
        let points: Vec<_> = dynamics.checkpoints.iter().map(at).collect();
        let pieces = points.split(Option::is_none).filter(|piece| !piece.is_empty());
        let color = ramp(index as f64 / shares.len().saturating_sub(1).max(1) as f64);
        let mark = Mark::new(shapes[index % shapes.len()], 1.2, color);
        let pieces = pieces.map(|piece| piece.iter().flatten().copied().collect()).collect();
        curve(format!("{} %", tenths(percent)), mark, pieces)
    };
    shares.iter().enumerate().map(of_share).collect()
}

/// A line for each of the first two and the last two checkpoints; nothing is drawn across a missing step.
fn over_shares(dynamics: &Dynamics, comparable: &[&Checkpoint]) -> Vec<Curve> {
    let is_chosen = |index: usize| index < 2 || index + 2 >= comparable.len();
    let chosen = comparable.iter().enumerate().filter(|(index, _)| is_chosen(*index)).map(|(_, one)| *one);
    let looks =
        [(SKY, Shape::Circle), (GREEN, Shape::Square), (PURPLE, Shape::Triangle), (BLUE, Shape::Diamond)];
    let of_checkpoint = |(one, (color, shape)): (&Checkpoint, (Color, Shape))| {
        let pieces = one.steps.chunk_by(|left, right| right.step == left.step + 1);
        let at = |row: &DynamicsRow| point(one, row, percent(row));
        let pieces = pieces.map(|piece| piece.iter().filter_map(at).collect()).collect();
        curve(dynamics.name(one), Mark::new(shape, 1.4, color), pieces)
    };
    chosen.zip(looks).map(of_checkpoint).collect()
}
