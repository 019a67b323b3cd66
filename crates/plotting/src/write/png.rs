//! Drawings as PNG.
use anyhow::{Context as _, Result};
use png::{ColorType, Compression, Encoder, EncodingError, Filter, PixelDimensions, Unit};

use super::pixels::{self, Pixels};

/// Enough for print; files of 600 are a third larger.
const PIXELS_PER_INCH: u32 = 450;

/// The drawing as PNG, with its print size in the file.
pub fn render(svg: &str) -> Result<Vec<u8>> {
    encode(&pixels::render(svg, PIXELS_PER_INCH)?).context("cannot draw the figure")
}

/// Encodes with the resolution, which LaTeX takes as the size in print.
fn encode(pixels: &Pixels) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixels.width, pixels.height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_compression(Compression::High);
    encoder.set_filter(Filter::NoFilter); // plain areas are smallest as they are
    let per_meter = (f64::from(PIXELS_PER_INCH) / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(PixelDimensions { xppu: per_meter, yppu: per_meter, unit: Unit::Meter }));
    encoder.write_header()?.write_image_data(&pixels.rgb)?;
    Ok(bytes)
}
