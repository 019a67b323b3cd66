//! Marks on the points of a curve, told apart by their shape where colours fail.
use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::{Color, RGBColor, WHITE};

use super::axes::stroke;
use super::canvas::{Area, points, to_error};
use crate::Error;

/// Width of the outline of a hollow mark, in points.
const OUTLINE: f64 = 0.7;

/// A shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
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
    /// ×, which cannot be hollow
    Cross,
}

impl Marker {
    /// Draws one with this `radius` (in points) around `at`, filled or hollow.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw(
        self,
        page: &Area<'_>,
        at: (i32, i32),
        radius: f64,
        color: RGBColor,
        is_hollow: bool,
    ) -> Result<(), Error> {
        let unit = |(x, y): (f64, f64)| (at.0 + points(x * radius), at.1 + points(y * radius));
        let line = |ends: &[(f64, f64)]| {
            let path = ends.iter().copied().map(unit).collect::<Vec<_>>();
            page.draw(&PathElement::new(path, stroke(color, OUTLINE))).map_err(to_error)
        };
        let fill = if is_hollow { WHITE } else { color };
        for bar in self.bars() {
            line(bar)?;
        }
        if self == Self::Circle {
            let radius = points(radius);
            page.draw(&Circle::new(at, radius, fill.filled())).map_err(to_error)?;
            page.draw(&Circle::new(at, radius, stroke(color, OUTLINE))).map_err(to_error)?;
        }
        let Some(corners) = self.corners() else { return Ok(()) };
        let polygon: Vec<_> = corners.iter().copied().map(unit).collect();
        page.draw(&Polygon::new(polygon, fill.filled())).map_err(to_error)?;
        let closed: Vec<_> = corners.iter().chain(corners.first()).copied().collect();
        line(&closed)
    }

    /// Ends of bars, likewise; none for shapes with an area.
    fn bars(self) -> &'static [[(f64, f64); 2]] {
        match self {
            Self::Cross => &[[(-0.8, -0.8), (0.8, 0.8)], [(-0.8, 0.8), (0.8, -0.8)]],
            _ => &[],
        }
    }

    /// Corners in units of the radius, y downwards; none for shapes that are no polygon.
    fn corners(self) -> Option<&'static [(f64, f64)]> {
        match self {
            Self::Circle | Self::Cross => None,
            Self::Square => Some(&[(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)]),
            Self::Triangle => Some(&[(0.0, -1.1), (1.0, 0.75), (-1.0, 0.75)]),
            Self::Wedge => Some(&[(0.0, 1.1), (1.0, -0.75), (-1.0, -0.75)]),
            Self::Diamond => Some(&[(0.0, -1.15), (1.15, 0.0), (0.0, 1.15), (-1.15, 0.0)]),
        }
    }
}
