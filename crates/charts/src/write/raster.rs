//! Renders drawings as pixels.
use std::sync::{Arc, LazyLock};

use png::{BitDepth, ColorType, Compression, PixelDimensions, Unit};
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use crate::error::Error;
use crate::paint::canvas::{FONT, UNITS_PER_INCH};

/// Resolution in dots per inch, as publishers require for colour images. For line art there is the SVG.
const PRINT: u32 = 300;

/// Only the embedded font, so that no installed font can change a figure.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut database = Database::new();
    database.load_font_data(FONT.to_vec());
    Arc::new(database)
});

/// Parses an SVG. Sizes of the tree are in the SVG's own units.
fn tree(svg: &str) -> Result<Tree, Error> {
    let options = Options {
        dpi: UNITS_PER_INCH as f32,
        font_family: "Roboto".to_owned(),
        fontdb: FONTS.clone(),
        ..Options::default()
    };
    Tree::from_str(svg, &options).map_err(|error| Error::Figure(error.into()))
}

/// Renders on white, since a page that ends within a pixel must not be partly transparent.
fn pixels(svg: &str) -> Result<Pixmap, Error> {
    let tree = tree(svg)?;
    let scale = PRINT as f32 / UNITS_PER_INCH as f32;
    let size = tree.size().to_int_size().scale_by(scale);
    let pixmap = size.and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut pixmap = pixmap.ok_or_else(|| Error::Figure("it is empty or too large".into()))?;
    pixmap.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    Ok(pixmap)
}

/// Encodes a drawing as PNG with its resolution, from which LaTeX computes the printed size.
pub fn png(svg: &str) -> Result<Vec<u8>, Error> {
    let (pixmap, mut bytes) = (pixels(svg)?, Vec::new());
    let opaque: Vec<u8> = pixmap
        .data()
        .as_chunks::<4>()
        .0
        .iter()
        .flat_map(|[red, green, blue, _]| [*red, *green, *blue])
        .collect();
    let mut encoder = png::Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::High);
    let per_meter = (f64::from(PRINT) / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(PixelDimensions { xppu: per_meter, yppu: per_meter, unit: Unit::Meter }));
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&opaque));
    written.map_err(|error| Error::Figure(error.into()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use resvg::usvg::{Group, Node};

    use super::*;
    use crate::chart::{Axis, Chart, Layer, Panel};
    use crate::paint::canvas::SIZE;
    use crate::paint::draw;
    use crate::palette::INK;

    /// 0.125 inch is 37.5 pixels, so the last row is half covered.
    #[test]
    fn a_page_that_ends_within_a_pixel_stays_white() {
        let white = r##"<rect width="600" height="75" fill="#fff"/>"##;
        let size = r#"width="1in" height="0.125in" viewBox="0 0 600 75""#;
        let svg = format!(r#"<svg {size} xmlns="http://www.w3.org/2000/svg">{white}</svg>"#);
        let pixmap = pixels(&svg).unwrap();
        assert!(pixmap.height() >= 37 && pixmap.data().iter().all(|&byte| byte == u8::MAX));
    }

    #[test]
    fn a_png_has_the_pixels_of_the_drawing() {
        let stripe = |place: u32| {
            let (red, grey) = (place % 256, place / 256);
            format!(r#"<rect x="{}" width="1" height="60" fill="rgb({red},{grey},{grey})"/>"#, place + 1)
        };
        let stripes: String = (0..500).map(stripe).collect();
        let size = r#"width="2in" height="0.2in" viewBox="0 0 600 60""#;
        let svg = format!(r#"<svg {size} xmlns="http://www.w3.org/2000/svg">{stripes}</svg>"#);
        let drawn: Vec<u8> =
            pixels(&svg).unwrap().data().chunks_exact(4).flat_map(|rgba| &rgba[..3]).copied().collect();
        let file = png(&svg).unwrap();
        let mut reader = png::Decoder::new(Cursor::new(&file)).read_info().unwrap();
        let mut written = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut written).unwrap();
        assert_eq!(written, drawn);
    }

    /// Collects the texts of a drawing in order, with the boxes around their glyphs: left, right, top and bottom, in points.
    fn glyphs(group: &Group, found: &mut Vec<(String, [f64; 4])>) {
        for node in group.children() {
            match node {
                Node::Group(group) => glyphs(group, found),
                Node::Text(text) => {
                    let area = text.flattened().bounding_box().transform(text.abs_transform()).unwrap();
                    let sides = [area.left(), area.right(), area.top(), area.bottom()];
                    let points = sides.map(|side| f64::from(side) * 72.0 / f64::from(UNITS_PER_INCH));
                    found.push((text.chunks().iter().map(|chunk| chunk.text()).collect(), points));
                }
                _ => {}
            }
        }
    }

    /// `legible` relies on these boxes. Capitals and digits fill them to within a tenth of an em at the sides and a thirtieth above and
    /// below, where round glyphs overshoot flat ones.
    #[test]
    fn texts_fill_their_boxes() {
        let names = |names: [&str; 3]| Axis::named("HEADS", names.map(str::to_owned).to_vec());
        let axes = [names(["H8", "E2", "N3"]), names(["4", "50", "600"])];
        let ends = vec![Layer::Ends(vec![(1.0, "MMM".to_owned(), INK)])];
        let drawing = draw(&Chart::new("", "", "").panels(1, vec![Panel::new(axes, 100.0, ends)]));
        let mut found = Vec::new();
        glyphs(tree(&drawing.svg).unwrap().root(), &mut found);
        assert!(found.len() > 8 && found.len() == drawing.texts.len(), "{found:?}");
        let [along, across] = [1.0 / 10.0, 1.0 / 30.0].map(|share| share * SIZE);
        for ((text, sides), (drawn, glyphs)) in drawing.texts.iter().zip(&found) {
            assert_eq!(text, drawn);
            let is_upright = sides[1] - sides[0] < sides[3] - sides[2] && text.len() > 1;
            let room =
                if is_upright { [across, across, along, along] } else { [along, along, across, across] };
            for (side, room) in room.into_iter().enumerate() {
                let gap = (sides[side] - glyphs[side]).abs();
                assert!(gap < room, "side {side} of {text}: {sides:?} but {glyphs:?}");
            }
        }
    }
}
