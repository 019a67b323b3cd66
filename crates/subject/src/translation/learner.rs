//! A translator in training: Vaswani et al. (2017), Section 5, with a peak learning rate of its own.
use std::convert::Infallible;
use std::path::Path;

use core_masking::loss::training_loss;
use core_masking::{GatedModel, Gates, HeadLayout, ModelDropout, Translator, Weights};
use corpus::batches::{length_sorted, shuffled};
use tch::{Device, Kind, Tensor};
use training::{GatedLearner, Learner, Validation, trainable};

use super::pairs::Pairs;
use super::spec::TrainingSpec;
use crate::error::Error;

/// The bias of the logits stays 0, as in transformers.
const FROZEN: [&str; 1] = ["final_logits_bias"];

/// A translator in training.
#[derive(Debug)]
pub(crate) struct TranslatorLearner {
    settings: TrainingSpec,
    model: Translator,
    open: Gates,
    dropout: ModelDropout,
}

impl TranslatorLearner {
    /// On a copy of the model's weights.
    pub(super) fn new(model: &Translator, settings: TrainingSpec) -> Result<Self, Error> {
        Self::on(model, trainable(model.weights(), &FROZEN), settings)
    }

    /// The model in the folder of an epoch.
    pub(super) fn load(folder: &Path, device: Device, settings: TrainingSpec) -> Result<Self, Error> {
        Self::new(&Translator::load(folder, (Kind::Float, device))?, settings)
    }

    fn on(model: &Translator, weights: Weights, settings: TrainingSpec) -> Result<Self, Error> {
        let open = Gates::open(&model.layout(), model.options());
        let model = Translator::new(model.config().clone(), weights)?;
        Ok(Self { settings, model, open, dropout: ModelDropout::OFF })
    }
}

impl Learner for TranslatorLearner {
    type Examples = Pairs;
    type Outcome = Infallible;
    type Error = Error;

    fn share(&self) -> Result<Self, Error> {
        Self::on(&self.model, self.model.weights().share(), self.settings)
    }

    fn weights(&self) -> &Weights {
        self.model.weights()
    }

    fn save(&self, folder: &Path) -> Result<(), Error> {
        Ok(self.model.save(folder)?)
    }

    fn begin_epoch(&mut self, seed: u64) {
        self.dropout = ModelDropout::new(self.model.config().dropout(), seed);
    }

    fn tokens(pairs: &Pairs, row: usize) -> usize {
        pairs.tokens(row)
    }

    fn predictions(pairs: &Pairs, rows: &[usize]) -> usize {
        pairs.target_tokens(rows)
    }

    fn loss(&self, pairs: &Pairs, rows: &[usize]) -> Result<Tensor, Error> {
        self.loss_under(pairs, rows, &self.open)
    }

    fn validate(&self, pairs: &Pairs, rows: &[usize]) -> Result<Validation<Infallible>, Error> {
        self.validate_under(pairs, rows, &self.open)
    }

    /// Choosing by BLEU would take a translation of the development set after each epoch.
    fn score(&self, _: &[Infallible]) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    fn batches(&self, train: &Pairs, seed: u64) -> Vec<Vec<usize>> {
        shuffled(&train.lengths(), self.settings.batch_tokens, seed)
    }

    fn dev_batches(&self, dev: &Pairs) -> Vec<Vec<usize>> {
        length_sorted(&dev.lengths(), self.settings.batch_tokens)
    }

    /// Linear warm-up, then the inverse square root of the step.
    fn learning_rate(&self, step: usize, _steps: usize) -> f64 {
        inverse_square_root(&self.settings, step)
    }
}

impl GatedLearner for TranslatorLearner {
    fn layout(&self) -> HeadLayout {
        self.model.layout()
    }

    fn loss_under(&self, pairs: &Pairs, rows: &[usize], gates: &Gates) -> Result<Tensor, Error> {
        let batch = pairs.batch(&self.model, rows);
        let smoothing = self.settings.label_smoothing;
        Ok(training_loss(&self.model, &batch, gates, smoothing, &self.dropout))
    }

    fn validate_under(
        &self,
        pairs: &Pairs,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Validation<Infallible>, Error> {
        let batch = pairs.batch(&self.model, rows);
        let losses = self.model.losses(&batch, gates, &ModelDropout::OFF);
        Ok(Validation { loss: losses.sum(Kind::Double).double_value(&[]), outcomes: Vec::new() })
    }
}

fn inverse_square_root(settings: &TrainingSpec, step: usize) -> f64 {
    let (step, warmup) = (step as f64, settings.warmup_steps as f64);
    settings.peak_learning_rate * (step / warmup).min((warmup / step).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peak 1 after 4 steps: 1/4, 2/4, 3/4, 1, and then sqrt(4/16) = 1/2 at step 16.
    #[test]
    fn the_learning_rate_rises_linearly_and_falls_with_the_root() {
        let settings = TrainingSpec {
            seed: 0,
            epochs: 1,
            batch_tokens: 1,
            peak_learning_rate: 1.0,
            warmup_steps: 4,
            label_smoothing: 0.0,
            clip_norm: 1.0,
            weight_decay: 0.0,
            adam_betas: [0.9, 0.98],
        };
        let rates = [1, 2, 3, 4, 16].map(|step| inverse_square_root(&settings, step));
        assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 0.5]);
    }
}
