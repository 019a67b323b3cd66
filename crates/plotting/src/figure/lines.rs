//! Curves of a score over the share of masked heads, below their legend.
use plotters::element::{DashedPathElement, PathElement, Polygon};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor};

use super::axes::{Axes, Place, Scale, draw_y_label, stroke};
use super::canvas::{Area, COLUMN_INCHES, Figure, points, to_error};
use super::legend::{Entry, LINE, Legend};
use super::mark::{Mark, Shape};
use super::palette::{GREY, INK};
use super::text::{SMALL, TextStyle, fitted, width};
use crate::Error;

/// Margins left and right of the plot and below it, in points.
const LEFT: f64 = 34.0;
const RIGHT: f64 = 9.0;
const BOTTOM: f64 = 29.0;
/// Height of the plot, in points.
const HEIGHT: f64 = 140.0;
/// Room above the plot for the name of the cut, in points.
const CUT: f64 = 12.0;
/// The y axis spans at least this many points, so that rounding errors do not look like curves.
const FLAT: f64 = 0.5;
/// Opacity of a band.
const OPACITY: f64 = 0.3;

/// What a curve looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// Colour of line, marks and band.
    pub color: RGBColor,
    /// Width of the line, in points; 0 for none.
    pub width: f64,
    /// Whether the line is dashed.
    pub is_dashed: bool,
    /// Shape of its marks and their radius, in points.
    pub mark: Option<(Shape, f64)>,
    /// Whether there is a band around it.
    pub has_band: bool,
}

impl Style {
    /// A thin solid line.
    pub const fn line(color: RGBColor) -> Self {
        Self { color, width: 0.7, is_dashed: false, mark: None, has_band: false }
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

    /// The same with a band around it.
    pub const fn banded(self) -> Self {
        Self { has_band: true, ..self }
    }

    /// A sample for a legend.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_sample(self, page: &Area<'_>, ends: [(i32, i32); 2], is_hollow: bool) -> Result<(), Error> {
        let [(left, middle), (right, _)] = ends;
        if self.has_band {
            let half = points(3.0);
            let corners = [
                (left, middle - half),
                (right, middle - half),
                (right, middle + half),
                (left, middle + half),
            ];
            self.draw_band(page, corners.to_vec())?;
        }
        self.draw_line(page, ends.to_vec())?;
        self.draw_mark(page, ((left + right) / 2, middle), is_hollow)
    }

    fn draw_band(self, page: &Area<'_>, corners: Vec<(i32, i32)>) -> Result<(), Error> {
        page.draw(&Polygon::new(corners, self.color.mix(OPACITY).filled())).map_err(to_error)
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
    /// Half the height of the band here.
    pub spread: Option<f64>,
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
    /// Draws its pieces without their bands.
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
    /// Place of the vertical line, its short name at the line and its name in the legend.
    pub cut: Option<(f64, String, String)>,
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
        let top = head + legend.height() + if self.cut.is_some() { CUT } else { 0.0 } + 8.0;
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
        entries.extend(self.cut.iter().map(|(_, _, name)| entry(CUT_LINE, name)));
        entries
    }

    fn draw(&self, page: &Area<'_>, place: Place) -> Result<(), Error> {
        let axes = Axes::new(page, place, Scale::around(0.0, 100.0), self.y_scale());
        axes.draw_grid()?;
        for line in self.lines.iter().rev().filter(|line| line.style.has_band) {
            line.pieces.iter().try_for_each(|piece| draw_band(page, &axes, line.style, piece))?;
        }
        if let Some((x, name, _)) = &self.cut {
            let ends = axes.ends_at(*x);
            CUT_LINE.draw_line(page, ends.to_vec())?;
            let half = points(width(name, SMALL) / 2.0);
            let x = ends[0].0.clamp(points(place.left) + half, points(place.right) - half);
            TextStyle::new(SMALL, INK, HPos::Center).write(page, name, (x, points(place.top - 3.0)))?;
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

    /// Holds all points and bands and the base.
    fn y_scale(&self) -> Scale {
        let values = self.lines.iter().flat_map(|line| &line.pieces).flatten().flat_map(|point| {
            let spread = point.spread.unwrap_or(0.0);
            [point.y - spread, point.y + spread]
        });
        let (low, high) =
            values.fold((self.base.0, self.base.0), |(low, high), value| (low.min(value), high.max(value)));
        let missing = (FLAT - (high - low)).max(0.0);
        Scale::around(low - missing / 2.0, high + missing / 2.0)
    }
}

/// The line of the intact model.
pub(super) const BASE: Style = Style::line(GREY).dashed();
const CUT_LINE: Style = Style::line(INK).width(0.5);

/// Lines of small print at the top of the page, from `left` to `right` in points.
pub(super) fn draw_head(page: &Area<'_>, lines: &[String], (left, right): (f64, f64)) -> Result<(), Error> {
    for (index, text) in lines.iter().enumerate() {
        let (text, size) = fitted(text, SMALL, right - left);
        let at = (points(left), points(LINE * (index + 1) as f64));
        TextStyle::new(size, GREY, HPos::Left).write(page, &text, at)?;
    }
    Ok(())
}

fn draw_band(page: &Area<'_>, axes: &Axes<'_, '_>, style: Style, piece: &[Point]) -> Result<(), Error> {
    let edge = |side: f64| {
        let edge = |point: &Point| axes.at(point.x, point.y + side * point.spread.unwrap_or(0.0));
        piece.iter().map(edge).collect::<Vec<_>>()
    };
    if piece.len() < 2 {
        return Ok(());
    }
    let mut corners = edge(1.0);
    corners.extend(edge(-1.0).into_iter().rev());
    style.draw_band(page, corners)
}
