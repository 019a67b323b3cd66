//! Two thin axes with round ticks around a part of the page.
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::DrawingArea;
use plotters::element::{DashedPathElement, PathElement};
use plotters::prelude::{RGBColor, SVGBackend, WHITE};
use plotters::style::ShapeStyle;
use plotters::style::text_anchor::HPos;

use super::canvas::{Area, points, to_error};
use super::palette::{INK, LIGHT};
use super::step::Step;
use super::text::{SIZE, TextStyle, width};
use super::ticks::{NUMBERS, Tick};
use crate::Error;
use crate::number::typeset;

/// A part of a drawing whose coordinates are data.
pub type DataArea<'a> = DrawingArea<SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Length of a tick, in points.
const TICK: f64 = 2.5;

/// Where a plot stands on the page, in points from the upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// Left end of the x axis.
    pub left: f64,
    /// Right end of the x axis.
    pub right: f64,
    /// Upper end of the y axis.
    pub top: f64,
    /// Lower end of the y axis.
    pub bottom: f64,
}

impl Place {
    /// How many ticks the y axis has room for, about 20 points each.
    pub fn most_ticks(self) -> usize {
        ((self.bottom - self.top) / 20.0).max(2.0) as usize
    }
}

/// What an axis covers, and its tick marks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Value at the left or lower end.
    pub low: f64,
    /// Value at the right or upper end, above `low`.
    pub high: f64,
    /// Distance of the ticks.
    pub step: Step,
}

impl Scale {
    /// An axis that holds everything from `low` to `high`, with some air at both ends.
    pub fn around(low: f64, high: f64) -> Self {
        let air = (high - low).max(1e-9) * 0.04;
        let step = Step::covering(high - low, 6);
        Self { low: low - air, high: high + air, step }
    }

    /// An axis for counts from 0 to `highest` with about `parts` ticks; it ends at one.
    pub fn counts(highest: usize, parts: usize) -> Self {
        let highest = highest.max(1) as f64;
        let step = Step::covering_whole(highest, parts);
        let last = step.index_below(highest * 1.02) + 1;
        Self { low: 0.0, high: step.multiple(last), step }
    }

    /// Width of the widest of its numbers, in points.
    pub fn widest_number(self) -> f64 {
        self.ticks().map(|(_, label)| width(&label, SIZE)).fold(0.0, f64::max)
    }

    pub(super) fn ticks(self) -> impl Iterator<Item = (f64, String)> {
        let decimals = self.step.decimals();
        self.step.ticks(self.low, self.high).into_iter().map(move |tick| (tick, typeset(tick, decimals)))
    }
}

/// The axes of one plot.
pub struct Axes<'page, 'svg> {
    page: &'page Area<'svg>,
    place: Place,
    x: Scale,
    y: Scale,
    /// The plot itself, for plotters elements in data coordinates.
    pub data: DataArea<'svg>,
}

impl<'page, 'svg> Axes<'page, 'svg> {
    /// Prepares a plot; nothing is drawn yet.
    pub fn new(page: &'page Area<'svg>, place: Place, x: Scale, y: Scale) -> Self {
        let across = points(place.left)..points(place.right);
        let down = points(place.top)..points(place.bottom);
        let coordinates = Cartesian2d::new(x.low..x.high, y.low..y.high, (across, down.end..down.start));
        Self { page, place, x, y, data: page.apply_coord_spec(coordinates) }
    }

    /// Place of a value pair on the page.
    pub fn at(&self, x: f64, y: f64) -> (i32, i32) {
        self.data.map_coordinate(&(x, y))
    }

    /// Both ends of a vertical line over the whole height, on the page.
    pub fn ends_at(&self, x: f64) -> [(i32, i32); 2] {
        [self.at(x, self.y.high), self.at(x, self.y.low)]
    }

    /// Both ends of a horizontal line over the whole width, on the page.
    pub fn ends_along(&self, y: f64) -> [(i32, i32); 2] {
        [self.at(self.x.low, y), self.at(self.x.high, y)]
    }

    fn line(&self, ends: [(i32, i32); 2], color: RGBColor, width: f64) -> Result<(), Error> {
        let path = PathElement::new(ends.to_vec(), stroke(color, width));
        self.page.draw(&path).map_err(to_error)
    }

    /// Light horizontal lines at the ticks of the y axis; to be drawn before the data.
    ///
    /// # Errors
    /// If the backend fails, as for all that follows.
    pub fn draw_grid(&self) -> Result<(), Error> {
        for (tick, _) in self.y.ticks() {
            self.line([self.at(self.x.low, tick), self.at(self.x.high, tick)], LIGHT, 0.4)?;
        }
        Ok(())
    }

    /// The lower axis with its ticks, and their numbers if `numbered`.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_x_axis(&self, numbered: bool) -> Result<(), Error> {
        let lines = |label| if numbered { vec![label] } else { Vec::new() };
        let ticks = self.x.ticks().map(|(at, label)| Tick { at, lines: lines(label), level: 0 });
        self.draw_x_ticks(&ticks.collect::<Vec<_>>())
    }

    /// The lower axis with these ticks.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_x_ticks(&self, ticks: &[Tick]) -> Result<(), Error> {
        self.line([self.at(self.x.low, self.y.low), self.at(self.x.high, self.y.low)], INK, 0.6)?;
        let style = TextStyle::new(SIZE, INK, HPos::Center);
        for tick in ticks {
            let (x, y) = self.at(tick.at, self.y.low);
            self.line([(x, y), (x, y + points(TICK))], INK, 0.6)?;
            for (index, line) in tick.lines.iter().enumerate() {
                style.write(self.page, line, (x, y + points(tick.baseline(index))))?;
            }
        }
        Ok(())
    }

    /// Two strokes across the lower axis at `x`, where it leaves something out.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_x_break(&self, x: f64) -> Result<(), Error> {
        let ((x, y), half) = (self.at(x, self.y.low), points(1.2));
        self.line([(x - half, y), (x + half, y)], WHITE, 2.0)?;
        let stroke = |x: i32| self.line([(x - half, y + 2 * half), (x + half, y - 2 * half)], INK, 0.6);
        stroke(x - half)?;
        stroke(x + half)
    }

    /// The left axis with its ticks and numbers.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_y_axis(&self) -> Result<(), Error> {
        self.draw_y_axis_with(true)
    }

    /// The left axis with its ticks, and their numbers if `numbered`.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_y_axis_with(&self, numbered: bool) -> Result<(), Error> {
        self.line([self.at(self.x.low, self.y.low), self.at(self.x.low, self.y.high)], INK, 0.6)?;
        let style = TextStyle::new(SIZE, INK, HPos::Right);
        for (tick, label) in self.y.ticks() {
            let (x, y) = self.at(self.x.low, tick);
            self.line([(x - points(TICK), y), (x, y)], INK, 0.6)?;
            if numbered {
                style.write_centered(self.page, &label, (x - points(TICK + 2.0), y))?;
            }
        }
        Ok(())
    }

    /// A dashed vertical line over the whole height.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_reference(&self, x: f64, color: RGBColor) -> Result<(), Error> {
        draw_dashes(self.page, [self.at(x, self.y.high), self.at(x, self.y.low)], color)
    }

    /// What the x axis shows, below its numbers.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_x_label(&self, text: &str) -> Result<(), Error> {
        self.draw_x_label_below(text, NUMBERS)
    }

    /// The same below labels that reach `depth` points down from the axis.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw_x_label_below(&self, text: &str, depth: f64) -> Result<(), Error> {
        let middle = points((self.place.left + self.place.right) / 2.0);
        let baseline = points(self.place.bottom + depth + 11.5);
        TextStyle::new(SIZE, INK, HPos::Center).write(self.page, text, (middle, baseline))
    }
}

/// What the y axes of all plots between `top` and `bottom` (in points) show, along the left edge.
///
/// # Errors
/// If the backend fails.
pub fn draw_y_label(page: &Area<'_>, text: &str, top: f64, bottom: f64) -> Result<(), Error> {
    let middle = points((top + bottom) / 2.0);
    TextStyle::new(SIZE, INK, HPos::Center).write_upwards(page, text, (points(9.5), middle))
}

/// A dashed line on the page.
///
/// # Errors
/// If the backend fails.
pub fn draw_dashes(page: &Area<'_>, ends: [(i32, i32); 2], color: RGBColor) -> Result<(), Error> {
    let dashes = DashedPathElement::new(ends, points(3.0), points(2.0), stroke(color, 1.0));
    page.draw(&dashes).map_err(to_error)
}

/// A line of this `width` in points.
pub fn stroke(color: RGBColor, width: f64) -> ShapeStyle {
    ShapeStyle::from(color).stroke_width(points(width).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_and_the_highest_bar_ends_below_the_axis() {
        for highest in [0, 1, 2, 3, 7, 10, 21, 96, 1000] {
            let scale = Scale::counts(highest, 5);
            assert!(scale.high > highest as f64, "{highest}: {scale:?}");
            assert!(scale.ticks().all(|(tick, _)| tick.fract() == 0.0), "{scale:?}");
            assert!((2..=8).contains(&scale.ticks().count()), "{highest}: {scale:?}");
        }
    }

    #[test]
    fn an_axis_around_one_value_is_not_empty() {
        let scale = Scale::around(3.0, 3.0);
        assert!(scale.low < 3.0 && scale.high > 3.0);
    }
}
