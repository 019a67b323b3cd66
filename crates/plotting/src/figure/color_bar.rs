//! The bar below a matrix that says what its colours mean.
use plotters::element::{PathElement, Rectangle};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::axes::stroke;
use super::canvas::{Area, points, to_error};
use super::diverging::color;
use super::palette::INK;
use super::text::{SMALL, TextStyle};
use crate::Error;

/// Height of the bar, in points.
pub const BAR: f64 = 7.0;
/// Room above the bar, in points.
pub const ABOVE_BAR: f64 = 10.0;
/// Room below it for numbers and label, in points.
pub const BELOW_BAR: f64 = 27.0;
/// Parts of the colour bar, an odd number so that one of them is white.
const PARTS: i32 = 101;

/// A bar of all colours from -1 to 1.
#[derive(Debug, Clone, Copy)]
pub struct ColorBar<'a> {
    /// Its left end, in points.
    pub left: f64,
    /// Its right end, in points.
    pub right: f64,
    /// Its upper edge, in points.
    pub top: f64,
    /// What the colours show.
    pub label: &'a str,
}

impl ColorBar<'_> {
    /// Draws the bar with five numbers and its label.
    ///
    /// - `number`: what is written at a place from -1 to 1
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw(&self, page: &Area<'_>, number: impl Fn(f64) -> String) -> Result<(), Error> {
        let (left, right) = (points(self.left), points(self.right));
        let (top, bottom) = (points(self.top), points(self.top + BAR));
        let edge = |part: i32| left + (right - left) * part / PARTS;
        for part in 0..PARTS {
            let value = f64::from(2 * part + 1 - PARTS) / f64::from(PARTS - 1);
            let area = [(edge(part), top), (edge(part + 1), bottom)];
            page.draw(&Rectangle::new(area, color(value).filled())).map_err(to_error)?;
        }
        page.draw(&Rectangle::new([(left, top), (right, bottom)], stroke(INK, 0.5))).map_err(to_error)?;
        let style = TextStyle::new(SMALL, INK, HPos::Center);
        for quarter in 0..=4 {
            let x = left + (right - left) * quarter / 4;
            let tick = PathElement::new(vec![(x, bottom), (x, bottom + points(2.5))], stroke(INK, 0.6));
            page.draw(&tick).map_err(to_error)?;
            style.write(page, &number(f64::from(quarter - 2) / 2.0), (x, bottom + points(10.5)))?;
        }
        style.write(page, self.label, ((left + right) / 2, bottom + points(21.0)))
    }
}
