//! Conversion of examples to classifier inputs: a tokeniser for texts, preprocessing for images.
use std::path::Path;

use core_masking::classifier::{ImageShape, Inputs};
use core_masking::{Classifier, ClassifierConfig, GatedModel};
use corpus::classifier_tokenizer::{ClassifierTokenizer, Encoded};
use corpus::images::ImageProcessor;
use corpus::labelled::{Example, Input};
use tch::Tensor;

use super::encoder::TextTokenizerSpec;
use crate::error::Error;

/// Converts examples to the input of a classifier.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a model has one reader")]
pub(crate) enum Reader {
    Texts(ClassifierTokenizer),
    Images(ImageReader),
}

/// Preprocessing of images, and the shape that it produces.
#[derive(Debug, Clone)]
pub(crate) struct ImageReader {
    processor: ImageProcessor,
    shape: ImageShape,
    pub(super) positions: usize,
}

/// Examples that a [`Reader`] has converted.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each split")]
pub(super) enum Read {
    Texts(Vec<Encoded>),
    Images {
        /// Pixels of each image as bytes, `[channels, height, width]`: a quarter of the memory of the model's input.
        levels: Vec<Vec<u8>>,
        reader: ImageReader,
    },
}

impl Reader {
    pub(super) fn load(
        folder: &Path,
        config: &ClassifierConfig,
        reads_images: bool,
        spec: TextTokenizerSpec,
    ) -> Result<Self, Error> {
        match (config.image(), reads_images) {
            (Some(shape), true) => {
                let processor = ImageProcessor::load(folder, sides(shape))?;
                Ok(Self::Images(ImageReader { processor, shape, positions: config.longest_text() as usize }))
            }
            (None, false) => {
                let length = spec.max_length(Some(config.longest_text()));
                Ok(Self::Texts(ClassifierTokenizer::load(folder, length)?))
            }
            (Some(_), false) => Err(Error::at(
                folder,
                "the model reads images: each split must be a folder of images by class, { images = \"folder\" }",
            )),
            (None, true) => Err(Error::at(folder, "the model reads texts, but the splits are images")),
        }
    }

    /// Returns the default preprocessing for a model that is trained from scratch on images.
    pub(super) fn plain(config: &ClassifierConfig, shape: ImageShape) -> Self {
        let processor = ImageProcessor::plain(sides(shape));
        Self::Images(ImageReader { processor, shape, positions: config.longest_text() as usize })
    }

    /// Writes `tokenizer.json` or `preprocessor_config.json`.
    pub(super) fn save(&self, path: &Path) -> Result<(), Error> {
        match self {
            Self::Texts(tokenizer) => Ok(tokenizer.save(path)?),
            Self::Images(reader) => Ok(reader.processor.save(path)?),
        }
    }

    /// Refuses a tokeniser of another model. Images need no check, since they are resized to the model's shape.
    pub(super) fn check(&self, folder: &Path, model: &Classifier) -> Result<(), Error> {
        let Self::Texts(tokenizer) = self else { return Ok(()) };
        let (found, expected) = (tokenizer.pad(), model.config().pad_token_id);
        if found != expected {
            let fault = format!("the tokenizer pads with token {found}, but the model with {expected}");
            return Err(Error::at(folder, format!("{fault}: they do not match")));
        }
        let (length, positions) = (tokenizer.max_length(), model.config().longest_text());
        if length as i64 > positions {
            let folder = folder.display();
            let found = format!("the model in `{folder}` has {positions} positions");
            return Err(Error::Invalid(format!("tokenizer.max_length is {length}, but {found}")));
        }
        Ok(())
    }

    pub(super) fn tokenizer(&self) -> Result<&ClassifierTokenizer, Error> {
        match self {
            Self::Texts(tokenizer) => Ok(tokenizer),
            Self::Images(_) => Err(Error::Invalid(
                "this is for models that read texts, but the model reads images".to_owned(),
            )),
        }
    }

    pub(super) fn read(&self, examples: &[Example]) -> Result<Read, Error> {
        match self {
            Self::Texts(tokenizer) => {
                let encode = |example: &Example| match &example.input {
                    Input::Pair(first, second) => tokenizer.encode(first, Some(second)),
                    other => tokenizer.encode(&other.first(), None),
                };
                Ok(Read::Texts(examples.iter().map(encode).collect::<Result<_, _>>()?))
            }
            Self::Images(reader) => {
                let read = |example: &Example| match &example.input {
                    Input::Image(image) => reader.processor.read(&image.path),
                    other => reader.processor.read(Path::new(other.first().as_ref())),
                };
                let levels = examples.iter().map(read).collect::<Result<_, _>>()?;
                Ok(Read::Images { levels, reader: reader.clone() })
            }
        }
    }

    /// Converts one text, or the image at this path, to a batch.
    pub(super) fn batch_of_one(&self, model: &Classifier, text: &str) -> Result<Inputs, Error> {
        let one = Example { input: Input::Text(text.to_owned()), label: String::new() };
        self.read(&[one])?.batch(model, &[0])
    }
}

/// `[channels, height, width]`
fn sides(shape: ImageShape) -> [usize; 3] {
    [shape.channels, shape.height, shape.width].map(|side| side as usize)
}

impl Read {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Images { levels, .. } => levels.len(),
        }
    }

    /// Returns the tokens of a text, or the positions of an image.
    pub(super) fn positions(&self, row: usize) -> usize {
        match self {
            Self::Texts(texts) => texts[row].ids.len(),
            Self::Images { reader, .. } => reader.positions,
        }
    }

    /// Returns true if the tokeniser knows at least one word of the texts; always true for images.
    pub(super) fn is_known_to(&self, reader: &Reader) -> bool {
        match (self, reader) {
            (Self::Texts(texts), Reader::Texts(tokenizer)) => {
                texts.iter().any(|text| tokenizer.knows_word_of(text))
            }
            _ => true,
        }
    }

    pub(super) fn batch(&self, model: &Classifier, rows: &[usize]) -> Result<Inputs, Error> {
        match self {
            Self::Texts(texts) => {
                let row = |&row: &usize| {
                    let Encoded { ids, segments } = &texts[row];
                    (ids.as_slice(), segments.as_slice())
                };
                Ok(model.batch(&rows.iter().map(row).collect::<Vec<_>>())?)
            }
            Self::Images { levels, reader } => {
                let ImageShape { channels, height, width, .. } = reader.shape;
                let values: Vec<f32> =
                    rows.iter().flat_map(|&row| reader.processor.values(&levels[row])).collect();
                let pixels = Tensor::from_slice(&values).to_device(model.options().1);
                Ok(model.images(&pixels.view([-1, channels, height, width]))?)
            }
        }
    }
}
