//! Figure 5: effect of masking heads on the score during training, as a chart and as tables (Michel et al. 2019, Section 6).
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::dynamics::share;
use crate::findings::{Checkpoint, Dynamics, PAPER, Result, experiment};
use charts::chart::{At, Axis, Chart, Entry, Layer, Panel, Shape, Ticks};
use charts::palette::ramp;
use charts::scale::{LogAxis, extent};
use charts::table::{Cell, Row, Table};
use records::DynamicsRow;
use words::{fixed, tenths};

use crate::view::curve::{BASE, Curve, Point};
use crate::view::{BANDS, sheet};

const STEM: &str = "figure5";

pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "training", chapter::TRAINING],
    "Scores over the share of masked heads at checkpoints of the training, in percent of the full model's score",
    Reads::Each(experiment::DYNAMICS),
    |file, _, left_out| {
        let found = Dynamics::read(file)?;
        // a run without a score above 0 so far has only tables
        let chart = left_out.keep(figure5(&found));
        Ok(vec![sheet(&found.file, STEM, chart, [percentages(&found), removable(&found)])])
    },
);

/// Shares of the score in the paper's claim, in percent.
const KEPT: [f64; 2] = [90.0, 85.0];

fn heading(dynamics: &Dynamics) -> &'static str {
    if dynamics.is_by_epoch() { "Epoch" } else { "Updates" }
}

/// Tabulates checkpoints by shares of masked heads.
fn percentages(dynamics: &Dynamics) -> Table {
    let (shares, proportional) = (dynamics.shares(), dynamics.metric.proportional());
    let cell = |checkpoint: &Checkpoint, masked: usize| {
        let Some(row) = checkpoint.step(masked) else { return Cell::default() };
        checkpoint.kept(row.score).map_or(Cell::gap("n/a"), |kept| Cell::printed(kept, |kept| fixed(kept, 1)))
    };
    let row = |checkpoint: &Checkpoint| {
        let label = format!("{} [{}]", dynamics.number(checkpoint), dynamics.full_model_score(checkpoint));
        let label = Cell::number(label, dynamics.number(checkpoint) as f64);
        Row::new(label, shares.iter().map(|&(masked, _)| cell(checkpoint, masked)))
    };
    let bracket = if dynamics.metric.is_nats() { "nats per token" } else { "which is" };
    let title = format!(
        "{proportional} with some percentage of heads masked, in percent of the full model's {proportional} at the same \
         checkpoint, {bracket} in brackets"
    );
    Table::new("Figure 5", dynamics.file.label(STEM), dynamics.file.titled(title))
        .columns([heading(dynamics), "Masked"], shares.iter().map(|&(_, percent)| tenths(percent)))
        .rows(dynamics.checkpoints.iter().map(row))
        .note(dynamics.file.of_orders())
        .note(dynamics.left_out())
}

/// Tabulates the share of heads that can be masked at each checkpoint.
fn removable(dynamics: &Dynamics) -> Table {
    let paper = dynamics.metric.is_bleu().then(|| PAPER.sentence("figure5"));
    let remark = dynamics.file.open_question().or(paper);
    let columns = KEPT.map(|least| format!("{}% kept", tenths(least)));
    let found: Vec<_> =
        dynamics.checkpoints.iter().map(|one| KEPT.map(|least| one.removable(least))).collect();
    let row = |(checkpoint, found): (&Checkpoint, &[Option<(f64, bool)>; 2])| {
        let share = |(percent, is_open)| Cell::number(words::share(percent, is_open), percent);
        let shares = found.map(|found| found.map_or(Cell::gap("?"), share)).into_iter();
        let full_model_score = Cell::number(dynamics.full_model_score(checkpoint), checkpoint.base());
        Row::new(dynamics.number(checkpoint), std::iter::once(full_model_score).chain(shares))
    };
    let title = format!(
        "Largest share of heads, in percent, that can be masked with {}% of the full model's {} kept",
        KEPT.map(tenths).join(" and "),
        dynamics.metric.proportional()
    );
    let has = |is_meant: fn(&Option<(f64, bool)>) -> bool| found.iter().flatten().any(is_meant);
    let unknown = "?: an earlier step is missing, or the score of the full model is 0.0 or below";
    Table::new(
        "Prunable heads during training",
        dynamics.file.label("figure5-kept"),
        dynamics.file.titled(title),
    )
    .columns([heading(dynamics), "Heads"], ["Full model".to_owned()].into_iter().chain(columns))
    .rows(dynamics.checkpoints.iter().zip(&found).map(row))
    .note("share: heads masked at the last step before the first one that keeps less")
    .note(has(Option::is_none).then_some(unknown))
    .note(
        has(|found| found.is_some_and(|found| found.1))
            .then_some("\u{2265}: no step of the curve keeps less"),
    )
    .note(dynamics.left_out())
    .remark(remark)
}

/// Draws a line per share of masked heads over training on the left, and a line over shares for the first two and last two checkpoints on
/// the right, with intervals. Scores are in percent of the full model's at the checkpoint.
fn figure5(dynamics: &Dynamics) -> Result<Chart> {
    let comparable = dynamics.comparable()?;
    let log = LogAxis::of(&comparable.iter().map(|one| dynamics.number(one)).collect::<Vec<_>>());
    let (left, right) = (over_training(dynamics, log), over_shares(dynamics, &comparable));
    let (low, high) = extent(left.iter().chain(&right).flat_map(Curve::heights).chain([100.0]));
    let metric = dynamics.metric.proportional();
    let y = Axis::around(format!("{metric} (% of full model)"), low, high);
    let tick = |one: &&Checkpoint| {
        let number = dynamics.number(one);
        (log.place(number), vec![number.to_string(), format!("[{}]", dynamics.full_model_score(one))])
    };
    let unit = heading(dynamics).to_lowercase();
    let label = format!("{unit}, log scale [full model: {}]", dynamics.metric.label());
    let (low, high) = log.extent();
    let ticks = Ticks::Names(comparable.iter().map(tick).collect());
    let over_log = Axis { ticks, gap: log.gap(), ..Axis::around(label, low, high) };
    let left = Panel::new([over_log, y.clone()], 150.0, layers(&left));
    let right = Panel::new([Axis::percent("heads masked (%)"), y.silent()], 150.0, layers(&right));
    let title = format!(
        "{metric} with heads masked during training, in percent of the full model's {metric} at the same checkpoint"
    );
    let lines = if comparable.len() > 4 {
        "first two and last two checkpoints"
    } else {
        "a line for each checkpoint"
    };
    let panels = vec![
        Panel { share: 0.55, ..left.named("a line for each share of masked heads") },
        Panel { share: 0.45, ..right.named(lines) },
    ];
    Ok(Chart::new("Figure 5", dynamics.file.label("figure5-curves"), dynamics.file.titled(title))
        .note(dynamics.file.of_orders())
        .note(BANDS)
        .note("the axis ends at the lowest curve, not at 0; darker curves are later checkpoints")
        .note(dynamics.left_out())
        .entries([Entry::line("full model", BASE)])
        .panels(2, panels))
}

fn layers(curves: &[Curve]) -> Vec<Layer> {
    let end = |curve: &Curve| Some((curve.pieces.last()?.last()?.y, curve.name.clone(), curve.line?.color));
    let ends = Layer::Ends(curves.iter().filter_map(end).collect());
    let base = Layer::Rule(At::Y(100.0), BASE);
    let bands = curves.iter().flat_map(Curve::bands);
    std::iter::once(base).chain(bands).chain(curves.iter().flat_map(Curve::lines)).chain([ends]).collect()
}

/// Returns the point of a checkpoint's step; `None` if percentages of its score are undefined.
fn point(checkpoint: &Checkpoint, row: &DynamicsRow, x: f64) -> Option<Point> {
    let y = checkpoint.kept(row.score)?;
    let ends = if row.masked == 0 { Some((y, y)) } else { checkpoint.kept_interval(row) };
    Some(Point { x, y, ends, is_worse: false })
}

/// Returns a line per share, darker for more heads masked, broken at checkpoints without the share.
fn over_training(dynamics: &Dynamics, log: LogAxis) -> Vec<Curve> {
    let shares = dynamics.shares();
    let shapes = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Wedge, Shape::Diamond];
    let of_share = |(index, &(masked, percent)): (usize, &(usize, f64))| {
        let at = |one: &Checkpoint| point(one, one.step(masked)?, log.place(dynamics.number(one)));
        let points: Vec<_> = dynamics.checkpoints.iter().map(at).collect();
        let pieces = points.split(Option::is_none).filter(|piece| !piece.is_empty());
        let color = ramp(index as f64 / shares.len().saturating_sub(1).max(1) as f64);
        let look = Curve::look(format!("{}%", tenths(percent)), color, 0.9, Some((shapes[index % 5], 1.2)));
        Curve { pieces: pieces.map(|piece| piece.iter().flatten().copied().collect()).collect(), ..look }
    };
    shares.iter().enumerate().map(of_share).collect()
}

/// Returns a line for each of the first two and last two checkpoints, darker for later ones, broken at missing steps.
fn over_shares(dynamics: &Dynamics, comparable: &[&Checkpoint]) -> Vec<Curve> {
    let is_chosen = |index: usize| index < 2 || index + 2 >= comparable.len();
    let chosen = comparable.iter().enumerate().filter(|(index, _)| is_chosen(*index)).map(|(_, one)| *one);
    let shapes = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Diamond];
    let last = chosen.clone().count().saturating_sub(1).max(1);
    let of_checkpoint = |(place, one): (usize, &Checkpoint)| {
        let pieces = one.steps.chunk_by(|left, right| right.step == left.step + 1);
        let at = |row: &DynamicsRow| point(one, row, share(row));
        let pieces = pieces.map(|piece| piece.iter().filter_map(at).collect()).collect();
        Curve {
            pieces,
            ..Curve::look(
                dynamics.name(one),
                ramp(place as f64 / last as f64),
                0.9,
                Some((shapes[place], 1.4)),
            )
        }
    };
    chosen.enumerate().map(of_checkpoint).collect()
}
