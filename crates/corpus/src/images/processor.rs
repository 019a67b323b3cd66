//! Image preprocessing as `preprocessor_config.json` describes it: resizing, cropping, rescaling and normalisation, in this order, as in
//! the slow image processors of transformers
//! (<https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/vit/image_processing_vit.py>).
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use words::excerpt;

use super::Levels;
use super::resample::Filter;
use crate::{Error, foreign};

/// Image preprocessing for a model.
#[derive(Debug, Clone)]
pub struct ImageProcessor {
    settings: Settings,
    filter: Filter,
    resize: Option<[usize; 2]>,
    crop: Option<[usize; 2]>,
    /// `[channels, height, width]` that the model reads
    shape: [usize; 3],
    /// Normalised value of each level, per channel.
    values: Vec<[f32; 256]>,
}

const FILE: &str = "preprocessor_config.json";

/// Entries of the file, with the defaults of `ViTImageProcessor`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
struct Settings {
    #[serde(alias = "feature_extractor_type")]
    image_processor_type: String,
    do_resize: bool,
    size: Size,
    resample: u64,
    do_center_crop: bool,
    crop_size: Option<Size>,
    do_rescale: bool,
    rescale_factor: f64,
    do_normalize: bool,
    image_mean: Vec<f32>,
    image_std: Vec<f32>,
}

/// Height and width in pixels, or one number for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number of pixels, or { \"height\": .., \"width\": .. }")]
enum Size {
    Square(usize),
    Sides { height: usize, width: usize },
}

impl Size {
    fn sides(self) -> [usize; 2] {
        match self {
            Self::Square(side) => [side; 2],
            Self::Sides { height, width } => [height, width],
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image_processor_type: "ViTImageProcessor".to_owned(),
            do_resize: true,
            size: Size::Square(224),
            resample: 2,
            do_center_crop: false,
            crop_size: None,
            do_rescale: true,
            rescale_factor: 1.0 / 255.0,
            do_normalize: true,
            image_mean: vec![0.5; 3],
            image_std: vec![0.5; 3],
        }
    }
}

/// Defaults of `DeiTImageProcessor` that differ from `ViTImageProcessor`.
const DEIT: &str = r#"{"size": 256, "resample": 3, "do_center_crop": true, "crop_size": 224}"#;

/// Supported processors, without their suffixes; they compute alike.
const KNOWN: [&str; 2] = ["ViT", "DeiT"];

impl ImageProcessor {
    /// Reads `preprocessor_config.json` from a model folder; refuses images of another shape than `shape`, `[channels, height, width]`.
    pub fn load(folder: &Path, shape: [usize; 3]) -> Result<Self, Error> {
        let path = folder.join(FILE);
        if !path.exists() {
            let fault = "the file is missing: it sets how images are resized and normalised; transformers writes it with \
                 ViTImageProcessor(...).save_pretrained(folder)";
            return Err(Error::of(&path, fault));
        }
        let text = foreign::read_text(&path)?;
        let settings = parse(&text).map_err(|fault| Error::of(&path, fault))?;
        Self::new(settings, shape).map_err(|fault| Error::of(&path, fault))
    }

    /// Returns a processor that resizes bilinearly to the model's size and maps levels to -1 to 1, the defaults of `ViTImageProcessor`. No
    /// side may be 0.
    pub fn plain(shape: [usize; 3]) -> Self {
        let [channels, height, width] = shape;
        let half = vec![0.5; channels];
        let size = Size::Sides { height, width };
        let settings = Settings { size, image_mean: half.clone(), image_std: half, ..Settings::default() };
        Self::new(settings, shape).expect("the defaults fit any shape")
    }

    fn new(settings: Settings, shape: [usize; 3]) -> Result<Self, String> {
        let filter = Filter::numbered(settings.resample).ok_or_else(|| {
            format!("resample is {}; it must be from 0 to 5, as in Pillow", settings.resample)
        })?;
        let resize = settings.do_resize.then(|| settings.size.sides());
        let crop = settings.crop_size.filter(|_| settings.do_center_crop).map(Size::sides);
        let [channels, height, width] = shape;
        if let Some([found_height, found_width]) = crop.or(resize).filter(|sides| *sides != [height, width]) {
            return Err(format!(
                "it makes images of {found_height} × {found_width} pixels, but the model reads {height} × {width}"
            ));
        }
        if let (Some(crop), Some(whole)) = (crop, resize)
            && crop.iter().zip(whole).any(|(crop, whole)| *crop > whole)
        {
            return Err(format!("crop_size {crop:?} is larger than size {whole:?}"));
        }
        let values =
            (0..channels).map(|channel| settings.values(channel, channels)).collect::<Result<_, _>>()?;
        Ok(Self { settings, filter, resize, crop, shape, values })
    }

    /// Writes `preprocessor_config.json`.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(&self.settings).expect("settings are JSON");
        Ok(durable::write(path, text + "\n")?)
    }

    /// Returns the name of the file that [`load`](Self::load) reads.
    pub fn file_name() -> &'static str {
        FILE
    }

    /// Reads an image as levels from 0 to 255, `[channels, height, width]` of the model.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let [channels, height, width] = self.shape;
        let mut levels = Levels::open(path, channels)?;
        if let Some([height, width]) = self.resize {
            levels = levels.resized(height, width, self.filter);
        }
        if let Some([height, width]) = self.crop {
            let found = [levels.height, levels.width];
            levels = levels.cropped(height, width).ok_or_else(|| {
                Error::of(
                    path,
                    format!("{found:?} pixels are fewer than crop_size [{height}, {width}] requires"),
                )
            })?;
        }
        if [levels.height, levels.width] != [height, width] {
            let (found_height, found_width) = (levels.height, levels.width);
            return Err(Error::of(
                path,
                format!(
                    "{found_height} × {found_width} pixels, but the model reads {height} × {width} and do_resize is false"
                ),
            ));
        }
        Ok(levels.values)
    }

    /// Returns the normalised pixel values of `levels`, `[channels, height, width]`.
    pub fn values<'a>(&'a self, levels: &'a [u8]) -> impl Iterator<Item = f32> + 'a {
        let plane = self.shape[1] * self.shape[2];
        let planes = levels.chunks_exact(plane).zip(&self.values);
        planes.flat_map(|(plane, values)| plane.iter().map(|&level| values[usize::from(level)]))
    }
}

fn parse(text: &str) -> Result<Settings, String> {
    let mut json: serde_json::Map<String, Value> = foreign::parse_json(text)?;
    let names = ["image_processor_type", "feature_extractor_type"];
    let name = names.iter().find_map(|name| json.get(*name)?.as_str());
    let endings = ["ImageProcessorFast", "ImageProcessor", "FeatureExtractor"];
    let family = |name: &str| endings.iter().find_map(|ending| name.strip_suffix(ending).map(str::to_owned));
    let family =
        name.map_or(Some("ViT".to_owned()), family).filter(|family| KNOWN.contains(&family.as_str()));
    let Some(family) = family else {
        let found = excerpt(name.unwrap_or_default());
        return Err(format!("{found} is not supported; ViTImageProcessor and DeiTImageProcessor are"));
    };
    json.retain(|_, value| !value.is_null()); // null means the default, as in transformers
    if family == "DeiT" {
        let defaults: serde_json::Map<String, Value> = serde_json::from_str(DEIT).expect("defaults are JSON");
        for (name, value) in defaults {
            json.entry(name).or_insert(value);
        }
    }
    json.insert(names[0].to_owned(), format!("{family}ImageProcessor").into());
    json.remove(names[1]);
    serde_json::from_value(Value::Object(json)).map_err(|fault| excerpt(&fault.to_string()))
}

impl Settings {
    /// Returns the value of each level in a channel. As in transformers, rescales in double and normalises in single precision.
    fn values(&self, channel: usize, channels: usize) -> Result<[f32; 256], String> {
        for (name, list) in [("image_mean", &self.image_mean), ("image_std", &self.image_std)] {
            if self.do_normalize && list.len() != channels {
                let (found, wanted) = (list.len(), words::count(channels, "channel"));
                return Err(format!("{name} has {found} numbers, but the model reads {wanted}"));
            }
        }
        if self.do_normalize && self.image_std[channel] == 0.0 {
            return Err("image_std must not contain 0".to_owned());
        }
        let value = |level: usize| {
            let factor = if self.do_rescale { self.rescale_factor } else { 1.0 };
            let value = (level as f64 * factor) as f32;
            if self.do_normalize {
                (value - self.image_mean[channel]) / self.image_std[channel]
            } else {
                value
            }
        };
        Ok(std::array::from_fn(value))
    }
}

impl Levels {
    /// Returns the centre of the image; `None` if the image is smaller.
    fn cropped(&self, height: usize, width: usize) -> Option<Self> {
        let (top, left) = (self.height.checked_sub(height)? / 2, self.width.checked_sub(width)? / 2);
        let planes = self.values.chunks_exact(self.height * self.width);
        let rows = planes.flat_map(|plane| plane.chunks_exact(self.width).skip(top).take(height));
        let values = rows.flat_map(|row| row[left..left + width].iter().copied()).collect();
        Some(Self { channels: self.channels, height, width, values })
    }
}
