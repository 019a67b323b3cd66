//! Embeddings of tokens with their positions and segments, or of the patches of an image (Dosovitskiy et al. 2021,
//! <https://arxiv.org/abs/2010.11929>, Equation 1). The layers do not distinguish between them.
use tch::{Device, Kind, Tensor};

use families::classifier::EmbeddingParts;

use super::{ClassifierConfig, ImageShape};
use crate::layers::{Linear, Norm};
use crate::{Error, SegmentBatch};

/// Input of a classifier.
#[derive(Debug)]
pub enum Inputs {
    /// Texts, padded.
    Texts(SegmentBatch),
    /// Images, all of the model's size.
    Images(ImageBatch),
}

/// Images of one size.
#[derive(Debug)]
pub struct ImageBatch {
    /// `[batch, channels, height, width]`, normalised as the model expects.
    pub pixels: Tensor,
    /// `[batch, 1, 1, position]`: zeros, since images have no padding.
    pub bias: Tensor,
}

impl Inputs {
    /// Returns the bias that hides padding: `[batch, 1, 1, position]`, 0 or `-inf`.
    pub fn bias(&self) -> &Tensor {
        match self {
            Self::Texts(texts) => &texts.tokens.bias,
            Self::Images(images) => &images.bias,
        }
    }

    /// Returns the batch size and the number of positions.
    pub fn size(&self) -> [i64; 2] {
        let size = self.bias().size();
        [size[0], size[3]]
    }
}

impl From<SegmentBatch> for Inputs {
    fn from(texts: SegmentBatch) -> Self {
        Self::Texts(texts)
    }
}

impl ImageBatch {
    /// Creates a batch of images, `[batch, channels, height, width]` as in `shape`, for a model with this many `positions`.
    pub(super) fn new(
        pixels: &Tensor,
        (shape, positions): (ImageShape, i64),
        (kind, device): (Kind, Device),
    ) -> Result<Self, Error> {
        let ImageShape { channels, height, width, .. } = shape;
        let (found, wanted) = (pixels.size(), [channels, height, width]);
        if found.len() != 4 || found[1..] != wanted {
            return Err(Error::Input(format!(
                "images are {found:?}, but the model reads [batch, {channels}, {height}, {width}]"
            )));
        }
        let bias = Tensor::zeros([found[0], 1, 1, positions], (kind, device));
        Ok(Self { pixels: pixels.to_kind(kind).to_device(device), bias })
    }
}

#[derive(Debug)]
pub(super) enum Embedding {
    Tokens(TokenEmbedding),
    Patches(PatchEmbedding),
}

#[derive(Debug)]
pub(super) struct TokenEmbedding {
    words: Tensor,             // [vocab, d_model]
    positions: Option<Tensor>, // [max_position, d_model]
    uncounted: Option<i64>,    // padding token, which positions skip
    segments: Option<Tensor>,  // [segments, d_model]
    norm: Norm,
    map: Option<Linear>, // from the embedding size to d_model
}

#[derive(Debug)]
pub(super) struct PatchEmbedding {
    first: Vec<Tensor>, // each [1, 1, d_model]
    kernel: Tensor,     // [d_model, channels, patch, patch]
    bias: Tensor,       // [d_model]
    positions: Tensor,  // [1, position, d_model]
}

impl Embedding {
    pub(super) fn new(config: &ClassifierConfig, parts: EmbeddingParts<Tensor>) -> Self {
        match parts {
            EmbeddingParts::Tokens { words, positions, segments, norm, map } => {
                Self::Tokens(TokenEmbedding {
                    words,
                    positions,
                    uncounted: config.uncounted(),
                    segments,
                    norm: norm.into(),
                    map: map.map(Linear::from),
                })
            }
            EmbeddingParts::Patches { first, kernel, bias, positions } => {
                Self::Patches(PatchEmbedding { first, kernel, bias, positions })
            }
        }
    }

    /// Returns `[batch, position, d_model]`. Panics if a text model is given images, or an image model texts.
    pub(super) fn forward(&self, inputs: &Inputs) -> Tensor {
        match (self, inputs) {
            (Self::Tokens(tokens), Inputs::Texts(batch)) => tokens.forward(batch),
            (Self::Patches(patches), Inputs::Images(batch)) => patches.forward(&batch.pixels),
            _ => panic!("texts for a model of texts, images for a model of images"),
        }
    }

    /// Returns the number of segment types, if the model has segment embeddings.
    pub(super) fn segments(&self) -> Option<i64> {
        match self {
            Self::Tokens(tokens) => tokens.segments.as_ref().map(|table| table.size()[0]),
            Self::Patches(_) => None,
        }
    }

    /// Returns the multiply-adds of the patch projection for one image; table look-ups are free.
    pub(super) fn multiply_adds(&self) -> u64 {
        match self {
            Self::Tokens(_) => 0,
            Self::Patches(patches) => {
                let count = patches.positions.size()[1] as u64 - patches.first.len() as u64;
                count * patches.kernel.numel() as u64
            }
        }
    }
}

impl TokenEmbedding {
    fn forward(&self, batch: &SegmentBatch) -> Tensor {
        let look_up = |table, ids| Tensor::embedding(table, ids, -1, false, false);
        let words = look_up(&self.words, &batch.tokens.ids);
        let sum = match &self.segments {
            Some(segments) => words + look_up(segments, &batch.segments),
            None => words,
        };
        let placed = match &self.positions {
            Some(table) => sum + self.positions(table, &batch.tokens.ids),
            None => sum,
        };
        let normalised = self.norm.forward(&placed);
        self.map.as_ref().map_or_else(|| normalised.shallow_clone(), |map| map.forward(&normalised))
    }

    /// Returns the rows of `table` for `ids`, `[batch, position]`, as `[batch or 1, position, d_model]`.
    fn positions(&self, table: &Tensor, ids: &Tensor) -> Tensor {
        let Some(padding) = self.uncounted else {
            return table.narrow(0, 0, ids.size()[1]).unsqueeze(0);
        };
        let real = ids.not_equal(padding).to_kind(Kind::Int64);
        let rows = real.cumsum(1, Kind::Int64) * real + padding;
        Tensor::embedding(table, &rows, -1, false, false)
    }
}

impl PatchEmbedding {
    /// Embeds `pixels`, `[batch, channels, height, width]`.
    fn forward(&self, pixels: &Tensor) -> Tensor {
        let patch = self.kernel.size()[3];
        let grid = pixels.conv2d(&self.kernel, Some(&self.bias), [patch, patch], [0, 0], [1, 1], 1); // [batch, d_model, rows, columns]
        let patches = grid.flatten(2, 3).transpose(1, 2); // [batch, patch, d_model]
        let batch = patches.size()[0];
        let mut all: Vec<Tensor> =
            self.first.iter().map(|token| token.expand([batch, -1, -1], false)).collect();
        all.push(patches);
        Tensor::cat(&all, 1) + &self.positions
    }
}
