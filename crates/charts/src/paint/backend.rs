//! An SVG backend for plotters that groups neighbouring elements with equal attributes: half the file size of plotters' own backend.
use std::convert::Infallible;
use std::fmt::Write as _;

use plotters::prelude::{DrawingBackend, FontTransform};
use plotters::style::text_anchor::HPos;
use plotters_backend::{BackendColor, BackendStyle, BackendTextStyle, DrawingErrorKind};

use super::canvas::{FAMILY, Spot, units, width};

type Result = std::result::Result<(), DrawingErrorKind<Infallible>>;

/// An SVG drawing in progress.
pub struct Svg {
    text: String,
    /// Attributes of the open group.
    look: String,
    /// Attributes and text of the last element, which is not yet in `text`.
    last: (String, String),
    /// In canvas units.
    size: (u32, u32),
}

impl Svg {
    /// Returns an empty drawing of this size in inches, with a title.
    pub fn new([width, height]: [f64; 2], title: &str) -> Self {
        let size = [width, height].map(|inches| units(inches * 72.0).unsigned_abs());
        let head = r#"<svg xmlns="http://www.w3.org/2000/svg""#;
        let sizes = format!(r#"width="{width}in" height="{height}in" viewBox="0 0 {} {}""#, size[0], size[1]);
        let text = format!("{head} {sizes} font-family=\"{FAMILY}\">\n<title>{}</title>\n", escaped(title));
        Self { text, look: String::new(), last: Default::default(), size: size.into() }
    }

    /// Returns the complete SVG.
    pub fn finish(mut self) -> String {
        self.write_last();
        self.text + "</g>\n</svg>\n"
    }

    /// Writes the last element into a group with its attributes.
    fn write_last(&mut self) {
        let (look, element) = std::mem::take(&mut self.last);
        if self.look != look {
            let end = if self.look.is_empty() { "" } else { "</g>\n" };
            self.text += &format!("{end}<g{look}>\n");
            self.look = look;
        }
        self.text += &element;
    }

    /// Adds an element. The outline of an area that was just drawn becomes an attribute of the area.
    fn push(&mut self, look: String, element: String) -> Result {
        match look.strip_suffix(NO_AREA) {
            Some(outline) if self.last.1 == element && !self.last.0.contains(" stroke=") => {
                self.last.0 += outline
            }
            _ => {
                self.write_last();
                self.last = (look, element);
            }
        }
        Ok(())
    }
}

/// Attribute of elements with only an outline.
const NO_AREA: &str = " fill=\"none\"";

/// Returns the attributes of an area or a line.
fn look(style: &impl BackendStyle, is_area: bool) -> String {
    let (BackendColor { alpha, rgb }, name) = (style.color(), if is_area { "fill" } else { "stroke" });
    let mut look = format!(" {name}=\"{}\"", hex(rgb));
    if alpha < 1.0 {
        look += &format!(" {name}-opacity=\"{alpha}\"");
    }
    if !is_area {
        look += &format!(" stroke-width=\"{}\"{NO_AREA}", style.stroke_width());
    }
    look
}

fn hex((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns a path through all places, with the shortest command for each step.
fn path(places: impl IntoIterator<Item = Spot>) -> String {
    let places: Vec<_> = places.into_iter().collect();
    let mut path = places.first().map(|(x, y)| format!("M{x},{y}")).unwrap_or_default();
    for step in places.windows(2) {
        let (across, down) = (step[1].0 - step[0].0, step[1].1 - step[0].1);
        let _ = match (across, down) {
            _ if step[1] == places[0] => write!(path, "z"),
            (_, 0) => write!(path, "h{across}"),
            (0, _) => write!(path, "v{down}"),
            _ => write!(path, "l{across},{down}"),
        };
    }
    path
}

impl DrawingBackend for Svg {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Result {
        Ok(())
    }

    fn present(&mut self) -> Result {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): Spot, color: BackendColor) -> Result {
        self.draw_rect((x, y), (x + 1, y + 1), &color, true)
    }

    fn draw_rect<S: BackendStyle>(&mut self, from: Spot, to: Spot, style: &S, fill: bool) -> Result {
        let corners = [from, (to.0, from.1), to, (from.0, to.1), from];
        self.push(look(style, fill), format!("<path d=\"{}\"/>\n", path(corners)))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = Spot>>(&mut self, places: I, style: &S) -> Result {
        let (look, path) = (look(style, false), path(places));
        let (last_look, last) = &mut self.last;
        // pieces of a dashed line share one element
        match last.strip_suffix("\"/>\n") {
            Some(piece) if *last_look == look && piece.starts_with("<path") => {
                *last = format!("{piece}{path}\"/>\n");
                Ok(())
            }
            _ => self.push(look, format!("<path d=\"{path}\"/>\n")),
        }
    }

    fn draw_circle<S: BackendStyle>(&mut self, (x, y): Spot, radius: u32, style: &S, fill: bool) -> Result {
        self.push(look(style, fill), format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n"))
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = Spot>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Result {
        self.push(look(style, true), format!("<path d=\"{}\"/>\n", path(corners)))
    }

    /// Draws text with its baseline at a place and ignores the vertical anchor. Viewers stretch their own font to the width of the embedded
    /// one, because texts that do not overlap in Roboto would collide in wider fonts such as DejaVu.
    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): Spot) -> Result {
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let turn = match style.transform() {
            FontTransform::None => String::new(),
            FontTransform::Rotate90 => format!(" transform=\"rotate(90 {x} {y})\""),
            FontTransform::Rotate180 => format!(" transform=\"rotate(180 {x} {y})\""),
            FontTransform::Rotate270 => format!(" transform=\"rotate(270 {x} {y})\""),
        };
        let (color, size) = (hex(style.color().rgb), style.size());
        let look = format!(" fill=\"{color}\" font-size=\"{size}\" text-anchor=\"{anchor}\"");
        let length = width(text, size).round();
        let fit = format!("textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\"");
        self.push(look, format!("<text x=\"{x}\" y=\"{y}\" {fit}{turn}>{}</text>\n", escaped(text)))
    }
}
