//! The embedded font, and text whose place does not depend on the viewer.
use anyhow::Result;
use std::sync::Once;

use plotters::prelude::{FontStyle, FontTransform, IntoFont};
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use records::visible::one_line;

use super::{Page, points, rgb, to_error};
use crate::chart::Color;

/// Roboto Regular of Debian's `fonts-roboto-unhinted` 2:0~20170802-3, Apache License 2.0 (see `assets/`).
pub const FONT: &[u8] = include_bytes!("../../assets/Roboto-Regular.ttf");

/// Families for viewers of the SVG, first the one that is embedded here.
const FAMILY: &str = "Roboto, Arial, Helvetica, sans-serif";

/// Size of labels and numbers of axes, in points.
pub const SIZE: f64 = 7.5;

/// Size of legends and names in a plot, in points.
pub const SMALL: f64 = 7.0;

/// The backend of plotters writes `font-size = size / 1.24`.
const PLOTTERS_SIZE: f64 = 1.24;

/// The backend of plotters puts the baseline of text anchored at the top this many em lower.
const PLOTTERS_TOP: f64 = 0.76;

/// plotters measures with ab_glyph, whose size is the height from ascent to descent: this many em.
const AB_GLYPH_SIZE: f64 = 1.171_875;

/// Height of a digit above its baseline in Roboto, in em.
pub const DIGIT: f64 = 0.711;

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

/// How a text looks and which of its points is placed.
#[derive(Clone, Copy)]
pub struct TextStyle {
    /// Size in points.
    pub size: f64,
    pub color: Color,
    pub anchor: HPos,
}

impl TextStyle {
    /// Writes `text` with its baseline at a place on the page, in points.
    pub fn write(self, page: &Page<'_>, text: &str, (x, y): (f64, f64)) -> Result<()> {
        self.draw(page, text, (x, y - self.size * PLOTTERS_TOP), FontTransform::None)
    }

    /// Writes `text` with its digits centred vertically.
    pub fn write_centered(self, page: &Page<'_>, text: &str, (x, y): (f64, f64)) -> Result<()> {
        self.write(page, text, (x, y + self.size * DIGIT / 2.0))
    }

    /// Writes `text` upwards with its baseline at a place.
    pub fn write_upwards(self, page: &Page<'_>, text: &str, (x, y): (f64, f64)) -> Result<()> {
        self.draw(page, text, (x - self.size * PLOTTERS_TOP, y), FontTransform::Rotate270)
    }

    fn draw(self, page: &Page<'_>, text: &str, (x, y): (f64, f64), turn: FontTransform) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let font = (FAMILY, f64::from(points(self.size)) * PLOTTERS_SIZE).into_font().transform(turn);
        let style = font.color(&rgb(self.color)).pos(Pos::new(self.anchor, VPos::Top));
        page.draw_text(&one_line(text), &style, (points(x), points(y))).map_err(to_error)
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

    /// In Roboto a digit is 1150 of 2048 units wide.
    #[test]
    fn widths_are_those_of_the_font_file() {
        assert!((width("00000", 2048.0) - 5.0 * 1150.0).abs() < 10.0, "{}", width("00000", 2048.0));
    }
}
