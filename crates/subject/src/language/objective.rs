//! Training objective of a language model.
use std::convert::Infallible;
use std::f64::consts::PI;

use core_masking::language_model::training_loss;
use core_masking::{Gates, LanguageModel, ModelDropout};
use corpus::batches::{length_sorted, shuffled};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tch::Tensor;
use training::{Objective, Validation};

use super::model::{BlockSpec, PretrainingSpec};
use super::rows::{BATCH_TOKENS, Rows};
use crate::error::Error;

impl Objective for PretrainingSpec {
    type Model = LanguageModel;
    type Examples = Rows;
    type Outcome = Infallible;
    type Error = Error;

    fn tokens(split: &Rows, row: usize) -> usize {
        split.tokens(row).len() - 1
    }

    fn predictions(split: &Rows, rows: &[usize]) -> usize {
        rows.iter().map(|&row| split.predictions(row)).sum()
    }

    fn loss(
        &self,
        model: &LanguageModel,
        split: &Rows,
        rows: &[usize],
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Result<Tensor, Error> {
        Ok(training_loss(model, &split.batch(model, rows)?, gates, dropout))
    }

    fn validate(
        model: &LanguageModel,
        split: &Rows,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Validation<Infallible>, Error> {
        let nats = model.prediction_nats(&split.batch(model, rows)?, gates, &ModelDropout::OFF);
        Ok(Validation::of_losses(&nats))
    }

    fn batches(&self, train: &Rows, seed: u64) -> Vec<Vec<usize>> {
        match self.blocks {
            Some(blocks) => drawn(blocks, train.len(), seed),
            None => shuffled(&lengths(train), self.batch_tokens.unwrap_or(BATCH_TOKENS), seed),
        }
    }

    fn dev_batches(&self, dev: &Rows) -> Vec<Vec<usize>> {
        length_sorted(&lengths(dev), BATCH_TOKENS)
    }

    fn learning_rate(&self, step: usize, steps: usize) -> f64 {
        cosine(self, step, steps)
    }
}

fn lengths(split: &Rows) -> Vec<(usize, usize)> {
    split.lengths().map(|length| (length, 0)).collect()
}

/// Draws batches of rows with replacement.
fn drawn(blocks: BlockSpec, rows: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut batch = || (0..blocks.batch_size).map(|_| rng.random_range(0..rows)).collect();
    (0..blocks.steps).map(|_| batch()).collect()
}

/// Returns the learning rate: linear warm-up, then a half cosine down to the final share (Loshchilov and Hutter 2017,
/// <https://arxiv.org/abs/1608.03983>).
fn cosine(settings: &PretrainingSpec, step: usize, steps: usize) -> f64 {
    let (step, warmup, steps) = (step as f64, settings.warmup_steps as f64, steps as f64);
    if step < warmup {
        return settings.learning_rate * step / warmup;
    }
    let done = ((step - warmup) / (steps - warmup).max(1.0)).min(1.0);
    let share = settings.final_share + (1.0 - settings.final_share) * 0.5 * (1.0 + (PI * done).cos());
    settings.learning_rate * share
}

#[cfg(test)]
mod tests {
    use super::*;
    use training::Keep;

    /// 2 updates of warm-up, then from 1 to 0.2 in 4 updates: 0.6 in the middle.
    #[test]
    fn the_learning_rate_rises_linearly_and_falls_with_a_cosine() {
        let settings = PretrainingSpec {
            seed: 0,
            replicates: std::num::NonZeroUsize::MIN,
            epochs: 1,
            batch_tokens: Some(1),
            blocks: None,
            learning_rate: 1.0,
            warmup_steps: 2,
            final_share: 0.2,
            weight_decay: 0.0,
            adam_betas: [0.9, 0.95],
            clip_norm: 1.0,
            keep: Keep::Last,
        };
        let rates = [1, 2, 4, 6].map(|step| cosine(&settings, step, 6));
        let expected = [0.5, 1.0, 0.6, 0.2];
        assert!(rates.iter().zip(expected).all(|(rate, wanted)| (rate - wanted).abs() < 1e-12), "{rates:?}");
    }

    #[test]
    fn blocks_are_drawn_from_all_rows_and_by_the_seed() {
        let blocks = BlockSpec { length: 4, batch_size: 8, steps: 50 };
        let batches = drawn(blocks, 10, 3);
        assert!(batches.len() == 50 && batches.iter().all(|batch| batch.len() == 8));
        let rows: std::collections::BTreeSet<usize> = batches.concat().into_iter().collect();
        assert!(rows.into_iter().eq(0..10));
        assert_eq!(drawn(blocks, 10, 3), batches);
        assert_ne!(drawn(blocks, 10, 4), batches);
    }
}
