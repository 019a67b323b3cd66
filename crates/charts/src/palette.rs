//! Colours that stay apart for colour-blind readers and in grey (Okabe and Ito 2008, <https://jfly.uni-koeln.de/color/>).
use crate::chart::Color;

/// Background: light, so that it stays apart from all others in grey.
pub const PALE: Color = Color(170, 212, 238);
/// Further series.
pub const SKY: Color = Color(86, 180, 233);
/// First series.
pub const BLUE: Color = Color(0, 114, 178);
/// Second series, and what stands out.
pub const VERMILLION: Color = Color(213, 94, 0);
/// Text on colours, on screens.
const BLACK: Color = Color(0, 0, 0);
/// Axes and text.
pub const INK: Color = Color(38, 38, 38);
/// Text of lesser weight.
pub const GREY: Color = Color(96, 96, 96);
/// Series that is only there to compare with.
pub const SILVER: Color = Color(150, 150, 150);
/// Grid lines, and in legends bands of [`INK`].
pub const LIGHT: Color = Color(222, 222, 222);
/// Paper.
pub const WHITE: Color = Color(255, 255, 255);
/// Further series.
pub const ORANGE: Color = Color(230, 159, 0);
/// Further series.
pub const GREEN: Color = Color(0, 158, 115);
/// Further series.
pub const PURPLE: Color = Color(204, 121, 167);
/// Further series, not among the eight of Okabe and Ito.
pub const BROWN: Color = Color(121, 78, 34);

fn mixed(from: Color, to: Color, share: f64) -> Color {
    let mix = |from: u8, to: u8| (f64::from(from) + share * (f64::from(to) - f64::from(from))).round() as u8;
    Color(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// A colour between light (0) and dark (1) for what has an order: luminance falls all the way, so that neither colour-blind
/// readers nor grey print confuse it.
pub fn ramp(share: f64) -> Color {
    let stops = [ORANGE, VERMILLION, Color(130, 30, 85), Color(25, 15, 60)];
    let at = share.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let first = (at as usize).min(stops.len() - 2);
    mixed(stops[first], stops[first + 1], at - first as f64)
}

/// A colour for a number from -1 to 1: from blue over white to vermillion; beyond these that of the end.
pub fn diverging(value: f64) -> Color {
    mixed(WHITE, if value < 0.0 { BLUE } else { VERMILLION }, value.abs().min(1.0))
}

/// Black or white, whichever reads better on a colour: on every colour one of them has a contrast of at least 4.5.
pub fn text_on(paper: Color) -> Color {
    if contrast(BLACK, paper) >= contrast(WHITE, paper) { BLACK } else { WHITE }
}

fn contrast(text: Color, paper: Color) -> f64 {
    let (one, other) = (luminance(text) + 0.05, luminance(paper) + 0.05);
    one.max(other) / one.min(other)
}

/// Relative luminance of sRGB, 0 to 1 (Web Content Accessibility Guidelines 2.1, <https://www.w3.org/TR/WCAG21/>).
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

    /// White on black is 21 to 1; 4.5 to 1 is what those guidelines ask of small text.
    #[test]
    fn text_can_be_read_on_every_colour_between_the_ends_of_the_palette() {
        assert_eq!([-7.0, -1.0, 0.0, 1.0].map(diverging), [BLUE, BLUE, WHITE, VERMILLION]);
        for tenth in -10..=10 {
            let paper = diverging(f64::from(tenth) / 10.0);
            assert!(contrast(text_on(paper), paper) > 4.5, "{tenth}");
        }
    }
}
