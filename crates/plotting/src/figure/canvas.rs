//! A drawing of a given print size, and its files.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::prelude::{SVGBackend, WHITE};
use resvg::{tiny_skia, usvg};

use super::text::{self, FONT};
use crate::Error;
use records::visible::one_line;

/// Units of a drawing, and pixels of a PNG, in one inch.
pub const UNITS_PER_INCH: u32 = 600;

/// Width of one text column in inches, that of the ACL and NeurIPS styles rounded up.
pub const COLUMN_INCHES: f64 = 3.4;

/// Width of the whole text in inches, that of the NeurIPS style and less than that of ACL.
pub const TEXT_INCHES: f64 = 5.5;

/// A part of a drawing in plotters' terms.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A length in printer's points as units of the drawing.
pub fn points(points: f64) -> i32 {
    (points * f64::from(UNITS_PER_INCH) / 72.0).round() as i32
}

fn inches(inches: f64) -> u32 {
    (inches * f64::from(UNITS_PER_INCH)).round() as u32
}

/// The error of a plotters backend as one of this crate.
pub(crate) fn to_error<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> Error {
    Error::Draw(error.to_string())
}

/// A file format for figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Vector graphics, with text that can be selected and edited
    Svg,
    /// Pixels, 600 to the inch
    Png,
}

impl Format {
    /// Extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }
}

/// A finished figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    svg: String,
}

impl Figure {
    /// Draws on white paper of this size in inches. `title` is for screen readers and file managers.
    ///
    /// # Errors
    /// If `draw` fails.
    pub fn draw(
        (width, height): (f64, f64),
        title: &str,
        draw: impl FnOnce(&Area<'_>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        text::register();
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (inches(width), inches(height))).into_drawing_area();
            area.fill(&WHITE).map_err(to_error)?;
            draw(&area)?;
            area.present().map_err(to_error)?;
        }
        Ok(Self { svg: with_print_size(&svg, (width, height), title) })
    }

    /// The figure as SVG.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// The figure as PNG, with its print size in the file.
    ///
    /// # Errors
    /// If the drawing cannot be rendered.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        encode(&self.render()?).map_err(|error| Error::Draw(error.to_string()))
    }

    fn render(&self) -> Result<tiny_skia::Pixmap, Error> {
        let options = usvg::Options {
            dpi: UNITS_PER_INCH as f32,
            font_family: "Roboto".to_owned(),
            fontdb: Arc::new(fonts()),
            ..usvg::Options::default()
        };
        let tree =
            usvg::Tree::from_str(&self.svg, &options).map_err(|error| Error::Draw(error.to_string()))?;
        let size = tree.size().to_int_size();
        let pixmap = tiny_skia::Pixmap::new(size.width(), size.height());
        let mut pixmap = pixmap.ok_or_else(|| Error::Draw("it has no size".to_owned()))?;
        resvg::render(&tree, tiny_skia::Transform::identity(), &mut pixmap.as_mut());
        Ok(pixmap)
    }

    /// Writes `<folder>/<stem>.<extension>` in each format and returns the paths.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path, stem: &str, formats: &[Format]) -> Result<Vec<PathBuf>, Error> {
        let write = |&format: &Format| {
            let bytes = match format {
                Format::Svg => self.svg.clone().into_bytes(),
                Format::Png => self.png()?,
            };
            write_file(folder, &format!("{stem}.{}", format.extension()), &bytes)
        };
        formats.iter().map(write).collect()
    }
}

/// Writes a file into a folder that is made if needed, and returns its path.
///
/// # Errors
/// If that fails.
pub fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    fs::write(&path, bytes).map_err(|source| Error::Write { path: path.clone(), source })?;
    Ok(path)
}

/// The embedded font alone, so that no font of the machine can change a figure.
fn fonts() -> usvg::fontdb::Database {
    let mut database = usvg::fontdb::Database::new();
    database.load_font_data(FONT.to_vec());
    database
}

/// Replaces the size in units by the print size; the `viewBox` keeps the units.
fn with_print_size(svg: &str, (width, height): (f64, f64), title: &str) -> String {
    let units = format!(r#"width="{}" height="{}""#, inches(width), inches(height));
    let print = format!(r#"width="{width}in" height="{height}in""#);
    let title = one_line(title).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    svg.replacen(&units, &print, 1).replacen(">\n", &format!(">\n<title>{title}</title>\n"), 1)
}

/// Encodes without transparency and with the resolution, which LaTeX takes as the size in print.
fn encode(pixmap: &tiny_skia::Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let rgb: Vec<u8> = pixmap.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    let per_meter = (f64::from(UNITS_PER_INCH) / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_meter,
        yppu: per_meter,
        unit: png::Unit::Meter,
    }));
    encoder.write_header()?.write_image_data(&rgb)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::palette::INK;
    use crate::figure::text::TextStyle;
    use plotters::style::text_anchor::HPos;

    fn hello() -> Figure {
        Figure::draw((0.5, 0.25), "a < b\u{1b}", |area| {
            TextStyle::new(8.0, INK, HPos::Left).write(area, "Hello\u{1b}", (20, 100))
        })
        .unwrap()
    }

    #[test]
    fn the_svg_has_its_print_size_and_title() {
        let svg = hello().svg;
        let start = "<svg width=\"0.5in\" height=\"0.25in\" viewBox=\"0 0 300 150\"";
        assert!(svg.starts_with(start), "{svg}");
        assert!(svg.contains("<title>a &lt; b\\u{1b}</title>") && svg.contains("Hello\\u{1b}"), "{svg}");
    }

    #[test]
    fn the_png_has_ink_a_size_and_a_resolution() {
        let bytes = hello().png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
        let info = reader.info().clone();
        assert_eq!((info.width, info.height), (300, 150));
        assert_eq!(info.pixel_dims.unwrap().xppu, 23622); // 600 / 0.0254 m, rounded
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert!(pixels.contains(&38), "no text was drawn");
    }
}
