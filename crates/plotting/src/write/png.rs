//! Drawings as pixels.
use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Result};
use png::{ColorType, Compression, Encoder, EncodingError, Filter, PixelDimensions, Unit};
use resvg::usvg::fontdb::Database;
use resvg::{tiny_skia, usvg};

use crate::paint::UNITS_PER_INCH;
use crate::paint::text::FONT;

/// The embedded font alone, so that no font of the machine can change a figure.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut database = Database::new();
    database.load_font_data(FONT.to_vec());
    Arc::new(database)
});

/// The drawing as PNG, with its print size in the file.
pub fn render(svg: &str) -> Result<Vec<u8>> {
    let options = usvg::Options {
        dpi: UNITS_PER_INCH as f32,
        font_family: "Roboto".to_owned(),
        fontdb: FONTS.clone(),
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_str(svg, &options).context("cannot draw the figure")?;
    let size = tree.size().to_int_size();
    let pixmap = tiny_skia::Pixmap::new(size.width(), size.height());
    let mut pixmap = pixmap.context("cannot draw the figure: it has no size")?;
    resvg::render(&tree, tiny_skia::Transform::identity(), &mut pixmap.as_mut());
    encode(&pixmap).context("cannot draw the figure")
}

/// Encodes without transparency and with the resolution, which LaTeX takes as the size in print.
fn encode(pixmap: &tiny_skia::Pixmap) -> Result<Vec<u8>, EncodingError> {
    let rgb: Vec<u8> = pixmap.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(ColorType::Rgb);
    encoder.set_compression(Compression::High);
    encoder.set_filter(Filter::NoFilter); // plain areas are smallest as they are
    let per_meter = (f64::from(UNITS_PER_INCH) / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(PixelDimensions { xppu: per_meter, yppu: per_meter, unit: Unit::Meter }));
    encoder.write_header()?.write_image_data(&rgb)?;
    Ok(bytes)
}
