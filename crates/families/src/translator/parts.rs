//! The tensors of an encoder-decoder model, assembled into blocks: post-norm or pre-norm layers of Vaswani et al. (2017), and T5's.
use super::config::{FeedForwardProjection, TranslatorConfig};
use crate::buckets::T5Buckets;
use crate::config::ModelConfig;
use crate::limits::{EPSILONS, check_range};
use crate::parts::{
    Activation, Block, Distances, FeedForward, Module, Norm, NormKind, Normalisation, Norms, Taken, Tensors,
};
use crate::tables::{Positions, position_table, stack};
use heads::Attention;

/// Added to the variance in layer norms: PyTorch's default, used by all families except T5.
const EPSILON: f64 = 1e-5;

/// Parts of an encoder-decoder model. Pairs have source or encoder first.
#[derive(Debug)]
pub struct TranslatorParts<T> {
    /// Token embeddings, `[vocab, d_model]`.
    pub tables: [T; 2],
    /// The output layer, `[target vocab, d_model]`.
    pub output: T,
    /// `[1, target vocab]`
    pub logits_bias: Option<T>,
    /// Learned positions, including rows before the first token's.
    pub positions: [Option<T>; 2],
    /// Norms of the embeddings.
    pub embedding_norms: [Option<Norm<T>>; 2],
    /// The layers.
    pub stacks: [Vec<Block<T>>; 2],
    /// Norms after the last layers.
    pub last_norms: [Option<Norm<T>>; 2],
}

impl TranslatorConfig {
    /// Assembles the parts of the model.
    pub fn parts<S: Tensors>(&self, tensors: &mut S) -> Taken<TranslatorParts<S::Tensor>, S> {
        let (names, width, target) = (self.embeddings(), self.d_model, self.target_vocabulary());
        let mut table = |name: &str, rows| tensors.take(name.to_owned(), vec![rows, width]);
        let tables = [table(names.source, self.vocab_size)?, table(self.target_embedding(), target)?];
        let output = table(self.output_layer(), target)?;
        let logits_bias =
            names.bias.map(|name| tensors.take(name.to_owned(), vec![1, target])).transpose()?;
        let mut positions = |stack| match self.family.positions {
            Positions::Learned { first } => {
                let rows = first.saturating_add(self.max_position_embeddings);
                tensors.take(position_table(stack), vec![rows, width]).map(Some)
            }
            _ => Ok(None),
        };
        let positions = [positions(0)?, positions(1)?];
        let (layers, norms) = (self.family.layers, self.family.norms);
        let mut norm = |stack: usize, part: &str, is_there: bool| {
            let name = format!("{}.{part}", layers.stacks[stack]);
            is_there.then(|| tensors.norm(&name, &[width], self.norm_kind())).transpose()
        };
        let mut pair = |part: &str, is_there: bool| Ok([norm(0, part, is_there)?, norm(1, part, is_there)?]);
        Ok(TranslatorParts {
            tables,
            output,
            logits_bias,
            positions,
            embedding_norms: pair("layernorm_embedding", norms.of_embeddings)?,
            last_norms: pair(layers.last_norm, norms.before)?,
            stacks: [
                self.stack(tensors, &[Attention::EncEnc], self.encoder_layers, self.encoder_ffn_dim)?,
                self.stack(
                    tensors,
                    &[Attention::DecDec, Attention::EncDec],
                    self.decoder_layers,
                    self.decoder_ffn_dim,
                )?,
            ],
        })
    }

    /// Assembles layers with these attention modules and this feed-forward width.
    fn stack<S: Tensors>(
        &self,
        tensors: &mut S,
        modules: &[Attention],
        layers: usize,
        inner: i64,
    ) -> Taken<Vec<Block<S::Tensor>>, S> {
        let (width, is_before, names) = (self.d_model, self.family.norms.before, self.family.layers);
        let stack = stack(modules[0]);
        let block = |layer| {
            let attention = self.module(tensors, modules[0], layer)?;
            let cross = modules.get(1).map(|&kind| self.module(tensors, kind, layer)).transpose()?;
            let (maps, activation) = self.maps();
            let map = |map: &&str| {
                names.in_layer(modules[0], layer, &format!("{}{map}", names.feed_forward[stack]))
            };
            let maps: Vec<String> = maps.iter().map(map).collect();
            let settings = (activation, names.distances.is_none());
            let feed_forward = FeedForward::take(tensors, &maps, [width, inner], settings)?;
            let norm = names.in_layer(modules[0], layer, names.feed_forward_norms[stack]);
            let norm = tensors.norm(&norm, &[width], self.norm_kind())?;
            Ok(Block { cross, ..Block::new(attention, feed_forward, Norms::one(norm, is_before)) })
        };
        (0..layers).map(block).collect()
    }

    fn module<S: Tensors>(
        &self,
        tensors: &mut S,
        attention: Attention,
        layer: usize,
    ) -> Taken<Module<S::Tensor>, S> {
        let (names, width, layout) = (self.family.layers, self.d_model, self.layout());
        let is_cross = attention == Attention::EncDec;
        let heads = layout.module(attention, layer);
        let distances = match names.distances.filter(|_| !is_cross) {
            None => Distances::None,
            Some(part) => {
                let (buckets, furthest) = self.distance_settings();
                let name = format!("{}.{part}", names.stacks[stack(attention)]);
                let table = tensors.table(&name, &[buckets, heads.shape.heads as i64])?;
                Distances::Bias(
                    table,
                    T5Buckets { buckets, furthest, two_sided: attention == Attention::EncEnc },
                )
            }
        };
        let has_bias = names.distances.is_none();
        let projections = names.projections(attention, layer);
        let module = Module::take(tensors, &projections, heads, width, ([has_bias; 2], false))?;
        let norm = names.in_layer(attention, layer, names.norms[usize::from(is_cross)]);
        let norm = tensors.norm(&norm, &[width], self.norm_kind())?;
        let divisor = if has_bias { module.divisor } else { 1.0 };
        Ok(Module { norms: Norms::one(norm, self.family.norms.before), distances, divisor, ..module })
    }

    fn norm_kind(&self) -> NormKind {
        match self.family.layers.distances {
            Some(_) => (Normalisation::RootMeanSquare, self.relative.layer_norm_epsilon.unwrap_or(1e-6)),
            None => (Normalisation::Layer, EPSILON),
        }
    }

    /// Returns the maps of the feed-forward network and its activation.
    fn maps(&self) -> (&'static [&'static str], Activation) {
        use FeedForwardProjection::{GatedGelu, GatedRelu, GatedSilu, Relu};
        const GATED: &[&str] = &["wi_0", "wi_1", "wo"];
        match self.relative.feed_forward_proj {
            _ if self.family.layers.distances.is_none() => (&["1", "2"], self.activation_function),
            None | Some(Relu) => (&["wi", "wo"], Activation::Relu),
            Some(GatedRelu) => (GATED, Activation::Relu),
            Some(GatedGelu) => (GATED, Activation::GeluNew),
            Some(GatedSilu) => (GATED, Activation::Silu),
        }
    }

    /// Returns the factor of decoder states.
    pub fn decoder_scale(&self) -> Option<f64> {
        let is_scaled =
            self.relative.scale_decoder_outputs.unwrap_or(self.tie_word_embeddings != Some(false));
        let is_scaled = is_scaled && self.family.layers.distances.is_some();
        is_scaled.then(|| (self.d_model as f64).sqrt().recip())
    }

    /// Returns the number of buckets, and the distance from which all are in the last one.
    fn distance_settings(&self) -> (i64, i64) {
        let own = &self.relative;
        (own.relative_attention_num_buckets.unwrap_or(32), own.relative_attention_max_distance.unwrap_or(128))
    }

    /// Refuses settings that T5's layers cannot have, and returns why.
    pub fn check_relative(&self) -> Result<(), String> {
        if self.family.layers.distances.is_none() {
            return Ok(());
        }
        let (buckets, distance) = self.distance_settings();
        if !(4..=4096).contains(&buckets) || buckets % 2 != 0 {
            return Err(format!(
                "relative_attention_num_buckets ({buckets}) must be even and from 4 to 4096"
            ));
        }
        if !(buckets / 2 + 1..=1 << 16).contains(&distance) {
            let least = buckets / 2 + 1;
            return Err(format!(
                "relative_attention_max_distance ({distance}) must be from {least} to 65536"
            ));
        }
        check_range(EPSILONS, [("layer_norm_epsilon", self.norm_kind().1)])
    }
}
