//! A model in training, whatever its task.
use std::fmt::Debug;
use std::path::Path;

use core_masking::{GatedModel, Gates, HeadLayout, ModelConfig, ModelDropout, Weights};
use tch::Tensor;
use training::{GatedLearner, Learner, Validation, trainable};

use crate::error::Error;

/// What a training minimises, in which batches and at which rates.
pub(crate) trait Objective: Copy + Debug + Send {
    /// The model that is trained.
    type Model: GatedModel;

    /// A split, as token ids.
    type Examples: Sync;

    /// What a score is made of, for each example.
    type Outcome: Send;

    /// Tensors that stay as they are.
    const FROZEN: &'static [&'static str] = &[];

    /// See [`Learner::tokens`].
    fn tokens(examples: &Self::Examples, row: usize) -> usize;

    /// See [`Learner::predictions`].
    fn predictions(examples: &Self::Examples, rows: &[usize]) -> usize;

    /// See [`Learner::loss`].
    fn loss(
        &self,
        model: &Self::Model,
        examples: &Self::Examples,
        rows: &[usize],
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Result<Tensor, Error>;

    /// See [`Learner::validate`].
    fn validate(
        model: &Self::Model,
        examples: &Self::Examples,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Validation<Self::Outcome>, Error>;

    /// See [`Learner::score`]. Unless a task says otherwise the loss says all.
    fn score(&self, _: &[Self::Outcome]) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    /// See [`Learner::batches`].
    fn batches(&self, train: &Self::Examples, seed: u64) -> Vec<Vec<usize>>;

    /// See [`Learner::dev_batches`].
    fn dev_batches(&self, dev: &Self::Examples) -> Vec<Vec<usize>>;

    /// See [`Learner::learning_rate`].
    fn learning_rate(&self, step: usize, steps: usize) -> f64;
}

/// A model in training.
#[derive(Debug)]
pub(crate) struct TaskLearner<O: Objective> {
    objective: O,
    model: O::Model,
    open: Gates,
    dropout: ModelDropout,
}

impl<O: Objective> TaskLearner<O> {
    /// On a copy of the model's weights.
    pub(crate) fn new(model: &O::Model, objective: O) -> Result<Self, Error> {
        Self::on(model, trainable(model.weights(), O::FROZEN), objective)
    }

    fn on(model: &O::Model, weights: Weights, objective: O) -> Result<Self, Error> {
        let open = Gates::open(&model.layout(), model.options());
        let model = O::Model::new(model.config().clone(), weights)?;
        Ok(Self { objective, model, open, dropout: ModelDropout::OFF })
    }
}

impl<O: Objective> Learner for TaskLearner<O> {
    type Examples = O::Examples;
    type Outcome = O::Outcome;
    type Error = Error;

    fn share(&self) -> Result<Self, Error> {
        Self::on(&self.model, self.model.weights().share(), self.objective)
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

    fn tokens(examples: &O::Examples, row: usize) -> usize {
        O::tokens(examples, row)
    }

    fn predictions(examples: &O::Examples, rows: &[usize]) -> usize {
        O::predictions(examples, rows)
    }

    fn loss(&self, examples: &O::Examples, rows: &[usize]) -> Result<Tensor, Error> {
        self.loss_under(examples, rows, &self.open)
    }

    fn validate(&self, examples: &O::Examples, rows: &[usize]) -> Result<Validation<O::Outcome>, Error> {
        self.validate_under(examples, rows, &self.open)
    }

    fn score(&self, outcomes: &[O::Outcome]) -> Result<Option<f64>, Error> {
        self.objective.score(outcomes)
    }

    fn batches(&self, train: &O::Examples, seed: u64) -> Vec<Vec<usize>> {
        self.objective.batches(train, seed)
    }

    fn dev_batches(&self, dev: &O::Examples) -> Vec<Vec<usize>> {
        self.objective.dev_batches(dev)
    }

    fn learning_rate(&self, step: usize, steps: usize) -> f64 {
        self.objective.learning_rate(step, steps)
    }
}

impl<O: Objective> GatedLearner for TaskLearner<O> {
    fn layout(&self) -> HeadLayout {
        self.model.layout()
    }

    fn loss_under(&self, examples: &O::Examples, rows: &[usize], gates: &Gates) -> Result<Tensor, Error> {
        self.objective.loss(&self.model, examples, rows, gates, &self.dropout)
    }

    fn validate_under(
        &self,
        examples: &O::Examples,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Validation<O::Outcome>, Error> {
        O::validate(&self.model, examples, rows, gates)
    }
}
