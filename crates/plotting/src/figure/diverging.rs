//! Colours for numbers from -1 to 1: from blue over white to vermillion, apart for colour-blind readers.
use plotters::style::RGBColor;

use super::palette::{BLUE, INK, VERMILLION};

const WHITE: RGBColor = RGBColor(255, 255, 255);

/// The colour of `value`; beyond -1 and 1 that of the end.
pub fn color(value: f64) -> RGBColor {
    let end = if value < 0.0 { BLUE } else { VERMILLION };
    let share = value.abs().min(1.0);
    let mix = |from: u8, to: u8| (f64::from(from) + share * (f64::from(to) - f64::from(from))).round() as u8;
    RGBColor(mix(WHITE.0, end.0), mix(WHITE.1, end.1), mix(WHITE.2, end.2))
}

/// Ink or white, whichever reads better on the colour of `value`.
pub fn text_color(value: f64) -> RGBColor {
    let contrast = |text: RGBColor| {
        let (one, other) = (luminance(text) + 0.05, luminance(color(value)) + 0.05);
        one.max(other) / one.min(other)
    };
    if contrast(INK) >= contrast(WHITE) { INK } else { WHITE }
}

/// Relative luminance of sRGB, 0 to 1 (Web Content Accessibility Guidelines 2.1, <https://www.w3.org/TR/WCAG21/>).
pub(super) fn luminance(RGBColor(red, green, blue): RGBColor) -> f64 {
    let linear = |channel: u8| {
        let share = f64::from(channel) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_palette_and_the_middle_is_white() {
        assert_eq!([-1.0, 0.0, 1.0].map(color), [BLUE, WHITE, VERMILLION]);
        assert_eq!([color(-7.0), color(7.0)], [BLUE, VERMILLION]);
        // Halfway from 255 to 213, 94 and 0.
        assert_eq!(color(0.5), RGBColor(234, 175, 128));
    }

    /// White on black is 21 to 1; 4.5 to 1 is what those guidelines ask of small text, 3 to 1 of large.
    #[test]
    fn text_can_be_read_on_every_colour() {
        for tenth in -10..=10 {
            let value = f64::from(tenth) / 10.0;
            let (text, paper) = (luminance(text_color(value)) + 0.05, luminance(color(value)) + 0.05);
            let contrast = text.max(paper) / text.min(paper);
            assert!(contrast > 3.5, "{value}: {contrast}");
        }
    }
}
