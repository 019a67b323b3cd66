//! Colours that differ for colour-blind readers and in greyscale (Okabe and Ito 2008, <https://jfly.uni-koeln.de/color/>).
use crate::chart::Color;

/// Background: light enough to differ from all other colours in greyscale.
pub const PALE: Color = Color(170, 212, 238);
/// Further series.
pub const SKY: Color = Color(86, 180, 233);
/// First series.
pub const BLUE: Color = Color(0, 114, 178);
/// Second series, and highlights.
pub const VERMILLION: Color = Color(213, 94, 0);
const BLACK: Color = Color(0, 0, 0);
/// Axes and text.
pub const INK: Color = Color(38, 38, 38);
/// Secondary text.
pub const GREY: Color = Color(96, 96, 96);
/// Series for comparison only.
pub const SILVER: Color = Color(150, 150, 150);
/// Grid lines, and bands of [`INK`] in legends.
pub const LIGHT: Color = Color(222, 222, 222);
/// Paper.
pub const WHITE: Color = Color(255, 255, 255);
/// Further series.
pub const ORANGE: Color = Color(230, 159, 0);
/// Further series.
pub const GREEN: Color = Color(0, 158, 115);
/// Further series.
pub const PURPLE: Color = Color(204, 121, 167);
/// Further series, not in the palette of Okabe and Ito.
pub const BROWN: Color = Color(121, 78, 34);

fn mixed(from: Color, to: Color, share: f64) -> Color {
    let mix = |from: u8, to: u8| (f64::from(from) + share * (f64::from(to) - f64::from(from))).round() as u8;
    Color(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// Returns a colour between light (0) and dark (1) for ordered values; luminance falls monotonically, also in greyscale.
pub fn ramp(share: f64) -> Color {
    let stops = [ORANGE, VERMILLION, Color(130, 30, 85), Color(25, 15, 60)];
    let at = share.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let first = (at as usize).min(stops.len() - 2);
    mixed(stops[first], stops[first + 1], at - first as f64)
}

/// Returns a colour for a number from -1 (blue) over 0 (white) to 1 (vermillion); numbers outside are clamped.
pub fn diverging(value: f64) -> Color {
    mixed(WHITE, if value < 0.0 { BLUE } else { VERMILLION }, value.abs().min(1.0))
}

/// Returns black or white, whichever has more contrast with a colour: at least 4.5 for every colour.
pub fn text_on(paper: Color) -> Color {
    if contrast(BLACK, paper) >= contrast(WHITE, paper) { BLACK } else { WHITE }
}

fn contrast(text: Color, paper: Color) -> f64 {
    let (one, other) = (luminance(text) + 0.05, luminance(paper) + 0.05);
    one.max(other) / one.min(other)
}

/// Returns the relative luminance of sRGB, 0 to 1 (Web Content Accessibility Guidelines 2.1, <https://www.w3.org/TR/WCAG21/>).
fn luminance(Color(red, green, blue): Color) -> f64 {
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
    fn a_ramp_only_gets_darker() {
        let steps: Vec<_> = (0..=100).map(|percent| luminance(ramp(f64::from(percent) / 100.0))).collect();
        assert!(steps.windows(2).all(|pair| pair[1] < pair[0]), "{steps:?}");
        assert_eq!((ramp(-1.0), ramp(1.0 / 3.0), ramp(7.0)), (ORANGE, VERMILLION, Color(25, 15, 60)));
    }

    /// White on black has a contrast of 21; the guidelines require 4.5 for small text.
    #[test]
    fn text_can_be_read_on_every_colour_between_the_ends_of_the_palette() {
        assert_eq!([-7.0, -1.0, 0.0, 1.0].map(diverging), [BLUE, BLUE, WHITE, VERMILLION]);
        for tenth in -10..=10 {
            let paper = diverging(f64::from(tenth) / 10.0);
            assert!(contrast(text_on(paper), paper) > 4.5, "{tenth}");
        }
    }
}
