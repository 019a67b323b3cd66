//! Colours that stay apart for colour-blind readers and in grey (Okabe and Ito 2008,
//! <https://jfly.uni-koeln.de/color/>).
use plotters::style::RGBColor;

/// Bars, light enough for a line across them.
pub const SKY: RGBColor = RGBColor(86, 180, 233);
/// First series.
pub const BLUE: RGBColor = RGBColor(0, 114, 178);
/// Reference lines and second series.
pub const VERMILLION: RGBColor = RGBColor(213, 94, 0);
/// What stands out, with an outline.
pub const YELLOW: RGBColor = RGBColor(240, 228, 66);
/// Axes and text.
pub const INK: RGBColor = RGBColor(38, 38, 38);
/// Text of lesser weight.
pub const GREY: RGBColor = RGBColor(96, 96, 96);
/// Grid lines.
pub const LIGHT: RGBColor = RGBColor(222, 222, 222);
/// Further series.
pub const ORANGE: RGBColor = RGBColor(230, 159, 0);
/// Further series.
pub const GREEN: RGBColor = RGBColor(0, 158, 115);
/// Further series.
pub const PURPLE: RGBColor = RGBColor(204, 121, 167);
/// Further series, not among the eight of Okabe and Ito.
pub const BROWN: RGBColor = RGBColor(121, 78, 34);
/// What is only there to compare with.
pub const SILVER: RGBColor = RGBColor(150, 150, 150);

/// A colour between light (0) and dark (1) for what has an order: luminance falls all the way, so that neither colour-blind
/// readers nor grey print confuse it.
pub fn ramp(share: f64) -> RGBColor {
    let stops = [ORANGE, VERMILLION, RGBColor(130, 30, 85), RGBColor(25, 15, 60)];
    let at = share.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let first = (at as usize).min(stops.len() - 2);
    let mix = |from: u8, to: u8| {
        (f64::from(from) + (at - first as f64) * (f64::from(to) - f64::from(from))).round() as u8
    };
    let (from, to) = (stops[first], stops[first + 1]);
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::diverging::luminance;

    #[test]
    fn a_ramp_only_gets_darker() {
        let steps: Vec<_> = (0..=100).map(|percent| luminance(ramp(f64::from(percent) / 100.0))).collect();
        assert!(steps.windows(2).all(|pair| pair[1] < pair[0]), "{steps:?}");
        // Of 10 steps each is darker than the one before by a tenth at least, to the eye.
        assert!(
            steps
                .chunks(10)
                .map(|tenth| tenth[0])
                .is_sorted_by(|one, next| next + 0.05 < 0.95 * (one + 0.05))
        );
        assert_eq!((ramp(-1.0), ramp(1.0 / 3.0), ramp(7.0)), (ORANGE, VERMILLION, RGBColor(25, 15, 60)));
    }
}
