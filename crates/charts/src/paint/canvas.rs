//! A page that is drawn on, as SVG, and text whose place does not depend on the viewer.
//!
//! Shapes are placed in units of the drawing, text in printer's points.
use std::fmt::Write as _;
use std::sync::LazyLock;

use ttf_parser::Face;
use words::one_line;

use crate::chart::{Color, Style};

/// Units of a drawing in one inch.
pub const UNITS_PER_INCH: u32 = 600;

/// Roboto Regular of Debian's `fonts-roboto-unhinted` 2:0~20170802-3, Apache License 2.0 (see `assets/`).
pub const FONT: &[u8] = include_bytes!("../../assets/Roboto-Regular.ttf");

/// Families for viewers of the SVG, first the one that is embedded here.
const FAMILY: &str = "Roboto, Arial, Helvetica, sans-serif";

/// Size of labels and numbers of axes, in points.
pub const SIZE: f64 = 7.5;

/// Size of legends and names in a plot, in points.
pub const SMALL: f64 = 7.0;

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

    /// The attributes of SVG.
    fn attributes(self) -> String {
        let mut attributes = match self.area {
            None => " fill=\"none\"".to_owned(),
            Some((color, 1.0)) => format!(" fill=\"{}\"", hex(color)),
            Some((color, opacity)) => format!(" fill=\"{}\" fill-opacity=\"{opacity}\"", hex(color)),
        };
        if let Some(Style { color, width, dash }) = self.outline {
            attributes += &format!(" stroke=\"{}\"", hex(color));
            if units(width) > 1 {
                attributes += &format!(" stroke-width=\"{}\"", units(width));
            }
            if dash != [0.0; 2] {
                let [dash, gap] = dash.map(units);
                attributes += &format!(" stroke-dasharray=\"{dash} {gap}\"");
            }
        }
        attributes
    }
}

fn hex(Color(red, green, blue): Color) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// A text and the box around its capitals and digits: left, right, top and bottom, in points from the upper left corner.
pub type Boxed = (String, [f64; 4]);

/// A page. Neighbouring shapes that look alike are one group of the SVG.
pub struct Canvas {
    /// In points.
    pub width: f64,
    svg: String,
    /// The attributes of the group that is open.
    look: String,
    /// All texts that were written.
    texts: Vec<Boxed>,
}

impl Canvas {
    /// A white one of this size in inches, with a title for those who cannot see it.
    pub fn new([width, height]: [f64; 2], title: &str) -> Self {
        let [across, down] = [width, height].map(|inches| units(inches * 72.0));
        let head = r#"<svg xmlns="http://www.w3.org/2000/svg""#;
        let size = format!(r#"width="{width}in" height="{height}in" viewBox="0 0 {across} {down}""#);
        let title = escaped(&one_line(title));
        let svg = format!("{head} {size} font-family=\"{FAMILY}\">\n<title>{title}</title>\n");
        let mut canvas = Self { width: width * 72.0, svg, look: String::new(), texts: Vec::new() };
        canvas.rectangle([(0, 0), (across, down)], Paint::area(crate::palette::WHITE));
        canvas
    }

    /// The drawing, and what was written where.
    pub fn finish(mut self) -> (String, Vec<Boxed>) {
        self.svg += "</g>\n</svg>\n";
        (self.svg, self.texts)
    }

    /// Adds an element to the group of this look.
    fn push(&mut self, look: String, element: &str) {
        if self.look != look {
            let end = if self.look.is_empty() { "" } else { "</g>\n" };
            self.svg += &format!("{end}<g{look}>\n");
            self.look = look;
        }
        self.svg += element;
        self.svg.push('\n');
    }

    /// A rectangle between its upper left and its lower right corner.
    pub fn rectangle(&mut self, [(left, top), (right, bottom)]: [Spot; 2], paint: Paint) {
        let (width, height) = (right - left, bottom - top);
        let element = format!("<path d=\"M{left},{top}h{width}v{height}h{}z\"/>", -width);
        self.push(paint.attributes(), &element);
    }

    /// A disc.
    pub fn circle(&mut self, (x, y): Spot, radius: f64, paint: Paint) {
        self.push(paint.attributes(), &format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{}\"/>", units(radius)));
    }

    /// The area within these corners.
    pub fn polygon(&mut self, corners: &[Spot], paint: Paint) {
        self.push(paint.attributes(), &format!("<path d=\"{}z\"/>", path(corners)));
    }

    /// A line through these places.
    pub fn line(&mut self, places: &[Spot], style: Style) {
        let paint = Paint { outline: Some(style), area: None };
        self.push(paint.attributes(), &format!("<path d=\"{}\"/>", path(places)));
    }
}

/// A path of SVG from the first place to each next one.
fn path(places: &[Spot]) -> String {
    let mut path = String::new();
    for (place, &(x, y)) in places.iter().enumerate() {
        // each in the shortest way that says it
        let _ = match place.checked_sub(1).map(|before| (x - places[before].0, y - places[before].1)) {
            None => write!(path, "M{x},{y}"),
            Some((across, 0)) => write!(path, "h{across}"),
            Some((0, down)) => write!(path, "v{down}"),
            Some((across, down)) => write!(path, "l{across},{down}"),
        };
    }
    path
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Width of `text` in points at a `size` in points.
pub fn width(text: &str, size: f64) -> f64 {
    static FACE: LazyLock<Face<'_>> =
        LazyLock::new(|| Face::parse(FONT, 0).expect("the tests read the font"));
    let advance = |letter| FACE.glyph_hor_advance(FACE.glyph_index(letter).unwrap_or_default()).unwrap_or(0);
    let sum: f64 = text.chars().map(|letter| f64::from(advance(letter))).sum();
    sum / f64::from(FACE.units_per_em()) * size
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

/// The point of a text that is placed.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Look of a text, and the point of it that is placed.
#[derive(Clone, Copy)]
pub struct TextStyle {
    /// Size in points.
    pub size: f64,
    pub color: Color,
    pub anchor: Anchor,
}

impl TextStyle {
    /// Writes `text` with its baseline at a place on the page, in points.
    pub fn write(self, canvas: &mut Canvas, text: &str, (x, y): (f64, f64)) {
        let (_, [start, end]) = self.anchored(text);
        self.draw(canvas, text, (x, y), "", [x + start, x + end, y - self.size * DIGIT, y]);
    }

    /// Writes `text` with its digits centred vertically.
    pub fn write_centered(self, canvas: &mut Canvas, text: &str, (x, y): (f64, f64)) {
        self.write(canvas, text, (x, y + self.size * DIGIT / 2.0));
    }

    /// Writes `text` upwards with its baseline at a place.
    pub fn write_upwards(self, canvas: &mut Canvas, text: &str, (x, y): (f64, f64)) {
        let (_, [start, end]) = self.anchored(text);
        let turn = format!(" transform=\"rotate(270 {} {})\"", units(x), units(y));
        self.draw(canvas, text, (x, y), &turn, [x - self.size * DIGIT, x, y - end, y - start]);
    }

    /// The name of the anchor, and where `text` begins and ends along its baseline from there.
    fn anchored(self, text: &str) -> (&'static str, [f64; 2]) {
        let length = width(text, self.size);
        match self.anchor {
            Anchor::Start => ("start", [0.0, length]),
            Anchor::Middle => ("middle", [-length / 2.0, length / 2.0]),
            Anchor::End => ("end", [-length, 0.0]),
        }
    }

    fn draw(self, canvas: &mut Canvas, text: &str, at: (f64, f64), turn: &str, sides: [f64; 4]) {
        if text.is_empty() {
            return;
        }
        let (anchor, (x, y), text) = (self.anchored(text).0, spot(at), one_line(text));
        let size = units(self.size);
        let look = format!(" fill=\"{}\" font-size=\"{size}\" text-anchor=\"{anchor}\"", hex(self.color));
        canvas.push(look, &format!("<text x=\"{x}\" y=\"{y}\"{turn}>{}</text>", escaped(&text)));
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
