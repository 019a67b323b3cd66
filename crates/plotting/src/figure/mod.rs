//! What all figures share: fonts, axes, bins, colours, points, and the two file formats.
//!
//! plotters draws an SVG in units of 1/600 inch, and resvg renders it to PNG with the embedded font, so
//! both files show the same and neither needs a font on the machine. (The bitmap backend of plotters
//! places glyphs without their side bearings, see `draw` in its `style/font/ab_glyph.rs`.)
pub mod axes;
pub mod bins;
pub mod canvas;
pub mod color_bar;
pub mod diverging;
#[cfg(test)]
pub(crate) mod layout;
pub mod legend;
pub mod lines;
pub mod log;
pub mod mark;
pub mod palette;
pub mod panels;
pub mod step;
pub mod text;
pub mod ticks;
