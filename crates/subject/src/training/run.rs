//! The training loop: batches divided between threads, gradients added up in a fixed order.
use std::time::Instant;

use core_masking::loss::{sentence_losses, training_loss};
use core_masking::marian::Marian;
use core_masking::{Dropout, Gates};
use corpus::batches::{length_sorted, shuffled};
use rayon::prelude::*;
use tch::{Kind, Tensor, no_grad};

use crate::Error;
use crate::progress::Progress;
use crate::spec::TrainingSpec;
use crate::training::adam::{Adam, gradients};
use crate::training::pairs::Pairs;

/// A model in training. Each shard takes a part of each batch, on a model of its own that shares the weights: small
/// matrix products gain more from that than from being divided between cores themselves.
pub(super) struct Run {
    settings: TrainingSpec,
    shards: Vec<Shard>,
    pub(super) adam: Adam,
    pub(super) progress: Progress,
}

/// What one part of a batch is computed with.
struct Shard {
    model: Marian,
    open: Gates,
    dropout: Dropout,
}

impl Shard {
    fn new(model: &Marian) -> Result<Self, Error> {
        let open = Gates::open(&model.layout(), model.options());
        Ok(Self { model: model.share()?, open, dropout: Dropout::OFF })
    }

    /// The loss of these pairs, in nats, and its gradient; both are sums divided by `tokens`.
    fn gradients(&self, pairs: &Pairs, rows: &[usize], smoothing: f64, tokens: usize) -> (f64, Vec<Tensor>) {
        let batch = pairs.batch(&self.model, rows);
        let loss = training_loss(&self.model, &batch, &self.open, smoothing, &self.dropout) / tokens as f64;
        (loss.double_value(&[]), gradients(&loss, self.model.weights()))
    }

    /// The loss of these pairs in nats, summed, without dropout and label smoothing.
    fn loss(&self, pairs: &Pairs, rows: &[usize]) -> f64 {
        let batch = pairs.batch(&self.model, rows);
        let losses = no_grad(|| sentence_losses(&self.model, &batch, &self.open));
        losses.sum(Kind::Double).double_value(&[])
    }
}

impl Run {
    /// Divides each batch between `shards`; losses depend on their number, in the last digits.
    pub(super) fn new(
        model: &Marian,
        adam: Adam,
        settings: TrainingSpec,
        shards: usize,
        progress: Progress,
    ) -> Result<Self, Error> {
        let shards = (0..shards).map(|_| Shard::new(model)).collect::<Result<_, _>>()?;
        Ok(Self { settings, shards, adam, progress })
    }

    /// The number of parts that a batch is divided into.
    pub(super) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// One pass over the training data; returns the mean loss in nats per token.
    pub(super) fn epoch(&mut self, epoch: usize, train: &Pairs) -> Result<f64, Error> {
        // Only dropout on a GPU draws from libtorch's generator.
        tch::manual_seed(epoch_seed(&self.settings, epoch) as i64);
        let rate = self.shards[0].model.config().dropout;
        for (shard, place) in self.shards.iter_mut().zip(1..) {
            shard.dropout = Dropout::new(rate, epoch_seed(&self.settings, epoch).wrapping_add(place << 32));
        }
        let started = Instant::now();
        let (mut sum, mut seen) = (0.0, 0);
        for rows in &batches(&self.settings, train, epoch) {
            let tokens = train.target_tokens(rows);
            let loss = self.step(train, rows, tokens);
            if !loss.is_finite() {
                return Err(Error::Diverged { epoch, step: self.adam.steps() });
            }
            sum += loss * tokens as f64;
            seen += tokens;
            let speed = seen as f64 / started.elapsed().as_secs_f64();
            self.progress
                .message(format!("epoch {epoch}  loss {:.3}  {speed:.0} target tokens/s", sum / seen as f64));
            self.progress.advance();
        }
        Ok(sum / seen as f64)
    }

    /// One update; returns the batch's loss in nats per token, or NaN if the gradient is not finite.
    fn step(&mut self, train: &Pairs, rows: &[usize], tokens: usize) -> f64 {
        let settings = self.settings;
        let parts = divided(rows, self.shards.len());
        let results: Vec<(f64, Vec<Tensor>)> = self
            .shards
            .par_iter_mut()
            .zip(parts)
            .map(|(shard, rows)| shard.gradients(train, rows, settings.label_smoothing, tokens))
            .collect();
        let (losses, gradients): (Vec<f64>, Vec<Vec<Tensor>>) = results.into_iter().unzip();
        let learning_rate = learning_rate(&settings, self.adam.steps() + 1);
        let norm = self.adam.update(gradients, learning_rate, settings.clip_norm);
        if norm.is_finite() { losses.iter().sum() } else { f64::NAN }
    }

    /// Nats per target token, without dropout and label smoothing.
    pub(super) fn dev_loss(&mut self, dev: &Pairs) -> f64 {
        let batches = length_sorted(&dev.lengths(), self.settings.batch_tokens);
        let threads = self.shards.len();
        let sums: Vec<f64> = self
            .shards
            .par_iter_mut()
            .enumerate()
            .map(|(first, shard)| {
                batches.iter().skip(first).step_by(threads).map(|rows| shard.loss(dev, rows)).sum()
            })
            .collect();
        let everything: Vec<usize> = (0..dev.len()).collect();
        sums.iter().sum::<f64>() / dev.target_tokens(&everything) as f64
    }
}

/// Cuts `rows` into at most `parts` pieces of like length, none of them empty.
fn divided(rows: &[usize], parts: usize) -> Vec<&[usize]> {
    let bound = |part: usize| rows.len() * part / parts;
    (0..parts).map(|part| &rows[bound(part)..bound(part + 1)]).filter(|piece| !piece.is_empty()).collect()
}

/// The batches of an epoch.
pub(super) fn batches(settings: &TrainingSpec, train: &Pairs, epoch: usize) -> Vec<Vec<usize>> {
    shuffled(&train.lengths(), settings.batch_tokens, epoch_seed(settings, epoch))
}

/// Linear warm-up, then the inverse square root of the step. `step` counts from 1.
pub(super) fn learning_rate(settings: &TrainingSpec, step: usize) -> f64 {
    let (step, warmup) = (step as f64, settings.warmup_steps as f64);
    settings.peak_learning_rate * (step / warmup).min((warmup / step).sqrt())
}

/// Seed of an epoch's batches and dropout.
fn epoch_seed(settings: &TrainingSpec, epoch: usize) -> u64 {
    settings.seed.wrapping_mul(1_000_003).wrapping_add(epoch as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_divided_without_loss_and_without_empty_pieces() {
        let rows: Vec<usize> = (0..17).collect();
        for parts in 1..20 {
            let pieces = divided(&rows, parts);
            assert_eq!(pieces.concat(), rows, "{parts} parts");
            assert_eq!(pieces.len(), parts.min(17));
            let lengths = pieces.iter().map(|piece| piece.len());
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1, "{parts} parts");
        }
    }

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
            adam_betas: [0.9, 0.98],
        };
        let rates = [1, 2, 3, 4, 16].map(|step| learning_rate(&settings, step));
        assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 0.5]);
    }
}
