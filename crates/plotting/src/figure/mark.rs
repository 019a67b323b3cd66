//! Marks on points, told apart by their shape where colours fail.
use std::f64::consts::TAU;

use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::{Color, RGBColor, WHITE};

use super::axes::stroke;
use super::canvas::{Area, points, to_error};
use super::palette::{BLUE, GREEN, VERMILLION};
use crate::Error;
use crate::attention::Attention;

/// Width of outlines, in points.
const OUTLINE: f64 = 0.6;

/// A shape around a point; all shapes of one radius cover about the same area, but for the cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ▼
    Wedge,
    /// ◆
    Diamond,
    /// ★
    Star,
    /// ×, which has no area to fill
    Cross,
}

/// How a point looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Its shape.
    pub shape: Shape,
    /// Radius of a circle of about the same area, in points.
    pub radius: f64,
    /// Colour of its area.
    pub fill: RGBColor,
    /// Opacity of its area, 0 to 1: what overlaps shows.
    pub opacity: f64,
    /// Colour of its outline.
    pub edge: RGBColor,
}

impl Mark {
    /// A mark of one colour.
    pub const fn new(shape: Shape, radius: f64, color: RGBColor) -> Self {
        Self { shape, radius, fill: color, opacity: 1.0, edge: color }
    }

    /// The mark of one attention type.
    pub const fn of(attention: Attention, radius: f64) -> Self {
        match attention {
            Attention::EncEnc | Attention::SelfAttention => Self::new(Shape::Circle, radius, BLUE),
            Attention::EncDec => Self::new(Shape::Square, radius, VERMILLION),
            Attention::DecDec => Self::new(Shape::Triangle, radius, GREEN),
        }
    }

    /// The same with nothing but its outline.
    pub const fn hollow(self) -> Self {
        Self { fill: WHITE, opacity: 1.0, ..self }
    }

    /// Draws it around `at`.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw(self, page: &Area<'_>, at: (i32, i32)) -> Result<(), Error> {
        let (fill, edge) = (self.fill.mix(self.opacity).filled(), stroke(self.edge, OUTLINE));
        match self.shape {
            Shape::Circle => {
                let radius = points(self.radius);
                page.draw(&Circle::new(at, radius, fill)).map_err(to_error)?;
                page.draw(&Circle::new(at, radius, edge)).map_err(to_error)
            }
            Shape::Cross => {
                let arm = points(0.8 * self.radius);
                for down in [-arm, arm] {
                    let ends = vec![(at.0 - arm, at.1 - down), (at.0 + arm, at.1 + down)];
                    page.draw(&PathElement::new(ends, edge)).map_err(to_error)?;
                }
                Ok(())
            }
            Shape::Square => self.draw_polygon(page, polygon(at, self.radius, 4, [1.25; 2], 1)),
            Shape::Triangle => self.draw_polygon(page, polygon(at, self.radius, 3, [1.5; 2], 0)),
            Shape::Wedge => self.draw_polygon(page, polygon(at, self.radius, 3, [1.5; 2], 4)),
            Shape::Diamond => self.draw_polygon(page, polygon(at, self.radius, 4, [1.25; 2], 0)),
            Shape::Star => self.draw_polygon(page, polygon(at, self.radius, 10, [1.7, 0.68], 0)),
        }
    }

    fn draw_polygon(self, page: &Area<'_>, corners: Vec<(i32, i32)>) -> Result<(), Error> {
        let outline: Vec<_> = corners.iter().chain(corners.first()).copied().collect();
        page.draw(&Polygon::new(corners, self.fill.mix(self.opacity).filled())).map_err(to_error)?;
        page.draw(&PathElement::new(outline, stroke(self.edge, OUTLINE))).map_err(to_error)
    }
}

/// Corners at equal angles, by turns at the two `distances` from the middle in units of the radius; the first is `turn`
/// eighths of a circle from the top.
fn polygon((x, y): (i32, i32), radius: f64, corners: u32, distances: [f64; 2], turn: u32) -> Vec<(i32, i32)> {
    let corner = |(index, distance): (u32, f64)| {
        let angle = TAU * (f64::from(index) / f64::from(corners) + f64::from(turn) / 8.0);
        let distance = radius * distance;
        (x + points(distance * angle.sin()), y - points(distance * angle.cos()))
    };
    (0..corners).zip(distances.into_iter().cycle()).map(corner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 72 points and 600 units to the inch, a radius of 72 points is 600 units.
    #[test]
    fn corners_lie_around_the_point() {
        let square = polygon((1000, 1000), 72.0, 4, [1.25; 2], 1);
        let side = (600.0 * 1.25 / 2.0_f64.sqrt()).round() as i32;
        assert_eq!(square[0], (1000 + side, 1000 - side));
        assert_eq!(square[2], (1000 - side, 1000 + side));
        assert_eq!(polygon((0, 0), 72.0, 3, [1.5; 2], 0)[0], (0, -900));
        assert_eq!(polygon((0, 0), 72.0, 3, [1.5; 2], 4)[0], (0, 900));
        let star = polygon((0, 0), 72.0, 10, [1.7, 0.68], 0);
        assert_eq!((star.len(), star[0], star[5]), (10, (0, -1020), (0, 408)));
    }

    #[test]
    fn types_of_one_model_differ_in_shape_and_colour() {
        let types = [Attention::EncEnc, Attention::EncDec, Attention::DecDec];
        let marks = types.map(|attention| Mark::of(attention, 1.0));
        for (index, mark) in marks.iter().enumerate() {
            for other in &marks[..index] {
                assert!(mark.shape != other.shape && mark.fill != other.fill);
            }
        }
    }
}
