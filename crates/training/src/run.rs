//! The training loop: batches divided between threads, gradients added up in a fixed order.
//!
//! Each thread holds a gradient of all weights, so a batch is divided into few shards unless it is large. A large shard is processed in
//! several parts, which limits memory.
use std::num::NonZeroUsize;
use std::time::Instant;

use rayon::prelude::*;
use tch::{Tensor, no_grad};

use crate::adam::{Adam, add, gradients};
use crate::error::Error;
use crate::full_memory::or_full_memory;
use crate::learner::{Learner, Objective, Validation};
use crate::progress::Progress;

/// Maximum number of shards of a small batch.
const FEW_SHARDS: usize = 4;

/// Minimum tokens per shard, including padding, beyond [`FEW_SHARDS`] shards.
const SHARD_TOKENS: usize = 512;

/// Maximum tokens per part, including padding, unless a single text has more.
const MAX_TOKENS: usize = 4_096;

/// Returns the number of shards of a batch of `batch_tokens` on these threads.
pub(crate) fn shards(threads: usize, batch_tokens: usize) -> usize {
    threads.min(FEW_SHARDS.max(batch_tokens / SHARD_TOKENS))
}

/// A training loop with one learner per shard. Learners share the weights; this is faster than dividing small matrix products between
/// cores.
pub(crate) struct Run<O: Objective> {
    shards: Vec<Learner<O>>,
    seed: u64,
    clip_norm: f64,
    /// Steps over all epochs.
    steps: usize,
    pub(crate) adam: Adam,
    pub(crate) progress: Progress,
}

/// Loss and score of a model on the development set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DevScore {
    /// In nats per prediction, without dropout or label smoothing.
    pub loss: f64,
    /// Higher is better; `None` if the task has no score.
    pub score: Option<f64>,
}

impl<O: Objective> Run<O> {
    /// Creates a loop with this number of shards, which affects the last digits of losses.
    pub(crate) fn new(
        learner: Learner<O>,
        adam: Adam,
        shards: usize,
        (seed, clip_norm): (u64, f64),
        steps: usize,
        progress: Progress,
    ) -> Result<Self, O::Error> {
        let mut all = vec![learner];
        while all.len() < shards {
            all.push(all[0].share()?);
        }
        Ok(Self { shards: all, seed, clip_norm, steps, adam, progress })
    }

    /// Returns the learner of one of the shards; all share the weights.
    pub(crate) fn learner(&self) -> &Learner<O> {
        &self.shards[0]
    }

    pub(crate) fn objective(&self) -> &O {
        self.shards[0].objective()
    }

    /// Returns the number of steps over all epochs.
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the number of shards of a batch.
    pub(crate) fn shards(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.shards.len()).unwrap_or(NonZeroUsize::MIN)
    }

    /// Makes one pass over the training data and returns the mean loss in nats per prediction. `after_step` gets the learner and the number
    /// of its updates.
    pub(crate) fn epoch(
        &mut self,
        epoch: usize,
        train: &O::Examples,
        after_step: impl Fn(&Learner<O>, usize) -> Result<(), Error>,
    ) -> Result<f64, O::Error> {
        let seed = epoch_seed(self.seed, epoch);
        // Only dropout on a GPU uses libtorch's generator.
        tch::manual_seed(seed as i64);
        for (shard, place) in self.shards.iter_mut().zip(1..) {
            shard.begin_epoch(seed.wrapping_add(place << 32));
        }
        let started = Instant::now();
        let (mut sum, mut seen) = (0.0, 0);
        let (batches, left_out) = (self.objective().batches(train, seed), self.adam.left_out());
        for rows in &batches {
            let predictions = O::predictions(train, rows);
            let loss = or_full_memory(|| self.step(train, rows, predictions))?;
            if !loss.is_finite() {
                return Err(diverged(epoch, self.adam.steps()).into());
            }
            after_step(self.learner(), self.adam.steps())?;
            sum += loss * predictions as f64;
            seen += predictions;
            let speed = seen as f64 / started.elapsed().as_secs_f64();
            let mean = sum / seen as f64;
            self.progress.message(format!("epoch {epoch}  loss {mean:.3}  {speed:.0} predictions/s"));
            self.progress.advance(1);
        }
        if self.adam.left_out() == self.adam.steps() {
            return Err(diverged(epoch, self.adam.steps()).into());
        }
        let some = self.adam.left_out() - left_out;
        if some > 0 {
            let all = batches.len();
            words::warn(&format!(
                "the gates were not updated in {some} of the {all} steps of epoch {epoch}, since their gradient overflowed"
            ));
        }
        Ok(sum / seen as f64)
    }

    /// Makes one update; returns the batch's loss in nats per prediction, or NaN if the gradient of the weights is not finite.
    fn step(&mut self, train: &O::Examples, rows: &[usize], predictions: usize) -> Result<f64, O::Error> {
        let needed = rows.len().div_ceil((MAX_TOKENS / longest::<O>(train, rows).max(1)).max(1));
        let parts = divided(rows, self.shards.len().max(needed));
        let (step, steps) = (self.adam.steps() + 1, self.steps);
        self.shards.iter_mut().for_each(|shard| shard.begin_step(step, steps));
        let (mut losses, mut total) = (Vec::new(), None);
        for together in parts.chunks(self.shards.len()) {
            let results: Vec<(f64, Vec<Tensor>)> = self
                .shards
                .par_iter_mut()
                .zip(together)
                .map(|(shard, rows)| {
                    let loss = shard.loss(train, rows)? / predictions as f64;
                    Ok((loss.double_value(&[]), gradients(&loss, shard.weights())))
                })
                .collect::<Result<_, O::Error>>()?;
            let (found, gradients): (Vec<f64>, Vec<Vec<Tensor>>) = results.into_iter().unzip();
            losses.extend(found);
            add(&mut total, gradients);
        }
        let learning_rate = self.learning_rate(step);
        let norm = self.adam.update(&total.unwrap_or_default(), learning_rate, self.clip_norm);
        Ok(if norm.is_finite() { losses.iter().sum() } else { f64::NAN })
    }

    /// Returns the learning rate of a step, counted from 1.
    pub(crate) fn learning_rate(&self, step: usize) -> f64 {
        self.objective().learning_rate(step, self.steps)
    }

    /// Evaluates the model on the development set, without dropout or label smoothing.
    pub(crate) fn dev_score(&mut self, dev: &O::Examples) -> Result<DevScore, O::Error> {
        let batches = self.objective().dev_batches(dev);
        let threads = self.shards.len();
        let parts: Vec<Validation<O::Outcome>> = self
            .shards
            .par_iter_mut()
            .enumerate()
            .map(|(first, shard)| {
                let mut total = Validation { loss: 0.0, outcomes: Vec::new() };
                for rows in batches.iter().skip(first).step_by(threads) {
                    let part = no_grad(|| shard.validate(dev, rows))?;
                    total.loss += part.loss;
                    total.outcomes.extend(part.outcomes);
                }
                Ok(total)
            })
            .collect::<Result<_, O::Error>>()?;
        let sum: f64 = parts.iter().map(|part| part.loss).sum();
        let outcomes: Vec<_> = parts.into_iter().flat_map(|part| part.outcomes).collect();
        let score = self.shards[0].score(&outcomes)?;
        Ok(DevScore { loss: sum / O::predictions(dev, &batches.concat()) as f64, score })
    }
}

/// Returns the error for a loss or gradient that is not finite.
pub(crate) fn diverged(epoch: usize, step: usize) -> Error {
    let advice = "lower the learning rate or clip_norm";
    Error::Invalid(format!("the loss is no longer finite in epoch {epoch} after step {step}: {advice}"))
}

/// Returns the number of tokens in these rows, including padding.
pub(crate) fn padded<O: Objective>(examples: &O::Examples, rows: &[usize]) -> usize {
    rows.len() * longest::<O>(examples, rows)
}

/// Returns the length of the longest row, in tokens.
fn longest<O: Objective>(examples: &O::Examples, rows: &[usize]) -> usize {
    rows.iter().map(|&row| O::tokens(examples, row)).max().unwrap_or(0)
}

/// Cuts `rows` into at most `parts` pieces of similar length, none of them empty.
fn divided(rows: &[usize], parts: usize) -> Vec<&[usize]> {
    let bound = |part: usize| rows.len() * part / parts;
    (0..parts).map(|part| &rows[bound(part)..bound(part + 1)]).filter(|piece| !piece.is_empty()).collect()
}

/// Returns the seed of an epoch's batches and dropout.
pub(crate) fn epoch_seed(seed: u64, epoch: usize) -> u64 {
    seed.wrapping_mul(1_000_003).wrapping_add(epoch as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Up to four threads share any batch; more need 512 tokens per thread.
    #[test]
    fn every_gradient_is_worth_its_memory() {
        assert_eq!([1, 2, 4].map(|threads| shards(threads, 100)), [1, 2, 4]);
        assert_eq!(
            (shards(24, 100), shards(24, 4_096), shards(6, 4_096), shards(24, 100_000)),
            (4, 8, 6, 24)
        );
    }

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
}
