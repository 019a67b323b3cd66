//! An encoder that classifies texts, tokens or images: an embedding, layers of self-attention, and a classification head. Families such as
//! BERT and ViT define tensor names and the classification head.
mod checkpoint;
mod embedding;
mod head;
mod layer;
mod sweep;

use std::collections::BTreeMap;

use tch::Tensor;

use crate::batch::SegmentBatch;
use crate::block::Block;
use crate::importance::Attended;
use crate::layers::Norm;
use crate::loss::of_labels;
use crate::model::GatedModel;
use crate::{Attention, Error, Gates, ModelDropout, Weights};

pub use checkpoint::Pretrained;
use embedding::Embedding;
pub use embedding::{ImageBatch, Inputs};
pub use families::classifier::{ClassifierConfig, ClassifierOptions, ImageShape, ImageSize, Pooling};
pub use families::tables::{Classified, ClassifierFamily, ClassifierHead, DistanceNames, HeadActivation};
use head::Head;
pub(crate) use layer::Layer;

/// An encoder with a classification head.
#[derive(Debug)]
pub struct Classifier {
    config: ClassifierConfig,
    weights: Weights,
    embedding: Embedding,
    pub(crate) layers: Vec<Layer>,
    pub(crate) head: Head,
}

/// Texts or images with their classes (values if the model has one output), or texts with a class for each token.
#[derive(Debug)]
pub struct LabelledBatch {
    /// The texts or images.
    pub inputs: Inputs,
    /// Class (an integer) or value of each example, `[batch]`. For tokens, class or [`UNLABELLED`](crate::loss::UNLABELLED),
    /// `[batch, position]`.
    pub labels: Tensor,
}

impl GatedModel for Classifier {
    type Config = ClassifierConfig;
    type Examples = LabelledBatch;

    fn new(config: ClassifierConfig, weights: Weights) -> Result<Self, Error> {
        let parts = config.parts(&mut &weights)?;
        let layer = |parts| Layer::new(Block::from(parts), &weights);
        Ok(Self {
            embedding: Embedding::new(&config, parts.embedding),
            layers: parts.blocks.into_iter().map(layer).collect(),
            head: Head::new(&config, parts.last_norm.map(Norm::from), parts.head),
            config,
            weights,
        })
    }

    fn config(&self) -> &ClassifierConfig {
        &self.config
    }

    fn weights(&self) -> &Weights {
        &self.weights
    }

    fn losses(&self, batch: &LabelledBatch, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        of_labels(&self.forward(&batch.inputs, gates, dropout), &batch.labels)
    }

    fn attended(&self, batch: &LabelledBatch) -> BTreeMap<Attention, Attended> {
        let bias = batch.inputs.bias();
        let real = bias.isfinite().squeeze_dim(1).squeeze_dim(1); // [batch, position]
        let visible = |layer: &Layer| layer.within_reach(bias).isfinite(); // [batch, 1, 1 or query, key]
        let attended = Attended {
            visible: self.layers.iter().map(visible).collect(),
            excluded: real.zeros_like(),
            // unless all positions are read, only the first position of the last layer has a gradient
            last_by_example: self.head.reads_first(),
            examples: None,
            queries: real,
        };
        BTreeMap::from([(Attention::SelfAttention, attended)])
    }

    fn probe(&self, gates: &Gates) -> Tensor {
        self.forward(&self.probing(), gates, &ModelDropout::OFF)
    }
}

impl Classifier {
    /// Makes a batch from token ids and segment ids.
    ///
    /// # Errors
    /// If the model reads images, a text has more tokens than the model has positions, or a token or segment is outside its table.
    pub fn batch(&self, rows: &[(&[u32], &[u32])]) -> Result<Inputs, Error> {
        if self.config.image().is_some() {
            return Err(Error::Input("the model reads images, not texts".to_owned()));
        }
        let positions = self.config.longest_text() as usize;
        for (ids, segments) in rows {
            if ids.len() > positions {
                return Err(Error::too_long("text", ids.len(), positions));
            }
            let segments = self.embedding.segments().map(|kinds| ("segment", segments, kinds));
            for (what, values, size) in [("token", ids, self.config.vocab_size)].into_iter().chain(segments) {
                if let Some(&id) = values.iter().find(|&&id| i64::from(id) >= size) {
                    return Err(Error::out_of_table(what, id, size));
                }
            }
        }
        Ok(SegmentBatch::new(rows, self.config.pad_token_id, self.options()).into())
    }

    /// Makes a batch of images, `[batch, channels, height, width]`. Fails if the model reads texts, or images of another shape.
    pub fn images(&self, pixels: &Tensor) -> Result<Inputs, Error> {
        let shape = self.config.image();
        let shape = shape.ok_or_else(|| Error::Input("the model reads texts, not images".to_owned()))?;
        let positions = self.config.longest_text();
        Ok(Inputs::Images(ImageBatch::new(pixels, (shape, positions), self.options())?))
    }

    /// Returns an example that any model of these sizes can read.
    fn probing(&self) -> Inputs {
        if let Some(shape) = self.config.image() {
            let pixels = Tensor::arange(shape.values(), self.options()).sin(); // [channels * height * width]
            let pixels = pixels.view([1, shape.channels, shape.height, shape.width]);
            return self.images(&pixels).expect("pixels have the model's shape");
        }
        let most = self.config.longest_text().min(self.config.vocab_size).min(8) as u32;
        let ids: Vec<u32> = (0..most).collect();
        SegmentBatch::new(&[(&ids, &vec![0; ids.len()])], self.config.pad_token_id, self.options()).into()
    }

    /// Computes the logits of a batch.
    ///
    /// - `gates`: one row, or one for each example
    /// - `dropout`: off in evaluation
    /// - returns `[batch, labels]`, or `[batch, position, labels]` for token classification
    pub fn forward(&self, batch: &Inputs, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        let last = self.layers.len() - 1;
        let embedded = self.embed(batch, dropout);
        let x = (0..last).fold(embedded, |x, layer| self.layer(layer, &x, batch, gates, dropout));
        // The last layer computes only positions that the classification head reads, unless something is recorded.
        let queries = if gates.is_recorded() { x.size()[1] } else { self.head.reads(x.size()[1]) };
        let read = self.layer_at(last, &x, queries, batch, gates, dropout);
        self.head.forward(&read, batch.bias(), dropout)
    }

    /// Returns the input of the first layer, `[batch, position, d_model]`.
    pub fn embed(&self, batch: &Inputs, dropout: &ModelDropout) -> Tensor {
        dropout.hidden.apply(self.embedding.forward(batch))
    }

    /// Returns the output of layer `layer`, counted from 0, from its input `x`; both `[batch, position, d_model]`.
    pub fn layer(
        &self,
        layer: usize,
        x: &Tensor,
        batch: &Inputs,
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        self.layer_at(layer, x, x.size()[1], batch, gates, dropout)
    }

    /// Returns the multiply-adds of matrix products, nearly all of the work, in [`forward`](Self::forward) for one example padded to
    /// `positions`.
    pub fn multiply_adds(&self, positions: u64) -> u64 {
        let (last, others) = self.layers.split_last().expect("a model has layers, by validation");
        self.embedding.multiply_adds()
            + others.iter().map(|layer| layer.multiply_adds(positions, positions)).sum::<u64>()
            + last.multiply_adds(positions, self.head.reads(positions as i64) as u64)
            + self.head.multiply_adds(positions)
    }

    fn layer_at(
        &self,
        layer: usize,
        x: &Tensor,
        queries: i64,
        batch: &Inputs,
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        let (module, gates) = (&self.layers[layer], gates.of(Attention::SelfAttention, layer));
        let context = module.context(x, queries, batch.bias(), gates, dropout);
        let merged = module.block.attention.merge(context, gates);
        module.finish(&x.narrow(1, 0, queries), &merged, Some(gates), dropout)
    }
}
