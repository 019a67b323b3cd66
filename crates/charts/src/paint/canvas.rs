//! A page that is drawn on with plotters, and text whose place does not depend on the viewer.
//!
//! Shapes are placed in units of the drawing, text in printer's points. Nothing can fail: the backend writes to a string.
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

/// Units of a drawing in one inch.
pub const UNITS_PER_INCH: u32 = 600;

/// Roboto Regular of Debian's `fonts-roboto-unhinted` 2:0~20170802-3, Apache License 2.0 (see `assets/`).
pub const FONT: &[u8] = include_bytes!("../../assets/Roboto-Regular.ttf");

/// Families for viewers of the SVG, first the one that is embedded here.
pub const FAMILY: &str = "Roboto, Arial, Helvetica, sans-serif";

/// Size of labels and numbers of axes, in points.
pub const SIZE: f64 = 7.5;

/// Size of legends and names in a plot, in points.
pub const SMALL: f64 = 7.0;

/// plotters measures with ab_glyph, whose size is the height from ascent to descent: this many em.
const AB_GLYPH_SIZE: f64 = 1.171_875;

/// Height of a digit above its baseline in Roboto, in em.
pub const DIGIT: f64 = 0.711;

/// A place in units.
pub type Spot = (i32, i32);

/// A length in points as units.
pub fn units(points: f64) -> i32 {
    (points * f64::from(UNITS_PER_INCH) / 72.0).round() as i32
}

/// A length in units as points.
pub fn points(units: i32) -> f64 {
    f64::from(units) * 72.0 / f64::from(UNITS_PER_INCH)
}

/// A place in points as one in units.
pub fn spot((x, y): (f64, f64)) -> Spot {
    (units(x), units(y))
}

/// Colours of a shape: its area with how opaque that is, and its outline.
#[derive(Clone, Copy, Default)]
pub struct Paint {
    pub area: Option<(Color, f64)>,
    pub outline: Option<Style>,
}

impl Paint {
    /// An opaque area without an outline.
    pub fn area(color: Color) -> Self {
        Self { area: Some((color, 1.0)), outline: None }
    }
}

fn rgb(Color(red, green, blue): Color) -> RGBColor {
    RGBColor(red, green, blue)
}

/// A line of this width in points.
fn stroke(Style { color, width, .. }: Style) -> ShapeStyle {
    ShapeStyle::from(rgb(color)).stroke_width(units(width).unsigned_abs())
}

/// A text and the box around its capitals and digits: left, right, top and bottom, in points from the upper left corner.
pub type Boxed = (String, [f64; 4]);

/// A page.
pub struct Canvas {
    backend: Svg,
    /// In points.
    pub width: f64,
    /// All texts that were written.
    texts: Vec<Boxed>,
}

impl Canvas {
    /// A white one of this size in inches, with a title for those who cannot see it.
    pub fn new(size: [f64; 2], title: &str) -> Self {
        let backend = Svg::new(size, &one_line(title));
        let (across, down) = backend.get_size();
        let mut canvas = Self { backend, width: size[0] * 72.0, texts: Vec::new() };
        canvas.rectangle([(0, 0), (across as i32, down as i32)], Paint::area(WHITE));
        canvas
    }

    /// The drawing, and what was written where.
    pub fn finish(self) -> (String, Vec<Boxed>) {
        (self.backend.finish(), self.texts)
    }

    /// Draws the area of a shape, then its outline.
    fn draw(&mut self, Paint { area, outline }: Paint, mut shape: impl FnMut(&mut Svg, ShapeStyle)) {
        if let Some((Color(red, green, blue), opacity)) = area {
            shape(&mut self.backend, RGBAColor(red, green, blue, opacity).filled());
        }
        if let Some(style) = outline {
            shape(&mut self.backend, stroke(style));
        }
    }

    /// A rectangle between its upper left and its lower right corner.
    pub fn rectangle(&mut self, [from, to]: [Spot; 2], paint: Paint) {
        self.draw(paint, |svg, style| drop(svg.draw_rect(from, to, &style, style.filled)));
    }

    /// A disc.
    pub fn circle(&mut self, at: Spot, radius: f64, paint: Paint) {
        let radius = units(radius).unsigned_abs();
        self.draw(paint, |svg, style| drop(svg.draw_circle(at, radius, &style, style.filled)));
    }

    /// The area within these corners.
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

    /// A line through these places.
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

/// Width of `text` in points at a `size` in points.
pub fn width(text: &str, size: f64) -> f64 {
    static REGISTERED: Once = Once::new();
    // Can only fail on a file that is no font, which the tests rule out.
    REGISTERED.call_once(|| drop(register_font(FAMILY, FontStyle::Normal, FONT)));
    let measured = (FAMILY, 1000.0).into_font().box_size(text).map_or(0, |(width, _)| width);
    f64::from(measured) / 1000.0 * AB_GLYPH_SIZE * size
}

/// `text` and a size at which it fits into `room` (in points): smaller type first, then cut off.
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

/// Look of a text, and the point of it that is placed.
#[derive(Clone, Copy)]
pub struct TextStyle {
    /// Size in points.
    pub size: f64,
    pub color: Color,
    pub anchor: HPos,
}

impl TextStyle {
    /// Writes `text` with its baseline at a place on the page, in points.
    pub fn write(self, canvas: &mut Canvas, text: &str, (x, y): (f64, f64)) {
        let [start, end] = self.ends(text);
        let sides = [x + start, x + end, y - self.size * DIGIT, y];
        self.draw(canvas, text, (x, y), FontTransform::None, sides);
    }

    /// Writes `text` with its digits centred vertically.
    pub fn write_centered(self, canvas: &mut Canvas, text: &str, (x, y): (f64, f64)) {
        self.write(canvas, text, (x, y + self.size * DIGIT / 2.0));
    }

    /// Writes `text` upwards with its baseline at a place.
    pub fn write_upwards(self, canvas: &mut Canvas, text: &str, (x, y): (f64, f64)) {
        let [start, end] = self.ends(text);
        let sides = [x - self.size * DIGIT, x, y - end, y - start];
        self.draw(canvas, text, (x, y), FontTransform::Rotate270, sides);
    }

    /// Where `text` begins and ends along its baseline, from the place that it is written at.
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

    /// Fonts such as DejaVu are wider than the one that is measured here.
    #[test]
    fn viewers_stretch_each_text_to_its_box_whatever_font_they_have() {
        let mut canvas = Canvas::new([3.0, 1.0], "");
        let style = TextStyle { size: 7.2, color: WHITE, anchor: HPos::Right };
        style.write(&mut canvas, "r = 0.64", (90.0, 20.0));
        style.write_upwards(&mut canvas, "cross-attention", (9.0, 60.0));
        let (svg, texts) = canvas.finish();
        let lengths = texts.iter().map(|(_, [left, right, top, bottom])| (right - left).max(bottom - top));
        let expected: Vec<String> = lengths
            .map(|length| format!("textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", units(length)))
            .collect();
        let drawn: Vec<&str> = svg.lines().filter(|line| line.starts_with("<text")).collect();
        assert_eq!((drawn.len(), expected.len()), (2, 2));
        assert!(drawn.iter().zip(&expected).all(|(text, length)| text.contains(length)), "{svg}{expected:?}");
    }

    /// In Roboto a digit is 1150 of 2048 units wide.
    #[test]
    fn widths_are_those_of_the_font_file() {
        assert!((width("00000", 2048.0) - 5.0 * 1150.0).abs() < 10.0, "{}", width("00000", 2048.0));
    }
}
