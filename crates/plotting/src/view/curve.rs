//! Curves as layers: lines in pieces, marks, and bands of intervals.
use crate::chart::{Layer, Mark, Style};

/// A place on a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// The lower and the upper end of its interval.
    pub ends: Option<(f64, f64)>,
    /// Whether the score is significantly worse than the base.
    pub is_worse: bool,
}

/// A line in pieces between which something is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    pub name: String,
    /// Absent where points alone are drawn.
    pub line: Option<Style>,
    /// Absent where the line alone is drawn.
    pub mark: Option<Mark>,
    pub pieces: Vec<Vec<Point>>,
}

impl Curve {
    /// The heights that an axis must reach.
    pub fn heights(&self) -> impl Iterator<Item = f64> + '_ {
        let ends = |point: &Point| point.ends.map_or([point.y; 2], |(low, high)| [low, high]);
        self.pieces.iter().flatten().flat_map(move |point| [point.y].into_iter().chain(ends(point)))
    }

    /// The area of the intervals of each piece of the line.
    pub fn bands(&self) -> Vec<Layer> {
        let Some(line) = self.line else { return Vec::new() };
        let ends = |point: &Point| point.ends.map(|(low, high)| (point.x, low, high));
        let bands = self.pieces.iter().map(|piece| piece.iter().filter_map(ends).collect::<Vec<_>>());
        bands.filter(|band| band.len() > 1).map(|band| Layer::Band(band, line.color)).collect()
    }

    /// Whether a mark is hollow.
    pub fn has_hollow(&self) -> bool {
        self.mark.is_some() && self.pieces.iter().flatten().any(|point| point.is_worse)
    }

    /// The line of each piece, and the marks, hollow where the score is worse.
    pub fn lines(&self) -> Vec<Layer> {
        let place = |point: &Point| (point.x, point.y);
        let line = |line: Style| {
            self.pieces.iter().map(move |piece| Layer::Line(piece.iter().map(place).collect(), line))
        };
        let marks = |mark: Mark| {
            [(false, mark), (true, mark.hollow())].map(|(is_worse, mark)| {
                let meant = self.pieces.iter().flatten().filter(|point| point.is_worse == is_worse);
                Layer::Points(meant.map(place).collect(), mark)
            })
        };
        let is_drawn = |layer: &Layer| !matches!(layer, Layer::Points(places, _) if places.is_empty());
        let lines = self.line.into_iter().flat_map(line);
        lines.chain(self.mark.into_iter().flat_map(marks)).filter(is_drawn).collect()
    }
}
