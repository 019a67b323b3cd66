//! Training objective of a translator: Vaswani et al. (2017), Section 5, except for the peak learning rate, which is a setting.
use std::convert::Infallible;

use core_masking::loss::training_loss;
use core_masking::{GatedModel, Gates, ModelDropout, Translator};
use corpus::batches::{length_sorted, shuffled};
use tch::Tensor;
use training::{Objective, Validation};

use super::pairs::Pairs;
use super::spec::TrainingSpec;
use crate::error::Error;

/// The best epoch is chosen by the loss: choosing by BLEU would require translating the development set after each epoch.
impl Objective for TrainingSpec {
    type Model = Translator;
    type Examples = Pairs;
    type Outcome = Infallible;
    type Error = Error;

    /// The bias of the logits stays 0, as in transformers.
    const FROZEN: &'static [&'static str] = &["final_logits_bias"];

    fn tokens(pairs: &Pairs, row: usize) -> usize {
        pairs.tokens(row)
    }

    fn predictions(pairs: &Pairs, rows: &[usize]) -> usize {
        pairs.target_tokens(rows)
    }

    fn loss(
        &self,
        model: &Translator,
        pairs: &Pairs,
        rows: &[usize],
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Result<Tensor, Error> {
        Ok(training_loss(model, &pairs.batch(model, rows), gates, self.label_smoothing, dropout))
    }

    fn validate(
        model: &Translator,
        pairs: &Pairs,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Validation<Infallible>, Error> {
        let losses = model.losses(&pairs.batch(model, rows), gates, &ModelDropout::OFF);
        Ok(Validation::of_losses(&losses))
    }

    fn batches(&self, train: &Pairs, seed: u64) -> Vec<Vec<usize>> {
        shuffled(&train.lengths(), self.batch_tokens, seed)
    }

    fn dev_batches(&self, dev: &Pairs) -> Vec<Vec<usize>> {
        length_sorted(&dev.lengths(), self.batch_tokens)
    }

    fn learning_rate(&self, step: usize, _: usize) -> f64 {
        inverse_square_root(self, step)
    }
}

/// Returns the learning rate: linear warm-up, then decay with the inverse square root of the update.
fn inverse_square_root(settings: &TrainingSpec, step: usize) -> f64 {
    let (step, warmup) = (step as f64, settings.warmup_steps as f64);
    settings.peak_learning_rate * (step / warmup).min((warmup / step).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peak 1 after 4 updates: 1/4, 2/4, 3/4, 1, and then sqrt(4/16) = 1/2 at update 16.
    #[test]
    fn the_learning_rate_rises_linearly_and_falls_with_the_inverse_root() {
        let settings = TrainingSpec {
            seed: 0,
            replicates: std::num::NonZeroUsize::MIN,
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
