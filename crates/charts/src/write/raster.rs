//! Drawings as pixels: figures as PNG, films as GIF.
use std::sync::{Arc, LazyLock};

use gif::Repeat;
use png::{BitDepth, ColorType, Compression, Filter, PixelDimensions, Unit};
use quantizr::{Image, QuantizeResult};
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use crate::error::Error;
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

/// The drawing as resvg reads it, in its own units.
fn tree(svg: &str) -> Result<Tree, Error> {
    let options = Options {
        dpi: UNITS_PER_INCH as f32,
        font_family: "Roboto".to_owned(),
        fontdb: FONTS.clone(),
        ..Options::default()
    };
    Tree::from_str(svg, &options).map_err(Error::Figure)
}

/// Draws with this many pixels to the inch, on white: where a page ends within a pixel, that must not be transparent in part.
fn pixels(svg: &str, per_inch: u32) -> Result<Pixmap, Error> {
    let tree = tree(svg)?;
    let scale = per_inch as f32 / UNITS_PER_INCH as f32;
    let size = tree.size().to_int_size().scale_by(scale).ok_or(Error::Size)?;
    let mut pixmap = Pixmap::new(size.width(), size.height()).ok_or(Error::Size)?;
    pixmap.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    Ok(pixmap)
}

/// At most 256 colours, red, green and blue of each, and for each pixel the place of its own: the colours of the picture if they
/// are so few, else some that stand for similar ones. That is mostly where colours blend, at the edges of lines and letters; cells
/// of large heat maps change a little too.
fn indexed(pixmap: &Pixmap) -> (Vec<u8>, Vec<u8>) {
    let (width, height) = (pixmap.width() as usize, pixmap.height() as usize);
    let image = Image::new(pixmap.data(), width, height).expect("a pixel has four bytes");
    let mut colors = QuantizeResult::quantize(&image, &quantizr::Options::default());
    colors.set_dithering_level(0.0).expect("0 is a level"); // plain areas stay plain
    // The search is slow: once for each run of equal pixels is enough.
    let runs: Vec<&[[u8; 4]]> = pixmap.data().as_chunks().0.chunk_by(|one, next| one == next).collect();
    let firsts: Vec<[u8; 4]> = runs.iter().map(|run| run[0]).collect();
    let image = Image::new(firsts.as_flattened(), firsts.len(), 1).expect("a pixel has four bytes");
    let mut of_runs = vec![0; firsts.len()];
    colors.remap_image(&image, &mut of_runs).expect("each pixel has a place");
    let places = runs.iter().zip(of_runs).flat_map(|(run, place)| std::iter::repeat_n(place, run.len()));
    let palette = colors.get_palette();
    let used = &palette.entries[..palette.count as usize];
    (used.iter().flat_map(|color| [color.r, color.g, color.b]).collect(), places.collect())
}

/// A drawing as PNG, with the resolution, which LaTeX takes as the size in print. A palette halves the file.
pub fn png(svg: &str) -> Result<Vec<u8>, Error> {
    let (pixmap, mut bytes) = (pixels(svg, PRINT)?, Vec::new());
    let (palette, places) = indexed(&pixmap);
    let mut encoder = png::Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_palette(palette);
    encoder.set_compression(Compression::High);
    encoder.set_filter(Filter::NoFilter); // plain areas are smallest as they are
    let per_meter = (f64::from(PRINT) / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(PixelDimensions { xppu: per_meter, yppu: per_meter, unit: Unit::Meter }));
    encoder.write_header().and_then(|mut writer| writer.write_image_data(&places))?;
    Ok(bytes)
}

/// Frames that follow each other over and over.
///
/// # Panics
/// If there is none, or they are not of one size.
pub fn gif(svgs: &[String]) -> Result<Vec<u8>, Error> {
    let frames = svgs.iter().map(|svg| pixels(svg, SCREEN)).collect::<Result<Vec<_>, _>>()?;
    let size = |frame: &Pixmap| [frame.width(), frame.height()];
    assert!(frames.windows(2).all(|pair| size(&pair[0]) == size(&pair[1])), "frames differ in size");
    let [Ok(width), Ok(height)] = size(&frames[0]).map(u16::try_from) else { return Err(Error::Size) };
    encode((width, height), &frames).map_err(Error::Gif)
}

fn encode((width, height): (u16, u16), frames: &[Pixmap]) -> Result<Vec<u8>, gif::EncodingError> {
    let last = frames.len() - 1;
    let mut encoder = gif::Encoder::new(Vec::new(), width, height, &[])?;
    encoder.set_repeat(Repeat::Infinite)?;
    for (place, pixmap) in frames.iter().enumerate() {
        let delay = if place == last { LAST_SHOWN } else { SHOWN };
        let (palette, pixels) = indexed(pixmap);
        let frame = gif::Frame::from_palette_pixels(width, height, pixels, palette, None);
        encoder.write_frame(&gif::Frame { delay, ..frame })?;
    }
    encoder.into_inner()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Cursor;

    use resvg::usvg::{Group, Node};

    use super::*;
    use crate::chart::{Axis, Chart, Layer, Panel};
    use crate::paint::canvas::SIZE;
    use crate::paint::draw;
    use crate::palette::INK;

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
    }

    /// 0.25 of an inch are 37.5 pixels, so that the last row is drawn by half.
    #[test]
    fn a_page_that_ends_within_a_pixel_stays_white() {
        let white = r##"<rect width="600" height="150" fill="#fff"/>"##;
        let size = r#"width="1in" height="0.25in" viewBox="0 0 600 150""#;
        let svg = format!(r#"<svg {size} xmlns="http://www.w3.org/2000/svg">{white}</svg>"#);
        let pixmap = pixels(&svg, SCREEN).unwrap();
        assert!(pixmap.height() >= 37 && pixmap.data().iter().all(|&byte| byte == u8::MAX));
    }

    /// The pixels of a PNG file: red, green and blue.
    fn decoded(png: &[u8]) -> Vec<u8> {
        let mut decoder = png::Decoder::new(Cursor::new(png));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut rgb).unwrap();
        rgb
    }

    /// A drawing of this many stripes of different reds, on white.
    fn stripes(number: usize) -> String {
        let stripe = |place: usize| {
            let (x, red, grey) = (place + 1, place % 256, place / 256);
            format!(r#"<rect x="{x}" width="1" height="60" fill="rgb({red},{grey},{grey})"/>"#)
        };
        let stripes: String = (0..number).map(stripe).collect();
        let size = r#"width="2in" height="0.2in" viewBox="0 0 600 60""#;
        let white = r##"<rect width="600" height="60" fill="#fff"/>"##;
        format!(r#"<svg {size} xmlns="http://www.w3.org/2000/svg">{white}{stripes}</svg>"#)
    }

    #[test]
    fn a_palette_keeps_256_colors_and_comes_near_to_more() {
        for (number, most) in [(255, 0), (500, 2)] {
            let svg = stripes(number);
            let pixmap = pixels(&svg, PRINT).unwrap();
            let drawn: Vec<u8> = pixmap.data().chunks_exact(4).flat_map(|rgba| &rgba[..3]).copied().collect();
            let written = decoded(&png(&svg).unwrap());
            let colors: BTreeSet<&[u8]> = drawn.chunks_exact(3).collect();
            assert_eq!((colors.len(), drawn.len()), (number + 1, written.len()));
            let gap = drawn.iter().zip(&written).map(|(one, other)| one.abs_diff(*other)).max().unwrap();
            assert!(gap <= most, "{number} colours: {gap}");
        }
    }

    /// The texts of a drawing, in its order, with the boxes around their glyphs: left, right, top and bottom, in points.
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

    /// `legible` judges a drawing by these boxes. Capitals and digits fill them, but for at most a tenth of an em beside them, and a
    /// thirtieth above and below, where round ones are larger than flat ones.
    #[test]
    fn texts_are_where_their_boxes_say() {
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
