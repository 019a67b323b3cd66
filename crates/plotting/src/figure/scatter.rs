//! Points of a scatter plot, apart in shape as well as in colour.
use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::{Color, RGBColor, ShapeStyle};

use super::canvas::{Area, points, to_error};
use super::palette::{BLUE, GREEN, VERMILLION};
use crate::Error;
use crate::attention::Attention;

/// Width of outlines, in points.
const OUTLINE: f64 = 0.5;

/// A shape around a point; all shapes of one radius cover about the same area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A disc.
    Circle,
    /// An upright square.
    Square,
    /// A triangle on its base.
    Triangle,
    /// A star with five points.
    Star,
}

/// How a point looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Its shape.
    pub shape: Shape,
    /// Colour of its area.
    pub fill: RGBColor,
    /// Opacity of its area, 0 to 1: what overlaps shows.
    pub opacity: f64,
    /// Colour of its edge.
    pub edge: RGBColor,
}

impl Point {
    /// The points of one attention type.
    pub fn of(attention: Attention) -> Self {
        let (shape, color) = match attention {
            Attention::EncEnc | Attention::SelfAttention => (Shape::Circle, BLUE),
            Attention::EncDec => (Shape::Square, VERMILLION),
            Attention::DecDec => (Shape::Triangle, GREEN),
        };
        Self { shape, fill: color, opacity: 0.45, edge: color }
    }

    /// Draws it around `at`, with a radius in points.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw(self, page: &Area<'_>, at: (i32, i32), radius: f64) -> Result<(), Error> {
        let fill = self.fill.mix(self.opacity).filled();
        let edge = ShapeStyle::from(self.edge).stroke_width(points(OUTLINE).unsigned_abs());
        if self.shape == Shape::Circle {
            let radius = points(radius);
            page.draw(&Circle::new(at, radius, fill)).map_err(to_error)?;
            return page.draw(&Circle::new(at, radius, edge)).map_err(to_error);
        }
        let corners = self.shape.corners(at, radius);
        let outline: Vec<_> = corners.iter().chain(corners.first()).copied().collect();
        page.draw(&Polygon::new(corners, fill)).map_err(to_error)?;
        page.draw(&PathElement::new(outline, edge)).map_err(to_error)
    }
}

impl Shape {
    /// Distances of its corners from the middle, by turns, for a disc of radius 1; the first is at an angle of `turn`
    /// eighths of a circle from the top.
    fn outline(self) -> (usize, [f64; 2], f64) {
        match self {
            Self::Circle => (32, [1.0, 1.0], 0.0),
            Self::Square => (4, [1.25, 1.25], 1.0),
            Self::Triangle => (3, [1.5, 1.5], 0.0),
            Self::Star => (10, [1.7, 0.68], 0.0),
        }
    }

    fn corners(self, (x, y): (i32, i32), radius: f64) -> Vec<(i32, i32)> {
        let (count, distances, turn) = self.outline();
        let corner = |index: usize| {
            let angle = std::f64::consts::TAU * (index as f64 / count as f64 + turn / 8.0);
            let distance = radius * distances[index % 2];
            (x + points(distance * angle.sin()), y - points(distance * angle.cos()))
        };
        (0..count).map(corner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 72 points and 600 units to the inch, a radius of 72 points is 600 units.
    #[test]
    fn corners_lie_around_the_point() {
        let square = Shape::Square.corners((1000, 1000), 72.0);
        let side = (600.0 * 1.25 / 2.0_f64.sqrt()).round() as i32;
        assert_eq!(square[0], (1000 + side, 1000 - side));
        assert_eq!(square[2], (1000 - side, 1000 + side));
        assert_eq!(Shape::Triangle.corners((0, 0), 72.0)[0], (0, -900));
        assert_eq!(Shape::Star.corners((0, 0), 72.0).len(), 10);
    }

    #[test]
    fn types_of_one_model_differ_in_shape_and_colour() {
        let styles = [Attention::EncEnc, Attention::EncDec, Attention::DecDec].map(Point::of);
        for (index, style) in styles.iter().enumerate() {
            for other in &styles[..index] {
                assert!(style.shape != other.shape && style.fill != other.fill);
            }
        }
    }
}
