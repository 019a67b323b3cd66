//! Draws marks whose shapes differ, for readers who cannot tell the colours apart.
use std::f64::consts::TAU;

use super::canvas::{Canvas, Paint, Spot, units};
use crate::chart::{Mark, Shape, Style};
use crate::palette::WHITE;

const OUTLINE: f64 = 0.6;

/// Draws a mark centred at a place.
pub fn draw_mark(canvas: &mut Canvas, mark: Mark, (x, y): Spot) {
    let Mark { radius, color, .. } = mark;
    let outline = Style::line(color, OUTLINE);
    let area = if mark.is_hollow { (WHITE, 1.0) } else { (color, mark.opacity) };
    let paint = Paint { area: Some(area), outline: Some(outline) };
    let corners = match mark.shape {
        Shape::Circle => return canvas.circle((x, y), radius, paint),
        Shape::Tick | Shape::Cross => {
            let arm = units(radius);
            let lean = if mark.shape == Shape::Tick { vec![0] } else { vec![-arm, arm] };
            return lean.into_iter().for_each(|lean| {
                canvas.line(&[(x - lean, y - arm), (x + lean, y + arm)], outline);
            });
        }
        Shape::Square => polygon((x, y), radius, 4, [1.25; 2], 1),
        Shape::Triangle => polygon((x, y), radius, 3, [1.5; 2], 0),
        Shape::Wedge => polygon((x, y), radius, 3, [1.5; 2], 4),
        Shape::Diamond => polygon((x, y), radius, 4, [1.25; 2], 0),
        Shape::Star => polygon((x, y), radius, 10, [1.7, 0.68], 0),
    };
    canvas.polygon(&corners, paint);
}

/// Returns corners at equal angles, alternating between two `distances` in radii; the first is `turn` eighths of a circle from the top.
fn polygon((x, y): Spot, radius: f64, corners: u32, distances: [f64; 2], turn: u32) -> Vec<Spot> {
    let corner = |(index, distance): (u32, f64)| {
        let angle = TAU * (f64::from(index) / f64::from(corners) + f64::from(turn) / 8.0);
        let distance = radius * distance;
        (x + units(distance * angle.sin()), y - units(distance * angle.cos()))
    };
    (0..corners).zip(distances.into_iter().cycle()).map(corner).collect()
}
