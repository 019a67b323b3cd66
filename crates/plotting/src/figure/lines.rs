//! Curves of a score over the share of masked heads, below their legend.
use plotters::element::{DashedPathElement, PathElement};
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::axes::{Axes, Place, Scale, draw_y_label, stroke};
use super::canvas::{Area, COLUMN_INCHES, Figure, points, to_error};
use super::legend::{Entry, LINE, Legend};
use super::mark::{Mark, Shape};
use super::palette::GREY;
use super::text::{SMALL, TextStyle, fitted, width};
use crate::Error;

/// Margins left and right of the plot and below it, in points.
const LEFT: f64 = 34.0;
const RIGHT: f64 = 9.0;
const BOTTOM: f64 = 29.0;
/// Height of the plot, in points.
const HEIGHT: f64 = 140.0;
/// Room above the plot for the short name of each cut, in points.
const CUT: f64 = 10.0;
/// The y axis spans at least this many points, so that rounding errors do not look like curves.
const FLAT: f64 = 0.5;

/// What a curve looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// Colour of line and marks.
    pub color: RGBColor,
    /// Width of the line, in points; 0 for none.
    pub width: f64,
    /// Whether the line is dashed.
    pub is_dashed: bool,
    /// Shape of its marks and their radius, in points.
    pub mark: Option<(Shape, f64)>,
}

impl Style {
    /// A thin solid line.
    pub const fn line(color: RGBColor) -> Self {
        Self { color, width: 0.7, is_dashed: false, mark: None }
    }

    /// The same dashed.
    pub const fn dashed(self) -> Self {
        Self { is_dashed: true, ..self }
    }

    /// The same with another width, in points.
    pub const fn width(self, width: f64) -> Self {
        Self { width, ..self }
    }

    /// The same with marks of this radius, in points.
    pub const fn marked(self, shape: Shape, radius: f64) -> Self {
        Self { mark: Some((shape, radius)), ..self }
    }

    /// A sample for a legend.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_sample(self, page: &Area<'_>, ends: [(i32, i32); 2], is_hollow: bool) -> Result<(), Error> {
        let [(left, middle), (right, _)] = ends;
        self.draw_line(page, ends.to_vec())?;
        self.draw_mark(page, ((left + right) / 2, middle), is_hollow)
    }

    pub(super) fn draw_line(self, page: &Area<'_>, path: Vec<(i32, i32)>) -> Result<(), Error> {
        if self.width == 0.0 {
            return Ok(());
        }
        let stroke = stroke(self.color, self.width);
        if self.is_dashed {
            let dashes = DashedPathElement::new(path, points(3.0), points(2.0), stroke);
            return page.draw(&dashes).map_err(to_error);
        }
        page.draw(&PathElement::new(path, stroke)).map_err(to_error)
    }

    fn draw_mark(self, page: &Area<'_>, at: (i32, i32), is_hollow: bool) -> Result<(), Error> {
        let Some((shape, radius)) = self.mark else { return Ok(()) };
        let mark = Mark::new(shape, radius, self.color);
        if is_hollow { mark.hollow().draw(page, at) } else { mark.draw(page, at) }
    }
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Value on the x axis.
    pub x: f64,
    /// Value on the y axis.
    pub y: f64,
    /// Whether the mark is hollow.
    pub is_hollow: bool,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// What it looks like.
    pub style: Style,
    /// Its points, from left to right, in pieces; nothing is drawn between two of these.
    pub pieces: Vec<Vec<Point>>,
}

impl Line {
    /// Draws its pieces.
    ///
    /// # Errors
    /// If the backend fails.
    pub(super) fn draw(&self, page: &Area<'_>, axes: &Axes<'_, '_>) -> Result<(), Error> {
        for piece in &self.pieces {
            let places: Vec<_> = piece.iter().map(|point| axes.at(point.x, point.y)).collect();
            self.style.draw_line(page, places.clone())?;
            for (at, point) in places.into_iter().zip(piece) {
                self.style.draw_mark(page, at, point.is_hollow)?;
            }
        }
        Ok(())
    }
}

/// A horizontal line: the score with all heads masked.
#[derive(Debug, Clone, PartialEq)]
pub struct Floor {
    /// Its score.
    pub value: f64,
    /// Its short name at the line.
    pub label: String,
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub color: RGBColor,
}

/// A vertical line: how many heads can go.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Its place.
    pub x: f64,
    /// Its short name above the plot.
    pub label: String,
    /// Its name in the legend.
    pub name: String,
    /// What it looks like.
    pub style: Style,
}

/// Curves with what explains them.
#[derive(Debug, Clone, PartialEq)]
pub struct LinePlot {
    /// Title for screen readers and file managers.
    pub title: String,
    /// Lines of small print above the legend.
    pub head: Vec<String>,
    /// The curves, the most important one first; it is drawn last.
    pub lines: Vec<Line>,
    /// Value of the horizontal line, and its name.
    pub base: (f64, String),
    /// What is left of the score without any head.
    pub floors: Vec<Floor>,
    /// How many heads can go; the first one's name stands highest.
    pub cuts: Vec<Cut>,
    /// What hollow marks mean, and which curve they are on.
    pub hollow: Option<Entry>,
    /// What the axes show.
    pub labels: [String; 2],
}

impl LinePlot {
    /// Draws it at the width of a text column.
    ///
    /// # Errors
    /// If drawing fails.
    pub fn figure(&self) -> Result<Figure, Error> {
        let legend = Legend::new(self.entries(), COLUMN_INCHES * 72.0 - LEFT - RIGHT);
        let head = LINE * self.head.len() as f64;
        let top = head + legend.height() + CUT * self.cuts.len() as f64 + 8.0;
        let place = Place { left: LEFT, right: COLUMN_INCHES * 72.0 - RIGHT, top, bottom: top + HEIGHT };
        let size = (COLUMN_INCHES, ((place.bottom + BOTTOM) / 72.0 * 100.0).round() / 100.0);
        Figure::draw(size, &self.title, |page| {
            draw_head(page, &self.head, (LEFT, place.right))?;
            legend.draw(page, LEFT, head)?;
            self.draw(page, place)
        })
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |style, text: &str| Entry { style, is_hollow: false, text: text.to_owned() };
        let mut entries: Vec<_> = self.lines.iter().map(|line| entry(line.style, &line.name)).collect();
        entries.push(entry(BASE, &self.base.1));
        entries.extend(self.hollow.clone());
        entries.extend(self.floors.iter().map(|floor| entry(floor.style(), &floor.name)));
        entries.extend(self.cuts.iter().map(|cut| entry(cut.style, &cut.name)));
        entries
    }

    fn draw(&self, page: &Area<'_>, place: Place) -> Result<(), Error> {
        let axes = Axes::new(page, place, Scale::around(0.0, 100.0), self.y_scale());
        axes.draw_grid()?;
        for (index, cut) in self.cuts.iter().enumerate().rev() {
            cut.draw(page, &axes, place, CUT * (self.cuts.len() - 1 - index) as f64)?;
        }
        for floor in &self.floors {
            floor.draw(page, &axes, self.y_scale())?;
        }
        BASE.draw_line(page, axes.ends_along(self.base.0).to_vec())?;
        for line in self.lines.iter().rev() {
            line.draw(page, &axes)?;
        }
        axes.draw_x_axis(true)?;
        axes.draw_y_axis()?;
        axes.draw_x_label(&self.labels[0])?;
        draw_y_label(page, &self.labels[1], place.top, place.bottom)
    }

    /// Holds all points, the base and the floors.
    fn y_scale(&self) -> Scale {
        let points = self.lines.iter().flat_map(|line| &line.pieces).flatten().map(|point| point.y);
        let values = points.chain(self.floors.iter().map(|floor| floor.value));
        let (low, high) =
            values.fold((self.base.0, self.base.0), |(low, high), value| (low.min(value), high.max(value)));
        let missing = (FLAT - (high - low)).max(0.0);
        Scale::around(low - missing / 2.0, high + missing / 2.0)
    }
}

/// The line of the intact model.
pub(super) const BASE: Style = Style::line(GREY).dashed();

impl Floor {
    fn style(&self) -> Style {
        Style::line(self.color).width(0.4)
    }

    /// The line with its short name at the left end, on the side where there are no curves.
    fn draw(&self, page: &Area<'_>, axes: &Axes<'_, '_>, y: Scale) -> Result<(), Error> {
        let ends = axes.ends_along(self.value);
        self.style().draw_line(page, ends.to_vec())?;
        let is_high = self.value > (y.low + y.high) / 2.0;
        let below = if is_high { SMALL } else { -2.0 };
        let at = (ends[0].0 + points(4.0), ends[0].1 + points(below));
        TextStyle::new(SMALL, self.color, HPos::Left).write(page, &self.label, at)
    }
}

impl Cut {
    /// The line with its short name `above` the plot, in points.
    fn draw(&self, page: &Area<'_>, axes: &Axes<'_, '_>, place: Place, above: f64) -> Result<(), Error> {
        let [(x, top), bottom] = axes.ends_at(self.x);
        self.style.draw_line(page, vec![(x, top), bottom])?;
        let half = points(width(&self.label, SMALL) / 2.0);
        let x = x.clamp(points(place.left) + half, points(place.right) - half);
        let at = (x, points(place.top - 3.0 - above));
        TextStyle::new(SMALL, self.style.color, HPos::Center).write(page, &self.label, at)
    }
}

/// Lines of small print at the top of the page, from `left` to `right` in points.
pub(super) fn draw_head(page: &Area<'_>, lines: &[String], (left, right): (f64, f64)) -> Result<(), Error> {
    for (index, text) in lines.iter().enumerate() {
        let (text, size) = fitted(text, SMALL, right - left);
        let at = (points(left), points(LINE * (index + 1) as f64));
        TextStyle::new(size, GREY, HPos::Left).write(page, &text, at)?;
    }
    Ok(())
}
