//! What the training loop asks of a model.
use std::path::Path;

use core_masking::{Gates, HeadLayout, Weights};
use tch::Tensor;

use crate::error::Error;

/// A model in training, with what it needs to compute a loss. Each thread has one, and all share their weights.
pub trait Learner: Send + Sized {
    /// A split, as token ids.
    type Examples: Sync;

    /// What a score is made of, for each example.
    type Outcome: Send;

    /// What can go wrong besides the training itself.
    type Error: From<Error> + From<durable::Error> + Send;

    /// Another one on the same weights.
    fn share(&self) -> Result<Self, Self::Error>;

    /// The tensors; those to be trained require gradients.
    fn weights(&self) -> &Weights;

    /// Writes the model as a Hugging Face folder.
    fn save(&self, folder: &Path) -> Result<(), Self::Error>;

    /// What comes before an epoch, whose dropout has this seed.
    fn begin_epoch(&mut self, seed: u64);

    /// Tokens of a row, of its longer side if it has two.
    fn tokens(examples: &Self::Examples, row: usize) -> usize;

    /// The number of predictions in these rows, tokens or texts; losses are divided by it.
    fn predictions(examples: &Self::Examples, rows: &[usize]) -> usize;

    /// What is minimised, in nats, summed over the predictions of these rows; a scalar.
    fn loss(&self, examples: &Self::Examples, rows: &[usize]) -> Result<Tensor, Self::Error>;

    /// The loss in nats without dropout and smoothing, summed over the predictions of these rows.
    fn validate(
        &self,
        examples: &Self::Examples,
        rows: &[usize],
    ) -> Result<Validation<Self::Outcome>, Self::Error>;

    /// The score of a split, higher is better, if the loss does not say all.
    fn score(&self, outcomes: &[Self::Outcome]) -> Result<Option<f64>, Self::Error>;

    /// The batches of an epoch.
    fn batches(&self, train: &Self::Examples, seed: u64) -> Vec<Vec<usize>>;

    /// The batches of the development set.
    fn dev_batches(&self, dev: &Self::Examples) -> Vec<Vec<usize>>;

    /// The learning rate of a step, counted from 1; `steps` of all epochs.
    fn learning_rate(&self, step: usize, steps: usize) -> f64;

    /// The learning rate of a tensor that has one of its own: it does not decay, and its gradient is not clipped.
    fn own_rate(&self, _name: &str) -> Option<f64> {
        None
    }

    /// What comes before an update: a step, counted from 1, of `steps` of all epochs.
    fn begin_step(&mut self, _step: usize, _steps: usize) {}
}

/// A learner whose heads can be gated.
pub trait GatedLearner: Learner {
    /// The heads of the model.
    fn layout(&self) -> HeadLayout;

    /// [`Learner::loss`] under these gates, of one row.
    fn loss_under(
        &self,
        examples: &Self::Examples,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Tensor, Self::Error>;

    /// [`Learner::validate`] under these gates, of one row.
    fn validate_under(
        &self,
        examples: &Self::Examples,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Validation<Self::Outcome>, Self::Error>;
}

/// What a part of the development set tells about a model.
#[derive(Debug)]
pub struct Validation<T> {
    /// In nats, summed.
    pub loss: f64,
    /// What the score is made of, if there is one.
    pub outcomes: Vec<T>,
}

/// The same weights as leaves that require gradients, but for those called `frozen`.
pub fn trainable(weights: &Weights, frozen: &[&str]) -> Weights {
    Weights::from_tensors(weights.iter().map(|(name, tensor)| {
        let tensor = tensor.detach().copy();
        (name.to_owned(), if frozen.contains(&name) { tensor } else { tensor.set_requires_grad(true) })
    }))
}
