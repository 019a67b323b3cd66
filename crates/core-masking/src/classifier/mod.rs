//! An encoder with a classifier on top: an embedding of texts or images, layers of self-attention, and logits made of the first
//! position. Families such as BERT and ViT say what the parts are called and how the classification head is built.
mod checkpoint;
mod config;
mod embedding;
mod family;
mod layer;
mod sweep;

use std::collections::BTreeMap;

use tch::Tensor;

use crate::attention::DistanceBias;
use crate::batch::SegmentBatch;
use crate::disentangled::Disentangled;
use crate::encoder::{EncoderLayer, LayerSettings};
use crate::importance::Attended;
use crate::language_model::Norm;
use crate::layers::{LayerNorm, Linear};
use crate::loss::of_labels;
use crate::model::{GatedModel, ModelConfig};
use crate::relative_positions::T5Buckets;
use crate::{Attention, Error, Gates, ModelDropout, Weights};

pub use checkpoint::Pretrained;
pub use config::{ClassifierConfig, ClassifierOptions, Pooling};
use embedding::Embedding;
pub use embedding::{ImageBatch, ImageShape, ImageSize, Inputs, PatchNames};
pub use family::{
    ClassifierFamily, ClassifierHead, ClassifierNames, DistanceNames, HeadActivation, PositionStart,
};
pub(crate) use layer::Layer;

/// An encoder with a classifier on top.
#[derive(Debug)]
pub struct Classifier {
    config: ClassifierConfig,
    weights: Weights,
    embedding: Embedding,
    pub(crate) layers: Vec<Layer>,
    pub(crate) head: Head,
}

/// Texts or images with their classes, or their values if the model has one output.
#[derive(Debug)]
pub struct LabelledBatch {
    /// The texts or images.
    pub inputs: Inputs,
    /// The class of each example, `[batch]`, integers; or the value of each.
    pub labels: Tensor,
}

/// One or two linear maps to the logits from the first position, or from the mean of all.
#[derive(Debug)]
pub(crate) struct Head {
    entering: Option<Norm>, // of each position
    reads_all: bool,
    pub(crate) first: Option<Linear>,
    activation: HeadActivation,
    norm: Option<LayerNorm>,
    pub(crate) last: Linear,
    drops_input: bool,
}

/// A norm besides those of the layers, with a bias as they have it.
fn norm(config: &ClassifierConfig, weights: &Weights, name: &str) -> Result<LayerNorm, Error> {
    let new = if config.has_bare_norms() { LayerNorm::without_bias } else { LayerNorm::new };
    new(weights, name, config.layer_norm_eps)
}

impl Head {
    fn new(config: &ClassifierConfig, weights: &Weights) -> Result<Self, Error> {
        let ClassifierHead { first, activation, norm, last, drops_input } = config.family.head;
        let first = first.map(|name| Linear::new(weights, name)).transpose()?;
        let last = Linear::new(weights, last)?;
        let entering = config.stack().map(|stack| {
            let names = &stack.family.names;
            Norm::new(&stack, weights, &names.of(names.norm))
        });
        let norm = norm.map(|name| self::norm(config, weights, name)).transpose()?;
        let reads_all = config.options.classifier_pooling == Some(Pooling::Mean);
        Ok(Self { entering: entering.transpose()?, reads_all, first, activation, norm, last, drops_input })
    }

    /// The number of positions that are read, the first ones.
    fn reads(&self, positions: i64) -> i64 {
        if self.reads_all { positions } else { 1 }
    }

    /// Logits `[batch, labels]` from what leaves the last layer: `[batch, queries, d_model]`.
    ///
    /// - `bias`: `[batch, 1, 1, position]`, not 0 at padding
    fn forward(&self, x: &Tensor, bias: &Tensor, dropout: &ModelDropout) -> Tensor {
        let read = x.narrow(1, 0, self.reads(x.size()[1]));
        let read = self.entering.as_ref().map_or_else(|| read.shallow_clone(), |norm| norm.forward(&read));
        let read = if self.reads_all {
            let real = bias.isfinite().view([x.size()[0], -1, 1]).to_kind(x.kind()); // [batch, position, 1]
            (read * &real).sum_dim_intlist(1, false, None) / real.sum_dim_intlist(1, false, None)
        } else {
            read.select(1, 0)
        }; // [batch, d_model]
        let read = if self.drops_input { dropout.classifier.apply(read) } else { read };
        let pooled = self.pool(&read);
        let pooled = self.norm.as_ref().map_or_else(|| pooled.shallow_clone(), |norm| norm.forward(&pooled));
        self.last.forward(&dropout.classifier.apply(pooled))
    }

    /// Output of the first map and its nonlinearity, or `x` itself where there is one map: `[.., d_model]`.
    pub(crate) fn pool(&self, x: &Tensor) -> Tensor {
        let Some(first) = &self.first else { return x.shallow_clone() };
        let x = first.forward(x);
        match self.activation {
            HeadActivation::Tanh => x.tanh(),
            HeadActivation::Relu => x.relu(),
            HeadActivation::Gelu => x.gelu("none"),
        }
    }

    fn multiply_adds(&self) -> u64 {
        self.first.as_ref().map_or(0, Linear::multiply_adds) + self.last.multiply_adds()
    }
}

impl GatedModel for Classifier {
    type Config = ClassifierConfig;
    type Examples = LabelledBatch;

    fn new(config: ClassifierConfig, weights: Weights) -> Result<Self, Error> {
        let (layout, names) = (config.layout(), &config.family.names);
        let settings = LayerSettings { activation: config.hidden_act, epsilon: config.layer_norm_eps };
        let stack = config.stack();
        let layer = |layer| {
            if let Some(stack) = &stack {
                return Layer::before(stack, &weights, layer);
            }
            let heads = layout.module(Attention::SelfAttention, layer);
            let mut layer =
                EncoderLayer::new(&weights, &names.layer(config.stored_layer(layer)), &heads, settings)?;
            let (divisor, table) =
                (layer.attention.divisor, |part| weights.get(&format!("{}.weight", names.of(part))));
            match names.distances {
                None => {}
                Some(DistanceNames::Bias(part)) => {
                    let by_bucket = table(part)?;
                    let buckets = T5Buckets::MPNET.table(by_bucket.device());
                    let bias = DistanceBias { by_bucket, buckets };
                    layer.attention = layer.attention.with_scores(divisor, Some(bias));
                }
                Some(DistanceNames::Embeddings { table: part, norm }) => {
                    let norm = LayerNorm::new(&weights, &names.of(norm), config.layer_norm_eps)?;
                    let buckets = config.deberta_buckets();
                    layer.disentangled =
                        Some(Disentangled::new(table(part)?, norm, buckets, config.longest_text()));
                    layer.attention = layer.attention.with_scores(divisor * Disentangled::TERMS.sqrt(), None);
                }
            }
            Ok(Layer::After(layer))
        };
        Ok(Self {
            embedding: Embedding::new(&config, &weights)?,
            layers: (0..config.num_hidden_layers).map(layer).collect::<Result<_, _>>()?,
            head: Head::new(&config, &weights)?,
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
            // unless all are read, only the first position of the last layer has a gradient
            last_by_example: !self.head.reads_all,
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
    /// A batch of (ids, segments), checked.
    ///
    /// # Errors
    /// If the model reads images, a text has more tokens than the model has positions, or a token or segment lies outside
    /// its table.
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

    /// A batch of images, `[batch, channels, height, width]`, checked.
    ///
    /// # Errors
    /// If the model reads texts, or images of another shape.
    pub fn images(&self, pixels: &Tensor) -> Result<Inputs, Error> {
        let shape = self.config.image();
        let shape = shape.ok_or_else(|| Error::Input("the model reads texts, not images".to_owned()))?;
        let positions = self.config.longest_text();
        Ok(Inputs::Images(ImageBatch::new(pixels, (shape, positions), self.options())?))
    }

    /// An example that any model of these sizes can read.
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

    /// Logits of a batch.
    ///
    /// - `gates`: one row, or one for each example
    /// - `dropout`: off in evaluation
    /// - returns `[batch, labels]`
    pub fn forward(&self, batch: &Inputs, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        self.forward_from(0, &self.embed(batch, dropout), batch, gates, dropout)
    }

    /// Input of the first layer: `[batch, position, d_model]`.
    pub fn embed(&self, batch: &Inputs, dropout: &ModelDropout) -> Tensor {
        dropout.hidden.apply(self.embedding.forward(batch))
    }

    /// Output of layer `layer`, counted from 0: `[batch, position, d_model]`, the shape of `x`, which enters it.
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

    /// Logits `[batch, labels]` from what enters layer `layer`, counted from 0: `x` `[batch, position, d_model]`.
    pub fn forward_from(
        &self,
        layer: usize,
        x: &Tensor,
        batch: &Inputs,
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        let last = self.layers.len() - 1;
        let mut x = x.shallow_clone();
        for layer in layer..last {
            x = self.layer(layer, &x, batch, gates, dropout);
        }
        // The last layer computes no position that the classifier does not read, unless it is looked at.
        let queries = if gates.is_recorded() { x.size()[1] } else { self.head.reads(x.size()[1]) };
        let read = self.layer_at(last, &x, queries, batch, gates, dropout);
        self.head.forward(&read, batch.bias(), dropout)
    }

    /// Multiply-adds of [`forward`](Self::forward) for one example, padded to `positions`: those of matrix products, which
    /// are nearly all.
    pub fn multiply_adds(&self, positions: u64) -> u64 {
        let (last, others) = self.layers.split_last().expect("a model has layers, by validation");
        self.embedding.multiply_adds()
            + others.iter().map(|layer| layer.multiply_adds(positions, positions)).sum::<u64>()
            + last.multiply_adds(positions, self.head.reads(positions as i64) as u64)
            + self.head.multiply_adds()
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
        let added = module.attention().merge(context, gates);
        module.finish(&x.narrow(1, 0, queries), added, Some(gates), dropout)
    }
}
