//! The forest plot: the difference and its interval for each task and run.
use charts::chart::{At, Axis, Chart, Color, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{BLUE, GREY, INK, SILVER, VERMILLION};

use crate::verdict::{Report, Row, Verdict};

const VERDICTS: [Verdict; 3] = [Verdict::NoWorse, Verdict::Undecided, Verdict::Worse];

pub(super) fn forest(report: &Report) -> Chart {
    let interval = |row: &Row| row.ends(report.runs.len() > 2);
    let ends = |row: &Row| {
        [
            interval(row).map(|ends| ends.0),
            interval(row).map(|ends| ends.1),
            Some(row.difference),
            Some(limit(report, row)),
            Some(0.0),
        ]
    };
    let all: Vec<f64> = report.rows.iter().flat_map(ends).flatten().collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let names = report.rows.iter().map(|row| report.label(row)).collect();
    let mut layers = vec![Layer::Rule(At::X(0.0), Style::line(SILVER, 0.6))];
    for (place, row) in report.rows.iter().enumerate() {
        let (y, color) = (place as f64 + 0.5, color(row.verdict));
        if let Some((low, high)) = interval(row) {
            layers.push(Layer::Line(vec![(low, y), (high, y)], Style::line(color, 1.2)));
        }
        layers.push(Layer::Points(vec![(limit(report, row), y)], Mark::new(Shape::Tick, 3.0, INK)));
        layers.push(Layer::Points(vec![(row.difference, y)], mark(row.verdict, row.task.is_none())));
    }
    let panel = Panel::rows(Axis::around("difference", low, high), names, layers);
    let entries = VERDICTS.map(|verdict| Entry::mark(verdict.name(), mark(verdict, false)));
    let tolerated = Entry::mark("tolerated loss", Mark::new(Shape::Tick, 3.0, INK));
    Chart::new("Figure", "compare", "Differences with 95% intervals")
        .wide()
        .entries(entries)
        .entries([tolerated])
        .panels(1, vec![panel])
}

/// Returns the position of the margin on the axis of differences.
fn limit(report: &Report, row: &Row) -> f64 {
    if report.lower_is_better { row.margin } else { -row.margin }
}

fn color(verdict: Verdict) -> Color {
    match verdict {
        Verdict::NoWorse => BLUE,
        Verdict::Undecided => GREY,
        Verdict::Worse => VERMILLION,
    }
}

/// Returns a mark whose shape also shows the verdict, for greyscale prints; the mean over tasks is larger.
fn mark(verdict: Verdict, is_mean: bool) -> Mark {
    let shape = match verdict {
        Verdict::NoWorse => Shape::Circle,
        Verdict::Undecided => Shape::Diamond,
        Verdict::Worse => Shape::Square,
    };
    Mark::new(shape, if is_mean { 3.5 } else { 2.4 }, color(verdict))
}
