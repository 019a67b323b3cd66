//! Drawings as pixels: figures as PNG, films as GIF.
use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Result, ensure};
use gif::Repeat;
use png::{ColorType, Compression, Filter, PixelDimensions, Unit};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use crate::paint::canvas::{FONT, UNITS_PER_INCH};

/// What printers ask of pictures in colour; lines stay sharp at any size in the SVG.
const PRINT: u32 = 300;

/// Films are for screens.
const SCREEN: u32 = 150;

/// How long a frame stands, and the last one, in hundredths of a second.
const SHOWN: u16 = 80;
const LAST_SHOWN: u16 = 240;

/// The embedded font alone, so that no font of the machine can change a figure.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut database = Database::new();
    database.load_font_data(FONT.to_vec());
    Arc::new(database)
});

/// The pixels of a drawing: width, height, and red, green and blue of each, row by row.
struct Pixels {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

/// Draws with so many pixels to the inch, without transparency.
fn pixels(svg: &str, per_inch: u32) -> Result<Pixels> {
    let options = Options {
        dpi: UNITS_PER_INCH as f32,
        font_family: "Roboto".to_owned(),
        fontdb: FONTS.clone(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).context("cannot draw the figure")?;
    let scale = per_inch as f32 / UNITS_PER_INCH as f32;
    let size = tree.size().to_int_size().scale_by(scale).context("cannot draw the figure: it has no size")?;
    let (width, height) = (size.width(), size.height());
    let mut pixmap = Pixmap::new(width, height).context("cannot draw the figure: it has no size")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    let rgb = pixmap.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    Ok(Pixels { width, height, rgb })
}

/// A drawing as PNG, with the resolution, which LaTeX takes as the size in print.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let (pixels, mut bytes) = (pixels(svg, PRINT)?, Vec::new());
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width, pixels.height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_compression(Compression::High);
    encoder.set_filter(Filter::NoFilter); // plain areas are smallest as they are
    let per_meter = (f64::from(PRINT) / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(PixelDimensions { xppu: per_meter, yppu: per_meter, unit: Unit::Meter }));
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels.rgb));
    written.context("cannot draw the figure")?;
    Ok(bytes)
}

/// Frames that follow each other over and over.
pub fn gif(svgs: &[String]) -> Result<Vec<u8>> {
    let frames = svgs.iter().map(|svg| pixels(svg, SCREEN)).collect::<Result<Vec<_>>>()?;
    let size = |frame: &Pixels| u16::try_from(frame.width).ok().zip(u16::try_from(frame.height).ok());
    let first =
        frames.first().and_then(size).context("cannot draw the film: it has no frame of a size that fits")?;
    let is_one_size = frames.iter().all(|frame| size(frame) == Some(first));
    ensure!(is_one_size, "cannot draw the film: frames differ in size");
    encode(first, &frames).context("cannot draw the film")
}

fn encode((width, height): (u16, u16), frames: &[Pixels]) -> Result<Vec<u8>, gif::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = gif::Encoder::new(&mut bytes, width, height, &[])?;
    encoder.set_repeat(Repeat::Infinite)?;
    for (place, pixels) in frames.iter().enumerate() {
        let delay = if place + 1 == frames.len() { LAST_SHOWN } else { SHOWN };
        encoder.write_frame(&gif::Frame { delay, ..gif::Frame::from_rgb(width, height, &pixels.rgb) })?;
    }
    drop(encoder);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file is read again by the decoder of the same crate.
    #[test]
    fn frames_follow_each_other_and_the_last_stands_longest() {
        let svg = |color: &str| {
            let size = r#"width="1in" height="0.5in" viewBox="0 0 600 300""#;
            let area = format!(r#"<rect width="600" height="300" fill="{color}"/>"#);
            format!(r#"<svg {size} xmlns="http://www.w3.org/2000/svg">{area}</svg>"#)
        };
        let bytes = gif(&[svg("#ff0000"), svg("#0000ff")]).unwrap();
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(&bytes[..]).unwrap();
        assert_eq!((decoder.width(), decoder.height(), decoder.repeat()), (150, 75, Repeat::Infinite));
        let mut found = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            found.push((frame.delay, frame.buffer[..3].to_vec()));
        }
        assert_eq!(found, [(SHOWN, vec![255, 0, 0]), (LAST_SHOWN, vec![0, 0, 255])]);
        assert!(gif(&[]).is_err() && gif(&[svg("#fff"), svg("#fff").replace("0.5in", "1in")]).is_err());
    }
}
