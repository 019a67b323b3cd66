//! A decoder that predicts the next token, with learned or rotary positions and optionally grouped-query attention. Families such as Llama
//! define tensor names, norms and variants.
mod attribution;
mod batch;
mod checkpoint;
mod generate;
mod layer;
mod nats;
mod sweep;

use std::collections::BTreeMap;

use families::rotary::RotaryConfig;
use tch::{Kind, Tensor};

use crate::attention::Visible;
use crate::batch::causal_bias;
use crate::block::Block;
use crate::importance::Attended;
use crate::layers::Norm;
use crate::model::GatedModel;
use crate::rotary::{Rotary, RotaryAngles};
use crate::{Attention, Error, Gates, HeadMeans, ModelDropout, Weights};

pub use attribution::{Attribution, Contrast};
pub use batch::{ChoiceRows, PredictionBatch, Window};
use families::language_model::LanguageParts;
pub use families::language_model::{LanguageConfig, LanguageOptions, TokenIds};
pub use families::tables::LanguageFamily;
pub use generate::Stop;
pub use nats::{LOGITS_AT_ONCE, training_loss};

use nats::{Output, token_nats};

/// A language model.
#[derive(Debug)]
pub struct LanguageModel {
    config: LanguageConfig,
    weights: Weights,
    words: Tensor,                       // [vocab, d_model]
    positions: Option<Tensor>,           // [max_position, d_model]
    rotary: Vec<(RotaryConfig, Rotary)>, // the distinct rotations of the layers
    layers: Vec<Block>,
    norm: Norm,
    output: Output,
}

impl GatedModel for LanguageModel {
    type Config = LanguageConfig;
    type Examples = PredictionBatch;

    fn new(config: LanguageConfig, weights: Weights) -> Result<Self, Error> {
        let LanguageParts { words, positions, blocks, norm, output } = config.parts(&mut &weights)?;
        let layers: Vec<Block> = blocks.into_iter().map(Block::from).collect();
        let mut rotary: Vec<(RotaryConfig, Rotary)> = Vec::new();
        for own in layers.iter().filter_map(|layer| layer.rotary) {
            if rotary.iter().all(|(known, _)| *known != own) {
                rotary.push((own, Rotary::new(own, words.device())));
            }
        }
        let table = output.unwrap_or_else(|| words.shallow_clone());
        Ok(Self {
            output: Output { table, cap: config.options.final_logit_softcapping },
            rotary,
            positions,
            layers,
            norm: norm.into(),
            words,
            config,
            weights,
        })
    }

    fn config(&self) -> &LanguageConfig {
        &self.config
    }

    fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Returns the nats of each text, summed over its predictions; for multiple choice, the cross-entropy of the correct choice.
    fn losses(&self, batch: &PredictionBatch, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        let nats = batch.by_row(&self.prediction_nats(batch, gates, dropout));
        batch.choices.as_ref().map_or_else(|| nats.shallow_clone(), |choices| choices.cross_entropy(&nats))
    }

    fn attended(&self, batch: &PredictionBatch) -> BTreeMap<Attention, Attended> {
        let positions = batch.ids.size()[1];
        let mut distinct: BTreeMap<Option<i64>, Tensor> = BTreeMap::new(); // [1, 1, query, key] by window
        for window in self.layers.iter().map(|layer| layer.window) {
            distinct.entry(window).or_insert_with(|| self.bias(positions, window).isfinite());
        }
        let mut excluded = batch.ids.zeros_like().to_kind(Kind::Bool);
        for &end in self.config.ends() {
            excluded = excluded.logical_or(&batch.ids.eq(i64::from(end)));
        }
        let attended = Attended {
            queries: batch.real.shallow_clone(),
            visible: self.layers.iter().map(|layer| distinct[&layer.window].shallow_clone()).collect(),
            excluded,
            last_by_example: false,
            examples: batch.choices.as_ref().map(|choices| choices.example_of_row.shallow_clone()),
        };
        BTreeMap::from([(Attention::SelfAttention, attended)])
    }

    fn logit_attribution(&self, batch: &PredictionBatch, gates: &Gates) -> Option<HeadMeans> {
        Some(self.attributed_to_heads(batch, gates))
    }

    fn probe(&self, gates: &Gates) -> Tensor {
        let most = self.config.max_position_embeddings.min(self.config.vocab_size).min(8);
        let ids = Tensor::arange(most, (Kind::Int64, self.options().1)).unsqueeze(0);
        self.logits(&self.hidden(&ids, gates, &ModelDropout::OFF))
    }
}

impl LanguageModel {
    /// Returns the normalised output of the last layer, `[batch, position, d_model]`, from ids `[batch, position]`.
    pub fn hidden(&self, ids: &Tensor, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        let (count, mut x) = (ids.size()[1], self.embed(ids, 0, dropout));
        let angles = self.angles(0, count);
        for layer in 0..self.layers.len() {
            x = self.layer(layer, &x, &angles, gates, dropout);
        }
        self.normalised(&x)
    }

    /// Normalises and scales the output of the last layer, `[.., d_model]`, for the output layer.
    fn normalised(&self, x: &Tensor) -> Tensor {
        let x = self.norm.forward(x);
        self.config.logit_divisor().map_or_else(|| x.shallow_clone(), |divisor| &x / divisor)
    }

    /// Computes the logits, `[.., vocab]`, of `hidden`, `[.., d_model]`.
    pub fn logits(&self, hidden: &Tensor) -> Tensor {
        self.output.logits(hidden)
    }

    /// Returns the nats of each prediction of a batch: `[predictions]`.
    pub fn prediction_nats(&self, batch: &PredictionBatch, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        let hidden = batch.predicting(&self.hidden(&batch.ids, gates, dropout)); // [predictions, d_model]
        token_nats(&hidden, &self.output, &batch.labels)
    }

    /// Makes a batch of windows, each with a prediction. Fails if one is longer than the model's positions, or has an unknown token.
    pub fn batch(&self, windows: &[Window<'_>]) -> Result<PredictionBatch, Error> {
        let (positions, size) = (self.config.max_position_embeddings as usize, self.config.vocab_size);
        for window in windows {
            let length = window.tokens.len() - 1; // the last token is only predicted
            if length > positions {
                return Err(Error::too_long("text", length, positions));
            }
            if let Some(&id) = window.tokens.iter().find(|&&id| i64::from(id) >= size) {
                return Err(Error::out_of_table("token", id, size));
            }
        }
        Ok(PredictionBatch::new(windows, self.options().1))
    }

    /// Returns the multiply-adds of a batch's predictions, padding included, in matrix products, nearly all of the work.
    pub fn multiply_adds(&self, batch: &PredictionBatch) -> u64 {
        let [rows, positions] = batch.size().map(|extent| extent as u64);
        let layers: u64 = self.layers.iter().map(|layer| layer.causal_multiply_adds(positions)).sum();
        rows * layers + batch.predictions() as u64 * self.output.table.numel() as u64
    }

    /// Embeds ids `[batch, position]`, starting at position `start`: `[batch, position, d_model]`.
    fn embed(&self, ids: &Tensor, start: i64, dropout: &ModelDropout) -> Tensor {
        let words = Tensor::embedding(&self.words, ids, -1, false, false);
        let words = match self.config.word_factor() {
            Some(factor) => words * factor,
            None => words,
        };
        dropout.classifier.apply(match &self.positions {
            Some(table) => {
                words + table.narrow(0, self.config.family.names.rows_before + start, ids.size()[1])
            }
            None => words,
        })
    }

    /// Returns the output of layer `layer`, counted from 0, from its input `x`; both `[batch, position, d_model]`.
    fn layer(
        &self,
        layer: usize,
        x: &Tensor,
        angles: &[(RotaryConfig, RotaryAngles)],
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        let (module, gate) = (&self.layers[layer], gates.of(Attention::SelfAttention, layer));
        let context = self.context(layer, x, angles, gates, dropout);
        let attended = module.attended(x, &module.attention.merge(context, gate), dropout);
        module.fed(x, &gate.passing(x, attended), dropout)
    }

    /// Returns the head outputs of a layer before gating: `[batch, kept, position, d_head]`.
    fn context(
        &self,
        layer: usize,
        x: &Tensor,
        angles: &[(RotaryConfig, RotaryAngles)],
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Tensor {
        let (module, count) = (&self.layers[layer], x.size()[1]);
        let bias;
        let visible = match module.window.filter(|window| *window < count) {
            Some(window) => {
                bias = self.bias(count, Some(window));
                Visible::Under(&bias)
            }
            // Padding is on the right, so no real position sees it.
            None => Visible::Past,
        };
        module.context(
            module.attending(x, count, module.angles(angles)),
            &visible,
            gates.of(Attention::SelfAttention, layer),
            dropout,
        )
    }

    /// Returns the rotations at `count` positions from `first` on, for all layers.
    fn angles(&self, first: i64, count: i64) -> Vec<(RotaryConfig, RotaryAngles)> {
        let kind = self.options().0;
        self.rotary.iter().map(|(config, rotary)| (*config, rotary.angles(first, count, kind))).collect()
    }

    /// Returns the bias of a causal mask or sliding window, 0 or `-inf`: `[1, 1, position, position]`.
    fn bias(&self, positions: i64, window: Option<i64>) -> Tensor {
        let past = causal_bias(positions, self.options());
        match window {
            Some(window) => past.full_like(f64::NEG_INFINITY).tril(-window) + past,
            None => past,
        }
    }
}
