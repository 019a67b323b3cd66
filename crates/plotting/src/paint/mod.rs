//! The one painter: a [`Chart`] becomes an SVG drawing of its size in print, by plotters.
//!
//! plotters draws in units of 1/600 inch, and resvg renders that to PNG with the embedded font, so both files show the same
//! and neither needs a font on the machine. (The bitmap backend of plotters places glyphs without their side bearings, see
//! `draw` in its `style/font/ab_glyph.rs`.) Places on the page are in points.
mod axes;
mod layers;
mod layout;
mod marks;
pub mod text;

use anyhow::{Error, Result, anyhow};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::prelude::{RGBColor, SVGBackend, WHITE};
use plotters::style::ShapeStyle;
use records::visible::one_line;

use crate::chart::{Chart, Color};

/// Units of a drawing, and pixels of a PNG, in one inch.
pub const UNITS_PER_INCH: u32 = 600;

/// The page in plotters' terms.
pub type Page<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A length in printer's points as units of the drawing.
pub(crate) fn points(points: f64) -> i32 {
    (points * f64::from(UNITS_PER_INCH) / 72.0).round() as i32
}

pub(crate) fn rgb(Color(red, green, blue): Color) -> RGBColor {
    RGBColor(red, green, blue)
}

/// A line of this `width` in points.
pub(crate) fn stroke(color: Color, width: f64) -> ShapeStyle {
    ShapeStyle::from(rgb(color)).stroke_width(points(width).unsigned_abs())
}

/// The error of a plotters backend as one of this crate.
pub(crate) fn to_error<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> Error {
    anyhow!("cannot draw the figure: {error}")
}

/// The chart as SVG.
pub fn svg(chart: &Chart) -> Result<String> {
    let layout = layout::Layout::of(chart);
    let size = [chart.width, (layout.height / 72.0 * 100.0).ceil() / 100.0];
    let units = size.map(|inches| (inches * f64::from(UNITS_PER_INCH)).round() as u32);
    let mut svg = String::new();
    {
        let page = SVGBackend::with_string(&mut svg, (units[0], units[1])).into_drawing_area();
        page.fill(&WHITE).map_err(to_error)?;
        layout.draw(&page, chart)?;
        page.present().map_err(to_error)?;
    }
    let svg = shortened(&svg);
    // The size in print instead of units; the `viewBox` keeps these.
    let drawn = format!(r#"width="{}" height="{}""#, units[0], units[1]);
    let print = format!(r#"width="{}in" height="{}in""#, size[0], size[1]);
    let title = one_line(&format!("{}. {}", chart.name, chart.title));
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    Ok(svg.replacen(&drawn, &print, 1).replacen(">\n", &format!(">\n<title>{title}</title>\n"), 1))
}

/// The same drawing without attributes that go without saying, and with one rectangle where plotters draws two, an area and
/// its outline: heat maps have thousands of cells.
fn shortened(svg: &str) -> String {
    let plain = svg.replace(r#" opacity="1""#, "").replace(r#" stroke="none""#, "");
    let mut lines: Vec<String> = Vec::new();
    for line in plain.lines() {
        let outline = line.strip_prefix("<rect ").and_then(|line| line.split_once(r#" fill="none" stroke="#));
        let area = lines.last_mut().filter(|last| {
            outline.is_some_and(|(place, _)| {
                let rest = last.strip_prefix("<rect ").and_then(|last| last.strip_prefix(place));
                rest.is_some_and(|rest| rest.starts_with(r##" fill="#"##) && !rest.contains("stroke"))
            })
        });
        match (area, outline) {
            (Some(area), Some((_, color))) => *area = area.replace("/>", &format!(" stroke={color}")),
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

/// The share of the height that the legend takes.
#[cfg(test)]
pub fn header(chart: &Chart) -> f64 {
    let layout = layout::Layout::of(chart);
    let without = layout::Layout::of(&Chart { legend: Vec::new(), ..chart.clone() });
    (layout.height - without.height) / layout.height
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_and_its_outline_are_one_rectangle() {
        let svg = concat!(
            r##"<rect x="1" y="2" width="3" height="4" opacity="1" fill="#F3D1B6" stroke="none"/>"##,
            "\n",
            r##"<rect x="1" y="2" width="3" height="4" opacity="1" fill="none" stroke="#DEDEDE"/>"##,
            "\n",
            r##"<rect x="5" y="2" width="3" height="4" opacity="1" fill="none" stroke="#DEDEDE"/>"##,
            "\n",
        );
        let expected = concat!(
            r##"<rect x="1" y="2" width="3" height="4" fill="#F3D1B6" stroke="#DEDEDE"/>"##,
            "\n",
            r##"<rect x="5" y="2" width="3" height="4" fill="none" stroke="#DEDEDE"/>"##,
            "\n",
        );
        assert_eq!(shortened(svg), expected);
    }
}
