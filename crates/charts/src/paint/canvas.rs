//! A plotters page on which text occupies the same space in every viewer.
//!
//! Shapes use drawing units, text uses points. Nothing can fail: the backend writes to a string.
use std::sync::Once;

use plotters::element::{DashedPathElement, Drawable};
use plotters::prelude::{
    DrawingBackend, FontStyle, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, register_font};
use words::one_line;

use super::backend::Svg;
use crate::chart::{Color, Style};
use crate::palette::WHITE;

/// Drawing units per inch.
pub const UNITS_PER_INCH: u32 = 600;

/// Roboto Regular of Debian's `fonts-roboto-unhinted` 2:0~20170802-3, Apache License 2.0 (see `assets/`).
pub const FONT: &[u8] = include_bytes!("../../assets/Roboto-Regular.ttf");

/// Font families for SVG viewers; the first is the embedded one.
pub const FAMILY: &str = "Roboto, Arial, Helvetica, sans-serif";

/// Font size of axis labels and numbers, in points.
pub const SIZE: f64 = 7.5;

/// Font size of legends and names in a plot, in points.
pub const SMALL: f64 = 7.0;

/// Height from ascent to descent in em, which ab_glyph, used by plotters to measure text, takes as the font size.
const AB_GLYPH_SIZE: f64 = 1.171_875;

/// Height of a Roboto digit above the baseline, in em.
pub const DIGIT: f64 = 0.711;

/// A place on the page, in units.
pub type Spot = (i32, i32);

/// Converts points to units.
pub fn units(points: f64) -> i32 {
    (points * f64::from(UNITS_PER_INCH) / 72.0).round() as i32
}

/// Converts units to points.
pub fn points(units: i32) -> f64 {
    f64::from(units) * 72.0 / f64::from(UNITS_PER_INCH)
}

/// Converts a place from points to units.
pub fn spot((x, y): (f64, f64)) -> Spot {
    (units(x), units(y))
}

/// Colours of a shape: its area with an opacity, and its outline.
#[derive(Clone, Copy, Default)]
pub struct Paint {
    pub area: Option<(Color, f64)>,
    pub outline: Option<Style>,
}

impl Paint {
    /// Returns an opaque area without an outline.
    pub fn area(color: Color) -> Self {
        Self { area: Some((color, 1.0)), outline: None }
    }
}

fn rgb(Color(red, green, blue): Color) -> RGBColor {
    RGBColor(red, green, blue)
}

fn stroke(Style { color, width, .. }: Style) -> ShapeStyle {
    ShapeStyle::from(rgb(color)).stroke_width(units(width).unsigned_abs())
}

/// A text and the box around its capitals and digits: left, right, top and bottom, in points from the upper left corner.
pub type Boxed = (String, [f64; 4]);

pub struct Canvas {
    backend: Svg,
    /// In points.
    pub width: f64,
    texts: Vec<Boxed>,
}

impl Canvas {
    /// Returns a white page of this size in inches; the title is for screen readers.
    pub fn new(size: [f64; 2], title: &str) -> Self {
        let backend = Svg::new(size, &one_line(title));
        let (across, down) = backend.get_size();
        let mut canvas = Self { backend, width: size[0] * 72.0, texts: Vec::new() };
        canvas.rectangle([(0, 0), (across as i32, down as i32)], Paint::area(WHITE));
        canvas
    }

    /// Returns the drawing, and all texts with their boxes.
    pub fn finish(self) -> (String, Vec<Boxed>) {
        (self.backend.finish(), self.texts)
    }

    fn draw(&mut self, Paint { area, outline }: Paint, mut shape: impl FnMut(&mut Svg, ShapeStyle)) {
        if let Some((Color(red, green, blue), opacity)) = area {
            shape(&mut self.backend, RGBAColor(red, green, blue, opacity).filled());
        }
        if let Some(style) = outline {
            shape(&mut self.backend, stroke(style));
        }
    }

    /// Draws a rectangle between its upper left and lower right corners.
    pub fn rectangle(&mut self, [from, to]: [Spot; 2], paint: Paint) {
        self.draw(paint, |svg, style| drop(svg.draw_rect(from, to, &style, style.filled)));
    }

    pub fn circle(&mut self, at: Spot, radius: f64, paint: Paint) {
        let radius = units(radius).unsigned_abs();
        self.draw(paint, |svg, style| drop(svg.draw_circle(at, radius, &style, style.filled)));
    }

    pub fn polygon(&mut self, corners: &[Spot], paint: Paint) {
        let closed = || corners.iter().chain(corners.first()).copied();
        self.draw(paint, |svg, style| {
            drop(if style.filled {
                svg.fill_polygon(closed(), &style)
            } else {
                svg.draw_path(closed(), &style)
            });
        });
    }

    pub fn line(&mut self, places: &[Spot], style: Style) {
        let [dash, gap] = style.dash.map(units);
        let (places, stroke) = (places.iter().copied(), stroke(style));
        drop(if dash == 0 {
            self.backend.draw_path(places, &stroke)
        } else {
            DashedPathElement::new(places.clone(), dash, gap, stroke).draw(places, &mut self.backend, (0, 0))
        });
    }
}

/// Returns the width of `text` in points at a font size in points.
pub fn width(text: &str, size: f64) -> f64 {
    static REGISTERED: Once = Once::new();
    // fails only for data that is not a font, which the tests rule out
    REGISTERED.call_once(|| drop(register_font(FAMILY, FontStyle::Normal, FONT)));
    let measured = (FAMILY, 1000.0).into_font().box_size(text).map_or(0, |(width, _)| width);
    f64::from(measured) / 1000.0 * AB_GLYPH_SIZE * size
}

/// Returns `text` and a font size at which it fits into `room` points: smaller type first, then truncation.
pub fn fitted(text: &str, size: f64, room: f64) -> (String, f64) {
    let least = size * 0.8;
    let fitting = (size * room / width(text, size).max(1.0)).min(size);
    if fitting >= least {
        return (text.to_owned(), fitting);
    }
    let mut shorter = text.to_owned();
    while !shorter.is_empty() && width(&format!("{shorter}\u{2026}"), least) > room {
        shorter.pop();
    }
    (format!("{}\u{2026}", shorter.trim_end()), least)
}

/// Style of a text; `anchor` is the point of the text that is placed.
#[derive(Clone, Copy)]
pub struct TextStyle {
    /// In points.
    pub size: f64,
    pub color: Color,
    pub anchor: HPos,
}

impl TextStyle {
    /// Writes `text` with its baseline at a place, in points.
    pub fn write(self, canvas: &mut Canvas, text: &str, (x, y): (f64, f64)) {
        let [start, end] = self.ends(text);
        let sides = [x + start, x + end, y - self.size * DIGIT, y];
        self.draw(canvas, text, (x, y), FontTransform::None, sides);
    }

    /// Writes `text` with its digits centred vertically.
    pub fn write_centered(self, canvas: &mut Canvas, text: &str, (x, y): (f64, f64)) {
        self.write(canvas, text, (x, y + self.size * DIGIT / 2.0));
    }

    /// Writes `text` vertically, reading upwards, with its baseline at a place.
    pub fn write_upwards(self, canvas: &mut Canvas, text: &str, (x, y): (f64, f64)) {
        let [start, end] = self.ends(text);
        let sides = [x - self.size * DIGIT, x, y - end, y - start];
        self.draw(canvas, text, (x, y), FontTransform::Rotate270, sides);
    }

    /// Returns the start and end of `text` along its baseline, relative to its anchor.
    fn ends(self, text: &str) -> [f64; 2] {
        let length = width(text, self.size);
        let before = match self.anchor {
            HPos::Left => 0.0,
            HPos::Center => length / 2.0,
            HPos::Right => length,
        };
        [-before, length - before]
    }

    fn draw(self, canvas: &mut Canvas, text: &str, at: (f64, f64), turn: FontTransform, sides: [f64; 4]) {
        if text.is_empty() {
            return;
        }
        let font = (FAMILY, units(self.size)).into_font().transform(turn);
        let style = font.color(&rgb(self.color)).pos(Pos::new(self.anchor, VPos::Bottom));
        let text = one_line(text);
        drop(canvas.backend.draw_text(&text, &style, spot(at)));
        canvas.texts.push((text, sides));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_shrink_and_then_lose_their_end() {
        assert_eq!(fitted("short", 8.0, 100.0), ("short".to_owned(), 8.0));
        let (text, size) = fitted("just a little too long", 8.0, width("just a little too long", 7.0));
        assert!((size - 7.0).abs() < 1e-9 && text.ends_with("long"), "{text} at {size}");
        let (text, size) = fitted(&"long ".repeat(100), 8.0, 50.0);
        assert!(text.ends_with('\u{2026}') && width(&text, size) <= 50.0, "{text}");
    }
}
