//! Curves as layers: lines in pieces, marks, and bands of intervals.
use crate::findings::Metric;
use charts::chart::{At, Axis, Color, Entry, Layer, Mark, Shape, Style};
use charts::palette::GREY;
use charts::scale::extent;

/// An axis of scores spans at least this many points, or nats, so that noise does not look like a curve.
const FLAT: f64 = 0.5;
const FLAT_NATS: f64 = 0.05;

/// The score of the model that others are compared with; dashes are for complements.
pub const BASE: Style = Style::line(GREY, 0.6);

/// A place on a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// The lower and the upper end of its interval.
    pub ends: Option<(f64, f64)>,
    /// `true` if the score is significantly worse than the base.
    pub is_worse: bool,
}

/// A line in pieces between which something is missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    pub name: String,
    /// Absent where points alone are drawn.
    pub line: Option<Style>,
    /// Absent where the line alone is drawn.
    pub mark: Option<Mark>,
    pub pieces: Vec<Vec<Point>>,
}

impl Curve {
    /// Look of a curve without its points.
    pub fn look(name: impl Into<String>, color: Color, width: f64, mark: Option<(Shape, f64)>) -> Self {
        let mark = mark.map(|(shape, radius)| Mark::new(shape, radius, color));
        Self { name: name.into(), line: Some(Style::line(color, width)), mark, pieces: Vec::new() }
    }

    /// Its line of a legend.
    pub fn entry(&self) -> Entry {
        Entry { line: self.line, mark: self.mark, ..Entry::text(&self.name) }
    }

    /// All points of its pieces.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.pieces.iter().flatten()
    }

    /// The heights that an axis must reach.
    pub fn heights(&self) -> impl Iterator<Item = f64> + '_ {
        self.points().flat_map(|point| {
            let (low, high) = point.ends.unwrap_or((point.y, point.y));
            [point.y, low, high]
        })
    }

    /// The area of the intervals of each piece of the line; for a piece of one point an upright line.
    pub fn bands(&self) -> Vec<Layer> {
        let Some(line) = self.line else { return Vec::new() };
        let ends = |point: &Point| point.ends.map(|(low, high)| (point.x, low, high));
        let bands = self.pieces.iter().map(|piece| piece.iter().filter_map(ends).collect::<Vec<_>>());
        let layer = |band: Vec<_>| match band[..] {
            [(x, low, high)] => Layer::Line(vec![(x, low), (x, high)], Style::line(line.color, 0.5)),
            _ => Layer::Band(band, line.color),
        };
        bands.filter(|band| !band.is_empty()).map(layer).collect()
    }

    /// `true` if a mark is hollow.
    pub fn has_hollow(&self) -> bool {
        self.mark.is_some() && self.points().any(|point| point.is_worse)
    }

    /// The line of each piece, and the marks, hollow where the score is worse.
    pub fn lines(&self) -> Vec<Layer> {
        let place = |point: &Point| (point.x, point.y);
        let line = |line: Style| {
            self.pieces.iter().map(move |piece| Layer::Line(piece.iter().map(place).collect(), line))
        };
        let marks = |mark: Mark| {
            [(false, mark), (true, mark.hollow())].map(|(is_worse, mark)| {
                let meant = self.points().filter(|point| point.is_worse == is_worse);
                Layer::Points(meant.map(place).collect(), mark)
            })
        };
        let is_drawn = |layer: &Layer| !matches!(layer, Layer::Points(places, _) if places.is_empty());
        let lines = self.line.into_iter().flat_map(line);
        lines.chain(self.mark.into_iter().flat_map(marks)).filter(is_drawn).collect()
    }
}

/// The level of the base, and before it the curves, the first one in front of all others.
pub fn over_base(base: f64, curves: &[&Curve]) -> Vec<Layer> {
    let backwards = || curves.iter().rev();
    let bands = backwards().flat_map(|curve| curve.bands());
    let lines = backwards().flat_map(|curve| curve.lines());
    std::iter::once(Layer::Rule(At::Y(base), BASE)).chain(bands).chain(lines).collect()
}

/// The base in a legend.
pub fn base_entry(name: &str, metric: &Metric, base: f64) -> Entry {
    Entry::line(format!("{name} {}", metric.amount(base)), BASE)
}

/// An axis of scores that reaches these heights.
pub fn scores(metric: &Metric, heights: impl Iterator<Item = f64>) -> Axis {
    let least = if metric.is_nats() { FLAT_NATS } else { FLAT };
    Axis::of_at_least(metric.label_in_unit(), extent(heights), least)
}
