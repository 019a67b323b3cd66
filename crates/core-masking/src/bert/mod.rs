//! The BERT encoder with a sequence classifier, Devlin et al. (2019), <https://aclanthology.org/N19-1423>:
//! normalisation after each sublayer, learned positions, segments, and a pooler on the first position.
//!
//! Names follow transformers' `BertForSequenceClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.46.0/src/transformers/models/bert/modeling_bert.py>.
mod checkpoint;
mod config;
mod sweep;

use tch::{Device, Kind, Tensor};

use crate::attention::MultiHeadAttention;
use crate::gates::Gate;
use crate::layers::{LayerNorm, Linear};
use crate::pruning::without_heads;
use crate::{Attention, Dropout, Error, Gates, HeadLayout, HeadSet, Removal, SegmentBatch, Weights};

pub use checkpoint::Pretrained;
pub use config::{BertConfig, HiddenActivation};
pub use sweep::Variants;

/// An encoder with a classifier on top.
#[derive(Debug)]
pub struct BertClassifier {
    config: BertConfig,
    weights: Weights,
    embeddings: Embeddings,
    layers: Vec<Layer>,
    pooler: Linear,
    classifier: Linear,
}

/// Where training thins out activations; [`BertDropout::OFF`] in evaluation.
#[derive(Debug)]
pub struct BertDropout {
    /// Of embeddings and of the output of each sublayer.
    pub hidden: Dropout,
    /// Of attention weights.
    pub attention: Dropout,
    /// Of what the classifier sees.
    pub classifier: Dropout,
}

impl BertDropout {
    /// Evaluation.
    pub const OFF: Self = Self { hidden: Dropout::OFF, attention: Dropout::OFF, classifier: Dropout::OFF };

    /// At the rates of the configuration.
    pub fn new(config: &BertConfig, seed: u64) -> Self {
        let stream = |place: u64| seed.wrapping_add(place << 48);
        Self {
            hidden: Dropout::new(config.hidden_dropout_prob, stream(0)),
            attention: Dropout::new(config.attention_probs_dropout_prob, stream(1)),
            classifier: Dropout::new(config.classifier_dropout(), stream(2)),
        }
    }
}

#[derive(Debug)]
struct Embeddings {
    words: Tensor,     // [vocab, d_model]
    positions: Tensor, // [max_position, d_model]
    segments: Tensor,  // [segments, d_model]
    norm: LayerNorm,
}

#[derive(Debug)]
struct Layer {
    attention: MultiHeadAttention,
    attention_norm: LayerNorm,
    activation: HiddenActivation,
    inner: Linear,
    outer: Linear,
    norm: LayerNorm,
}

impl Embeddings {
    fn new(weights: &Weights, epsilon: f64) -> Result<Self, Error> {
        let table = |kind: &str| weights.get(&format!("bert.embeddings.{kind}_embeddings.weight"));
        Ok(Self {
            words: table("word")?,
            positions: table("position")?,
            segments: table("token_type")?,
            norm: LayerNorm::new(weights, "bert.embeddings.LayerNorm", epsilon)?,
        })
    }

    /// Returns `[batch, position, d_model]`.
    fn forward(&self, batch: &SegmentBatch) -> Tensor {
        let look_up = |table, ids| Tensor::embedding(table, ids, -1, false, false);
        let positions = self.positions.narrow(0, 0, batch.tokens.ids.size()[1]);
        let sum =
            look_up(&self.words, &batch.tokens.ids) + look_up(&self.segments, &batch.segments) + positions;
        self.norm.forward(&sum)
    }
}

impl Layer {
    fn new(config: &BertConfig, weights: &Weights, layer: usize) -> Result<Self, Error> {
        let name = format!("bert.encoder.layer.{layer}");
        let heads = (config.num_attention_heads, config.layout().kept(Attention::SelfAttention, layer));
        let norm = |part: &str| LayerNorm::new(weights, &format!("{name}.{part}"), config.layer_norm_eps);
        Ok(Self {
            attention: MultiHeadAttention::new(
                weights,
                &BertConfig::projections(layer),
                (heads.0, &heads.1),
            )?,
            attention_norm: norm("attention.output.LayerNorm")?,
            activation: config.hidden_act,
            inner: Linear::new(weights, &format!("{name}.intermediate.dense"))?,
            outer: Linear::new(weights, &format!("{name}.output.dense"))?,
            norm: norm("output.LayerNorm")?,
        })
    }

    /// The layer's output at the first `queries` positions: `[batch, queries, d_model]`.
    ///
    /// - `x`: `[batch, position, d_model]`, all of which is attended to
    /// - `bias`: `[batch, 1, 1, position]`
    fn forward(
        &self,
        x: &Tensor,
        queries: i64,
        bias: &Tensor,
        gates: Gate<'_>,
        dropout: &BertDropout,
    ) -> Tensor {
        let context = self.context(x, queries, bias, gates, dropout);
        self.finish(x, self.attention.merge(context, gates), dropout)
    }

    /// What each head reads at the first `queries` positions, whatever its gate: `[batch, kept, queries, d_head]`.
    fn context(
        &self,
        x: &Tensor,
        queries: i64,
        bias: &Tensor,
        gates: Gate<'_>,
        dropout: &BertDropout,
    ) -> Tensor {
        let query = x.narrow(1, 0, queries); // [batch, queries, d_model]
        self.attention.context(&query, &self.attention.keys_values(x), bias, gates, &dropout.attention)
    }

    /// The layer's output from what its attention adds; `attended` and the result: `[batch, queries, d_model]`.
    fn finish(&self, x: &Tensor, attended: Tensor, dropout: &BertDropout) -> Tensor {
        let query = x.narrow(1, 0, attended.size()[1]); // [batch, queries, d_model]
        let query = self.attention_norm.forward(&(query + dropout.hidden.apply(attended)));
        let inner = self.inner.forward(&query); // [batch, queries, d_ff]
        let inner = match self.activation {
            HiddenActivation::Gelu => inner.gelu("none"),
            HiddenActivation::GeluNew => inner.gelu("tanh"),
            HiddenActivation::Relu => inner.relu(),
        };
        self.norm.forward(&(query + dropout.hidden.apply(self.outer.forward(&inner))))
    }
}

impl BertClassifier {
    /// A classifier on these tensors, which it shares.
    ///
    /// # Errors
    /// If a tensor is missing.
    pub fn new(config: BertConfig, weights: Weights) -> Result<Self, Error> {
        let layers = (0..config.num_hidden_layers).map(|layer| Layer::new(&config, &weights, layer));
        Ok(Self {
            embeddings: Embeddings::new(&weights, config.layer_norm_eps)?,
            layers: layers.collect::<Result<_, _>>()?,
            pooler: Linear::new(&weights, "bert.pooler.dense")?,
            classifier: Linear::new(&weights, "classifier")?,
            config,
            weights,
        })
    }

    /// Sizes and labels.
    pub fn config(&self) -> &BertConfig {
        &self.config
    }

    /// The heads of the model.
    pub fn layout(&self) -> HeadLayout {
        self.config.layout()
    }

    /// The tensors by name; those of a model in training require gradients.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Kind and device of the weights.
    pub fn options(&self) -> (Kind, Device) {
        (self.embeddings.words.kind(), self.embeddings.words.device())
    }

    /// The same model on the same tensors, for another thread.
    ///
    /// # Errors
    /// Never, since all tensors are there.
    pub fn share(&self) -> Result<Self, Error> {
        Self::new(self.config.clone(), self.weights.share())
    }

    /// The same model with tensors of another kind.
    ///
    /// # Errors
    /// Never, since all tensors are there.
    pub fn to_kind(&self, kind: Kind) -> Result<Self, Error> {
        Self::new(self.config.clone(), self.weights.to_kind(kind))
    }

    /// The model without these heads, which gives the outputs that it gives with them masked.
    ///
    /// # Errors
    /// If it does not have one of them, or no head would be left.
    pub fn without_heads(&self, heads: &HeadSet, removal: Removal) -> Result<Self, Error> {
        let projections = |_, layer| BertConfig::projections(layer);
        let weights = without_heads(&self.weights, &self.layout(), heads, removal, projections)?;
        let config = match removal {
            Removal::Cut => self.config.without_heads(heads),
            Removal::Zeros => self.config.clone(),
        };
        Self::new(config, weights)
    }

    /// A batch of (ids, segments), checked.
    ///
    /// # Errors
    /// If a text has more tokens than the model has positions, or a token or segment lies outside its table.
    pub fn batch(&self, rows: &[(&[u32], &[u32])]) -> Result<SegmentBatch, Error> {
        let positions = self.config.max_position_embeddings as usize;
        for (ids, segments) in rows {
            if ids.len() > positions {
                return Err(Error::TooLong { side: "text", length: ids.len(), positions });
            }
            for (what, values, size) in
                [("token", ids, self.config.vocab_size), ("segment", segments, self.config.type_vocab_size)]
            {
                if let Some(&id) = values.iter().find(|&&id| i64::from(id) >= size) {
                    return Err(Error::OutOfTable { what, id, size });
                }
            }
        }
        Ok(SegmentBatch::new(rows, self.config.pad_token_id, self.options()))
    }

    /// Logits of a batch.
    ///
    /// - `gates`: one row, or one for each text
    /// - `dropout`: off in evaluation
    /// - returns `[batch, labels]`
    pub fn forward(&self, batch: &SegmentBatch, gates: &Gates, dropout: &BertDropout) -> Tensor {
        self.forward_from(0, &self.embed(batch, dropout), batch, gates, dropout)
    }

    /// What enters the first layer: `[batch, position, d_model]`.
    pub fn embed(&self, batch: &SegmentBatch, dropout: &BertDropout) -> Tensor {
        dropout.hidden.apply(self.embeddings.forward(batch))
    }

    /// What leaves layer `layer`, counted from 0: `[batch, position, d_model]`, the shape of `x`, which enters it.
    pub fn layer(
        &self,
        layer: usize,
        x: &Tensor,
        batch: &SegmentBatch,
        gates: &Gates,
        dropout: &BertDropout,
    ) -> Tensor {
        self.layer_at(layer, x, x.size()[1], batch, gates, dropout)
    }

    /// Logits `[batch, labels]` from what enters layer `layer`, counted from 0: `x` `[batch, position, d_model]`.
    pub fn forward_from(
        &self,
        layer: usize,
        x: &Tensor,
        batch: &SegmentBatch,
        gates: &Gates,
        dropout: &BertDropout,
    ) -> Tensor {
        let last = self.layers.len() - 1;
        let mut x = x.shallow_clone();
        for layer in layer..last {
            x = self.layer(layer, &x, batch, gates, dropout);
        }
        // The classifier reads the first position alone, so the last layer computes no other unless it is looked at.
        let queries = if gates.is_recorded() { x.size()[1] } else { 1 };
        let first = self.layer_at(last, &x, queries, batch, gates, dropout);
        self.classify(&first, dropout)
    }

    /// Logits `[batch, labels]` from what leaves the last layer: `[batch, queries, d_model]`, of which the first is read.
    fn classify(&self, x: &Tensor, dropout: &BertDropout) -> Tensor {
        let pooled = self.pooler.forward(&x.select(1, 0)).tanh(); // [batch, d_model]
        self.classifier.forward(&dropout.classifier.apply(pooled))
    }

    /// Multiply-adds of [`forward`](Self::forward) for one text, padded to `positions`: those of matrix products, which
    /// are nearly all.
    pub fn multiply_adds(&self, positions: u64) -> u64 {
        let layer = |layer: &Layer, queries: u64| {
            let feed_forward = layer.inner.multiply_adds() + layer.outer.multiply_adds();
            layer.attention.key_value_multiply_adds(positions)
                + layer.attention.attend_multiply_adds(queries, positions)
                + queries * feed_forward
        };
        let (last, others) = self.layers.split_last().expect("a model has layers, by validation");
        others.iter().map(|all| layer(all, positions)).sum::<u64>()
            + layer(last, 1)
            + self.pooler.multiply_adds()
            + self.classifier.multiply_adds()
    }

    fn layer_at(
        &self,
        layer: usize,
        x: &Tensor,
        queries: i64,
        batch: &SegmentBatch,
        gates: &Gates,
        dropout: &BertDropout,
    ) -> Tensor {
        let gates = gates.of(Attention::SelfAttention, layer);
        self.layers[layer].forward(x, queries, &batch.tokens.bias, gates, dropout)
    }
}
