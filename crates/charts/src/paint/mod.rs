//! Draws a [`Chart`] as SVG in print size, in units of 1/600 inch; PNG is made from it with the embedded font, so both look alike.
mod axes;
mod backend;
pub mod canvas;
mod layers;
mod layout;
mod marks;

use canvas::{Boxed, Canvas};
use layout::Layout;

use crate::chart::Chart;

/// A drawing with measurements for tests.
pub struct Drawing {
    pub svg: String,
    pub texts: Vec<Boxed>,
    /// Width and height, in points.
    pub size: [f64; 2],
}

/// Draws the chart as SVG.
pub fn svg(chart: &Chart) -> String {
    draw(chart).svg
}

/// Draws the chart as SVG, and returns its texts as well.
pub fn draw(chart: &Chart) -> Drawing {
    let layout = Layout::of(chart);
    let size = [chart.width, (layout.height / 72.0 * 100.0).ceil() / 100.0];
    let mut canvas = Canvas::new(size, &format!("{}. {}", chart.name, chart.title));
    layout.draw(&mut canvas, chart);
    let (svg, texts) = canvas.finish();
    Drawing { svg, texts, size: size.map(|inches| inches * 72.0) }
}
