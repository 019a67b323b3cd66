//! Marks on points, told apart by their shape where colours fail, and lines.
use anyhow::Result;
use std::f64::consts::TAU;

use plotters::element::{Circle, DashedPathElement, PathElement, Polygon};
use plotters::style::Color as _;

use super::{Page, points, rgb, stroke, to_error};
use crate::chart::{Mark, Shape, Style};
use crate::palette::WHITE;

/// Width of outlines, in points.
const OUTLINE: f64 = 0.6;

/// Draws a mark around a place on the page, in units.
pub fn draw_mark(page: &Page<'_>, mark: Mark, at: (i32, i32)) -> Result<()> {
    let radius = mark.radius;
    let corners = match mark.shape {
        Shape::Circle => return draw_circle(page, mark, at),
        Shape::Square => polygon(at, radius, 4, [1.25; 2], 1),
        Shape::Triangle => polygon(at, radius, 3, [1.5; 2], 0),
        Shape::Wedge => polygon(at, radius, 3, [1.5; 2], 4),
        Shape::Diamond => polygon(at, radius, 4, [1.25; 2], 0),
        Shape::Star => polygon(at, radius, 10, [1.7, 0.68], 0),
        Shape::Cross | Shape::Tick => return draw_strokes(page, mark, at),
    };
    let outline: Vec<_> = corners.iter().chain(corners.first()).copied().collect();
    page.draw(&Polygon::new(corners, area(mark).filled())).map_err(to_error)?;
    page.draw(&PathElement::new(outline, stroke(mark.color, OUTLINE))).map_err(to_error)
}

fn area(mark: Mark) -> plotters::style::RGBAColor {
    if mark.is_hollow { rgb(WHITE).mix(1.0) } else { rgb(mark.color).mix(mark.opacity) }
}

fn draw_circle(page: &Page<'_>, mark: Mark, at: (i32, i32)) -> Result<()> {
    let radius = points(mark.radius);
    page.draw(&Circle::new(at, radius, area(mark).filled())).map_err(to_error)?;
    page.draw(&Circle::new(at, radius, stroke(mark.color, OUTLINE))).map_err(to_error)
}

/// Marks without an area.
fn draw_strokes(page: &Page<'_>, mark: Mark, (x, y): (i32, i32)) -> Result<()> {
    let arm = points(mark.radius);
    let across = if mark.shape == Shape::Tick { vec![0] } else { vec![-arm, arm] };
    across.into_iter().try_for_each(|across| {
        let ends = vec![(x - across, y - arm), (x + across, y + arm)];
        page.draw(&PathElement::new(ends, stroke(mark.color, OUTLINE))).map_err(to_error)
    })
}

/// Draws a line through places on the page, in units.
pub fn draw_line(page: &Page<'_>, style: Style, path: Vec<(i32, i32)>) -> Result<()> {
    let stroke = stroke(style.color, style.width);
    let [dash, gap] = style.dash.map(points);
    if dash > 0 {
        let dashes = DashedPathElement::new(path, dash, gap, stroke);
        return page.draw(&dashes).map_err(to_error);
    }
    page.draw(&PathElement::new(path, stroke)).map_err(to_error)
}

/// White stripes across an area on the page, in units, by which black and white shows that a colour is below 0.
pub fn draw_stripes(page: &Page<'_>, [(left, top), (right, bottom)]: [(i32, i32); 2]) -> Result<()> {
    [1, 2].into_iter().try_for_each(|third| {
        let y = top + (bottom - top) * third / 3;
        draw_line(page, Style::line(WHITE, 0.7), vec![(left, y), (right, y)])
    })
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
