//! Curves as chart layers: lines, marks, and bands of intervals.
use crate::findings::Metric;
use charts::chart::{At, Axis, Color, Entry, Layer, Mark, Shape, Style};
use charts::palette::GREY;
use charts::scale::extent;

/// Minimum span of an axis in points, and in nats, so that noise does not look like a curve.
const FLAT: f64 = 0.5;
const FLAT_NATS: f64 = 0.05;

/// The score that others are compared with; solid, since dashed lines are complements.
pub const BASE: Style = Style::line(GREY, 0.6);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Lower and upper end of the interval.
    pub ends: Option<(f64, f64)>,
    /// `true` if the score is significantly worse than the base score.
    pub is_worse: bool,
}

/// A line, broken into pieces where steps are missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    pub name: String,
    /// `None` draws only marks.
    pub line: Option<Style>,
    /// `None` draws only the line.
    pub mark: Option<Mark>,
    pub pieces: Vec<Vec<Point>>,
}

impl Curve {
    /// Returns a curve without points.
    pub fn look(name: impl Into<String>, color: Color, width: f64, mark: Option<(Shape, f64)>) -> Self {
        let mark = mark.map(|(shape, radius)| Mark::new(shape, radius, color));
        Self { name: name.into(), line: Some(Style::line(color, width)), mark, pieces: Vec::new() }
    }

    /// Returns the entry for the legend.
    pub fn entry(&self) -> Entry {
        Entry { line: self.line, mark: self.mark, ..Entry::text(&self.name) }
    }

    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.pieces.iter().flatten()
    }

    /// Returns all values that an axis must cover.
    pub fn heights(&self) -> impl Iterator<Item = f64> + '_ {
        self.points().flat_map(|point| {
            let (low, high) = point.ends.unwrap_or((point.y, point.y));
            [point.y, low, high]
        })
    }

    /// Returns the band of intervals for each piece of the line; a single point gets a vertical line.
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

    /// `true` if any mark is hollow.
    pub fn has_hollow(&self) -> bool {
        self.mark.is_some() && self.points().any(|point| point.is_worse)
    }

    /// Returns lines and marks, which are hollow for significantly worse scores.
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

/// Draws the base score behind the curves, the first of which is in front.
pub fn over_base(base: f64, curves: &[&Curve]) -> Vec<Layer> {
    let backwards = || curves.iter().rev();
    let bands = backwards().flat_map(|curve| curve.bands());
    let lines = backwards().flat_map(|curve| curve.lines());
    std::iter::once(Layer::Rule(At::Y(base), BASE)).chain(bands).chain(lines).collect()
}

pub fn base_entry(name: &str, metric: &Metric, base: f64) -> Entry {
    Entry::line(format!("{name} {}", metric.amount(base)), BASE)
}

/// Returns an axis of scores that covers these values.
pub fn scores(metric: &Metric, heights: impl Iterator<Item = f64>) -> Axis {
    let least = if metric.is_nats() { FLAT_NATS } else { FLAT };
    Axis::of_at_least(metric.label_in_unit(), extent(heights), least)
}
