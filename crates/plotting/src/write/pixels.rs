//! Drawings as pixels, whatever the format of the file.
use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use crate::paint::canvas::{FONT, UNITS_PER_INCH};

/// The embedded font alone, so that no font of the machine can change a figure.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut database = Database::new();
    database.load_font_data(FONT.to_vec());
    Arc::new(database)
});

/// The pixels of a drawing: width, height, and red, green and blue of each, row by row.
pub struct Pixels {
    pub width: u32,
    pub height: u32,
    pub rgb: Vec<u8>,
}

/// Draws with so many pixels to the inch, without transparency.
pub fn render(svg: &str, per_inch: u32) -> Result<Pixels> {
    let options = Options {
        dpi: UNITS_PER_INCH as f32,
        font_family: "Roboto".to_owned(),
        fontdb: FONTS.clone(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).context("cannot draw the figure")?;
    let scale = per_inch as f32 / UNITS_PER_INCH as f32;
    let size = tree.size().to_int_size().scale_by(scale).context("cannot draw the figure: it has no size")?;
    let mut pixmap =
        Pixmap::new(size.width(), size.height()).context("cannot draw the figure: it has no size")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    let rgb = pixmap.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    Ok(Pixels { width: pixmap.width(), height: pixmap.height(), rgb })
}
