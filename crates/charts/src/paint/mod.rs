//! The one painter: plotters draws a [`Chart`] as SVG of its size in print, in units of 1/600 inch; resvg renders that to PNG with
//! the embedded font, so both files show the same and neither needs a font on the machine.
mod axes;
mod backend;
pub mod canvas;
mod layers;
mod layout;
mod marks;

use canvas::{Boxed, Canvas};
use layout::Layout;

use crate::chart::Chart;

/// A drawing and what can be measured of it.
pub struct Drawing {
    pub svg: String,
    pub texts: Vec<Boxed>,
    /// Width and height, in points.
    pub size: [f64; 2],
}

/// The chart as SVG.
pub fn svg(chart: &Chart) -> String {
    draw(chart).svg
}

/// The chart as SVG, with its texts.
pub fn draw(chart: &Chart) -> Drawing {
    let layout = Layout::of(chart);
    let size = [chart.width, (layout.height / 72.0 * 100.0).ceil() / 100.0];
    let mut canvas = Canvas::new(size, &format!("{}. {}", chart.name, chart.title));
    layout.draw(&mut canvas, chart);
    let (svg, texts) = canvas.finish();
    Drawing { svg, texts, size: size.map(|inches| inches * 72.0) }
}
