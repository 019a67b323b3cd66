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
