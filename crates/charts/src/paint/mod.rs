//! The one painter: a [`Chart`] becomes an SVG drawing of its size in print, by plotters.
//!
//! plotters draws in units of 1/600 inch, and resvg renders that to PNG with the embedded font, so both files show the same
//! and neither needs a font on the machine. (The bitmap backend of plotters places glyphs without their side bearings, see
//! `draw` in its `style/font/ab_glyph.rs`.)
mod axes;
pub mod canvas;
mod layers;
mod layout;
mod marks;

use canvas::{Boxed, Canvas, UNITS_PER_INCH};
use layout::Layout;
use words::one_line;

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
    let units = size.map(|inches| (inches * f64::from(UNITS_PER_INCH)).round() as u32);
    let mut svg = String::new();
    let mut canvas = Canvas::new(&mut svg, units.into());
    layout.draw(&mut canvas, chart);
    let texts = canvas.finish();
    // The size in print instead of units; the `viewBox` keeps these.
    let drawn = format!(r#"width="{}" height="{}""#, units[0], units[1]);
    let print = format!(r#"width="{}in" height="{}in""#, size[0], size[1]);
    let title = one_line(&format!("{}. {}", chart.name, chart.title));
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let titled = format!(">\n<title>{title}</title>\n");
    let svg = shortened(&svg).replacen(&drawn, &print, 1).replacen(">\n", &titled, 1);
    Drawing { svg, texts, size: size.map(|inches| inches * 72.0) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_and_its_outline_are_one_rectangle() {
        let rect = |x: u32, rest: &str| format!(r#"<rect x="{x}" y="2" width="3" height="4"{rest}/>"#) + "\n";
        let area = rect(1, r##" opacity="1" fill="#F3D1B6" stroke="none""##);
        let outline = |x| rect(x, r##" opacity="1" fill="none" stroke="#DEDEDE""##);
        let both = rect(1, r##" fill="#F3D1B6" stroke="#DEDEDE""##);
        let expected = both + &rect(5, r##" fill="none" stroke="#DEDEDE""##);
        assert_eq!(shortened(&(area + &outline(1) + &outline(5))), expected);
    }
}
