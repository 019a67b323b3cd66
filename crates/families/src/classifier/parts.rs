//! The tensors of a classifier, assembled into blocks.
use super::config::ClassifierConfig;
use crate::buckets::T5Buckets;
use crate::config::ModelConfig;
use crate::parts::{
    self, Block, Distances, FeedForward, Inventory, Linear, Module, Norm, NormKind, Normalisation, Norms,
    Taken, Tensors,
};
use crate::tables::{ClassifierHead, DistanceNames};
use heads::{Attention, HeadLayout};

/// Parts of a classifier.
#[derive(Debug)]
pub struct ClassifierParts<T> {
    /// The embedding layer.
    pub embedding: EmbeddingParts<T>,
    /// The layers.
    pub blocks: Vec<Block<T>>,
    /// Norm after the last layer.
    pub last_norm: Option<Norm<T>>,
    /// The classification head.
    pub head: HeadParts<T>,
}

/// Embedding layer.
#[derive(Debug)]
pub enum EmbeddingParts<T> {
    /// Token embeddings.
    Tokens {
        /// `[vocab, width]`
        words: T,
        /// `[max_position, width]`
        positions: Option<T>,
        /// `[segments, width]`
        segments: Option<T>,
        /// Norm of the sum.
        norm: Norm<T>,
        /// Projection from narrower embeddings.
        map: Option<Linear<T>>,
    },
    /// Embeddings of image patches.
    Patches {
        /// Learned positions before the patches, each `[1, 1, d_model]`.
        first: Vec<T>,
        /// `[d_model, channels, patch, patch]`
        kernel: T,
        /// `[d_model]`
        bias: T,
        /// `[1, position, d_model]`
        positions: T,
    },
}

/// The classification head.
#[derive(Debug)]
pub struct HeadParts<T> {
    /// The first map; `None` if the head has only one.
    pub first: Option<Linear<T>>,
    /// Norm after its activation.
    pub norm: Option<Norm<T>>,
    /// The last map, `[classes, d_model]`.
    pub last: Linear<T>,
}

impl ClassifierConfig {
    /// Returns the tensors that a pretrained encoder may lack: the classification head.
    pub fn head_inventory(&self) -> Inventory {
        parts::inventory(|tensors| self.head_parts(tensors))
    }

    /// Assembles the parts of the model.
    pub fn parts<S: Tensors>(&self, tensors: &mut S) -> Taken<ClassifierParts<S::Tensor>, S> {
        let (stack, layout) = (self.stack(), self.layout());
        Ok(ClassifierParts {
            embedding: self.embedding_parts(tensors)?,
            blocks: match &stack {
                Some(stack) => stack.blocks(tensors)?,
                None => (0..self.num_hidden_layers)
                    .map(|layer| self.post_norm_block(tensors, &layout, layer))
                    .collect::<Result<_, _>>()?,
            },
            last_norm: stack.map(|stack| stack.last_norm(tensors)).transpose()?,
            head: self.head_parts(tensors)?,
        })
    }

    fn embedding_parts<S: Tensors>(&self, tensors: &mut S) -> Taken<EmbeddingParts<S::Tensor>, S> {
        let (names, width) = (&self.family.names, self.hidden_size);
        if let (Some(patches), Some(shape)) = (names.patches, self.image()) {
            let first = patches.first.iter().map(|name| tensors.take(names.of(name), vec![1, 1, width]));
            let first = first.collect::<Result<_, _>>()?;
            let kernel = [width, shape.channels, shape.patch, shape.patch];
            let projection = names.of(patches.projection);
            return Ok(EmbeddingParts::Patches {
                first,
                kernel: tensors.table(&projection, &kernel)?,
                bias: tensors.take(format!("{projection}.bias"), vec![width])?,
                positions: tensors.take(names.of(patches.positions), vec![1, self.longest_text(), width])?,
            });
        }
        let (narrow, is_mapped) = self.embedding_width();
        let mut table = |part: Option<&str>, rows| {
            part.map(|part| tensors.table(&names.of(part), &[rows, narrow])).transpose()
        };
        let words = table(Some(names.words), self.vocab_size)?.expect("a table of this name");
        let positions = table(names.positions, self.max_position_embeddings)?;
        let segments = table(names.segments, self.type_vocab_size)?;
        let map = names.embedding_map.filter(|_| is_mapped);
        Ok(EmbeddingParts::Tokens {
            words,
            positions,
            segments,
            norm: tensors.norm(&names.of(names.embedding_norm), &[narrow], self.norm_kind())?,
            map: map.map(|map| tensors.linear(&names.of(map), [width, narrow], true)).transpose()?,
        })
    }

    /// Assembles layer `layer`, counted from 0, of BERT and similar families.
    fn post_norm_block<S: Tensors>(
        &self,
        tensors: &mut S,
        layout: &HeadLayout,
        layer: usize,
    ) -> Taken<Block<S::Tensor>, S> {
        let (names, width) = (self.family.names.layer(self.stored_layer(layer)), self.hidden_size);
        let distances = self.distances(tensors)?;
        let heads = layout.module(Attention::SelfAttention, layer);
        let attention = Module::take(tensors, &names.projections, heads, width, ([true; 2], false))?;
        let norms = |name: &str, tensors: &mut S| {
            Ok(Norms::one(tensors.norm(name, &[width], self.norm_kind())?, false))
        };
        let attention_norms = norms(&names.attention_norm, tensors)?;
        let sizes = [width, self.intermediate_size];
        let feed_forward = FeedForward::take(tensors, &names.feed_forward, sizes, (self.hidden_act, true))?;
        let terms = if matches!(distances, Distances::Embeddings { .. }) { DISENTANGLED_TERMS } else { 1.0 };
        let divisor = terms.sqrt() * attention.divisor;
        let attention = Module { norms: attention_norms, divisor, distances, ..attention };
        Ok(Block::new(attention, feed_forward, norms(&names.norm, tensors)?))
    }

    fn distances<S: Tensors>(&self, tensors: &mut S) -> Taken<Distances<S::Tensor>, S> {
        let (names, width) = (&self.family.names, self.hidden_size);
        Ok(match names.distances {
            None => Distances::None,
            Some(DistanceNames::Bias(part)) => {
                let (buckets, heads) = (T5Buckets::MPNET, self.num_attention_heads as i64);
                Distances::Bias(tensors.table(&names.of(part), &[buckets.buckets, heads])?, buckets)
            }
            Some(DistanceNames::Embeddings { table, norm }) => {
                let buckets = self.deberta_buckets();
                Distances::Embeddings {
                    table: tensors.table(&names.of(table), &[2 * buckets.buckets, width])?,
                    norm: tensors.norm(&names.of(norm), &[width], self.norm_kind())?,
                    buckets,
                    longest: self.longest_text(),
                }
            }
        })
    }

    fn head_parts<S: Tensors>(&self, tensors: &mut S) -> Taken<HeadParts<S::Tensor>, S> {
        let (&ClassifierHead { first, norm, last, .. }, width) = (self.head(), self.hidden_size);
        let classes = self.id2label.len() as i64;
        Ok(HeadParts {
            first: first.map(|name| tensors.linear(name, [width; 2], norm.is_none())).transpose()?,
            norm: norm.map(|name| tensors.norm(name, &[width], self.norm_kind())).transpose()?,
            last: tensors.linear(last, [classes, width], true)?,
        })
    }

    /// Returns the kind of norm outside of the layers, which has a bias if the norms of the layers have one.
    fn norm_kind(&self) -> NormKind {
        let is_bare = self.family.stack.is_some_and(|stack| stack.norm == Normalisation::LayerWithoutBias);
        (if is_bare { Normalisation::LayerWithoutBias } else { Normalisation::Layer }, self.layer_norm_eps)
    }
}

/// Number of terms in a score of disentangled attention; scores are divided by √(terms · d_head).
const DISENTANGLED_TERMS: f64 = 3.0;
