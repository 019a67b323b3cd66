//! Images by class: PNG and JPEG files in folders named after their classes, decoded and converted as in Pillow. PNG agrees exactly, JPEG
//! to within two of 255 levels, since decoders differ.
mod processor;
mod resample;
mod table;

use std::io::BufReader;
use std::path::{Path, PathBuf};

use image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageFormat, ImageReader};
use words::excerpt;

pub use self::processor::ImageProcessor;
pub use self::table::PixelTable;
use crate::labelled::{Example, Input};
use crate::{Error, checksum, guarded};

/// An image file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFile {
    /// Path of the file.
    pub path: PathBuf,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
}

/// Extensions of image files, in lower case.
const ENDINGS: [&str; 3] = ["png", "jpg", "jpeg"];

/// Returns the images in `<folder>/<class>/`, classes and files in alphabetical order; ignores hidden files.
///
/// # Errors
/// If the folder cannot be read, has an image outside a class folder or no class folder, or a class has no image or another file.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = entries(folder)?;
    if let Some(path) = entries.iter().find(|path| path.is_file() && is_image(path)) {
        return Err(Error::of(path, "an image must be in a folder with the name of its class"));
    }
    let mut all = Vec::new();
    for class in entries.iter().filter(|path| path.is_dir()) {
        let files = self::entries(class)?;
        if let Some(other) = files.iter().find(|path| !is_image(path)) {
            return Err(Error::of(other, "not an image: the file name must end with .png, .jpg or .jpeg"));
        }
        if files.is_empty() {
            return Err(Error::of(class, "the folder of this class contains no .png or .jpg image"));
        }
        all.extend(files);
    }
    if all.is_empty() {
        return Err(Error::of(
            folder,
            "it contains no class folders: images must be named <folder>/<class>/<file>.png",
        ));
    }
    Ok(all)
}

/// Reads a folder of images by class; folder names are the labels. Pixels are read later, when they are needed. Fails as [`list`] does.
pub fn read_folder(folder: &Path) -> Result<Vec<Example>, Error> {
    let example = |path: PathBuf| {
        let label = name(path.parent().unwrap_or(folder))?;
        let sha256 = checksum::of_file(&path, false)?;
        Ok(Example { input: Input::Image(ImageFile { path, sha256 }), label })
    };
    list(folder)?.into_iter().map(example).collect()
}

fn is_image(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

fn name(path: &Path) -> Result<String, Error> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| Error::of(path, "the name of a class must be UTF-8"))
}

/// Returns the files and folders that are not hidden, in alphabetical order.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let fault = Error::reading(folder);
    let mut paths = Vec::new();
    for entry in folder.read_dir().map_err(&fault)? {
        let entry = entry.map_err(&fault)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Pixel levels of an image, 0 to 255.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Levels {
    channels: usize,
    height: usize,
    width: usize,
    /// `[channels, height, width]`
    values: Vec<u8>,
}

impl Levels {
    /// Decodes a file of any colour type to RGB (3 channels) or greyscale (1) like Pillow's `convert`: drops transparency, and converts
    /// colours to grey by ITU-R 601. Refuses CMYK colours and more than 8 bits per channel.
    fn open(path: &Path, channels: usize) -> Result<Self, Error> {
        let image = guarded(|| decode(path), |fault| torn(path, &fault))?;
        let (width, height) = (image.width() as usize, image.height() as usize);
        let values = match channels {
            1 => grey(image),
            _ => planes(&image.into_rgb8()),
        };
        Ok(Self { channels, height, width, values })
    }
}

fn torn(path: &Path, reason: &str) -> Error {
    Error::of(path, format!("not a complete PNG or JPEG image ({})", excerpt(reason)))
}

fn decode(path: &Path) -> Result<DynamicImage, Error> {
    let file = durable::open_regular(path).map_err(Error::reading(path))?;
    let reader =
        ImageReader::new(BufReader::new(file)).with_guessed_format().map_err(Error::reading(path))?;
    if !matches!(reader.format(), Some(ImageFormat::Png | ImageFormat::Jpeg)) {
        return Err(torn(path, "its content has a different format"));
    }
    if reader.format() == Some(ImageFormat::Jpeg) {
        check_jpeg(path)?;
    }
    let decoder = reader.into_decoder().map_err(|fault| torn(path, &fault.to_string()))?;
    if let ExtendedColorType::L16
    | ExtendedColorType::La16
    | ExtendedColorType::Rgb16
    | ExtendedColorType::Rgba16 = decoder.original_color_type()
    {
        return Err(Error::of(path, "an image with 16 bits per channel; at most 8 are supported"));
    }
    DynamicImage::from_decoder(decoder).map_err(|fault| torn(path, &fault.to_string()))
}

/// Refuses a JPEG file with four components, which the decoder would convert differently from Pillow, and a truncated one, whose missing
/// part the decoder would paint grey.
fn check_jpeg(path: &Path) -> Result<(), Error> {
    let bytes = std::fs::read(path).map_err(Error::reading(path))?;
    let mut rest = bytes.get(2..).unwrap_or_default();
    while let [0xff, marker, high, low, ..] = *rest {
        let length = match marker {
            0xff => 1, // fill byte
            // start of frame: length, precision, height and width precede the number of components
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf if rest.get(9) == Some(&4) => {
                let fault = "a JPEG image with CMYK colours; only RGB and greyscale are supported";
                return Err(Error::of(path, fault));
            }
            // start of scan: in compressed pixels, 0xff is followed by 0 unless it begins a marker
            0xda if rest.windows(2).any(|pair| pair == [0xff, 0xd9]) => return Ok(()),
            0xda => break,
            _ => 2 + usize::from(u16::from_be_bytes([high, low])),
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    Err(torn(path, "its end is missing"))
}

/// Returns the planes of an RGB image: `[channels, height, width]`.
fn planes(image: &image::RgbImage) -> Vec<u8> {
    (0..3).flat_map(|channel| image.as_raw().iter().skip(channel).step_by(3).copied()).collect()
}

/// Converts to luma by ITU-R 601 in Pillow's fixed point: <https://github.com/python-pillow/Pillow/blob/11.0.0/src/libImaging/Convert.c>.
fn grey(image: DynamicImage) -> Vec<u8> {
    match image {
        DynamicImage::ImageLuma8(image) => image.into_raw(),
        DynamicImage::ImageLumaA8(image) => image.into_raw().into_iter().step_by(2).collect(),
        other => {
            let luma = |pixel: &image::Rgb<u8>| {
                let [red, green, blue] = pixel.0.map(u32::from);
                ((red * 19_595 + green * 38_470 + blue * 7_471 + 0x8000) >> 16) as u8
            };
            other.into_rgb8().pixels().map(luma).collect()
        }
    }
}

#[cfg(test)]
mod tests;
