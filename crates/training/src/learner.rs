//! A model in training: a task's objective, with all heads open, some closed, or with trained gates.
//!
//! Fine-tuning with a fixed set of closed heads shares its code with training gates, so it is a control for trained gates.
use std::fmt::{Debug, Display};
use std::path::Path;

use core_masking::{GatedModel, Gates, HeadSet, ModelConfig, ModelDropout, Weights};
use tch::{Kind, Tensor};

use crate::error::Error;
use crate::gates::{GateTraining, TrainedGates};

/// Loss, score, batches and learning rates of a task.
pub trait Objective: Copy + Debug + Send {
    /// The model that is trained.
    type Model: GatedModel;

    /// A tokenized split.
    type Examples: Sync;

    /// Statistic of an example for the score.
    type Outcome: Send;

    /// Error of the training or the task.
    type Error: From<Error> + From<core_masking::Error> + From<durable::Error> + Display + Send;

    /// Names of tensors that are not trained.
    const FROZEN: &'static [&'static str] = &[];

    /// Returns the number of tokens in a row; the longer side counts if it has two.
    fn tokens(examples: &Self::Examples, row: usize) -> usize;

    /// Returns the number of predictions (tokens or texts) in these rows, by which losses are divided.
    fn predictions(examples: &Self::Examples, rows: &[usize]) -> usize;

    /// Computes the training loss in nats, summed over the predictions of these rows; a scalar. `gates` has one row.
    ///
    /// # Errors
    /// If a row does not fit the model.
    fn loss(
        &self,
        model: &Self::Model,
        examples: &Self::Examples,
        rows: &[usize],
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Result<Tensor, Self::Error>;

    /// Computes the loss in nats without dropout and smoothing, summed over the predictions of these rows. `gates` has one row.
    ///
    /// # Errors
    /// If a row does not fit the model.
    fn validate(
        model: &Self::Model,
        examples: &Self::Examples,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Validation<Self::Outcome>, Self::Error>;

    /// Returns the score of a split, higher is better; `None` to choose epochs by the loss.
    fn score(&self, _: &[Self::Outcome]) -> Result<Option<f64>, Self::Error> {
        Ok(None)
    }

    /// Returns the batches of an epoch.
    fn batches(&self, train: &Self::Examples, seed: u64) -> Vec<Vec<usize>>;

    /// Returns the batches of the development set.
    fn dev_batches(&self, dev: &Self::Examples) -> Vec<Vec<usize>>;

    /// Returns the learning rate of a step, counted from 1, out of `steps` over all epochs.
    fn learning_rate(&self, step: usize, steps: usize) -> f64;
}

/// Loss and outcomes of a part of the development set.
#[derive(Debug)]
pub struct Validation<T> {
    /// Sum, in nats.
    pub loss: f64,
    /// Statistics for the score; empty if the task has none.
    pub outcomes: Vec<T>,
}

impl<T> Validation<T> {
    /// Sums losses of any shape.
    pub fn of_losses(losses: &Tensor) -> Self {
        Self { loss: losses.sum(Kind::Double).double_value(&[]), outcomes: Vec::new() }
    }
}

/// How the heads of a model are treated in fine-tuning.
#[derive(Debug, Clone, PartialEq)]
pub enum Gating {
    /// These heads are closed, all others open.
    Fixed(HeadSet),
    /// Gates are trained.
    Trained(GateTraining),
}

/// The heads of a model in training.
#[derive(Debug)]
enum Heads {
    /// All heads are open.
    Open,
    /// These heads are closed.
    Fixed(HeadSet),
    Trained(TrainedGates),
}

/// A model in training; each thread has one, and all share their weights.
///
/// With gates, the best epoch has the lowest development loss with heads closed as at test time, including the penalty on open heads.
/// Otherwise it has the best score if the objective defines one.
#[derive(Debug)]
pub struct Learner<O: Objective> {
    objective: O,
    model: O::Model,
    dropout: ModelDropout,
    heads: Heads,
    /// Tensors of the model and of trained gates; tensors to be trained require gradients.
    weights: Weights,
}

impl<O: Objective> Learner<O> {
    /// Creates a learner with all heads open, on a copy of the model's weights; never fails, since all tensors exist.
    pub fn new(model: &O::Model, objective: O) -> Result<Self, core_masking::Error> {
        let trainable = |(name, tensor): (&str, &Tensor)| {
            let tensor = tensor.detach().copy();
            let is_frozen = O::FROZEN.contains(&name);
            (name.to_owned(), if is_frozen { tensor } else { tensor.set_requires_grad(true) })
        };
        let weights = Weights::from_tensors(model.weights().iter().map(trainable));
        Self::on(model, weights, objective, Heads::Open)
    }

    fn on(
        model: &O::Model,
        weights: Weights,
        objective: O,
        heads: Heads,
    ) -> Result<Self, core_masking::Error> {
        let model = O::Model::new(model.config().clone(), weights)?;
        let own = model.weights().iter().map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
        let weights = match &heads {
            Heads::Trained(gates) => Weights::from_tensors(own.chain([gates.named()])),
            _ => Weights::from_tensors(own),
        };
        Ok(Self { objective, model, dropout: ModelDropout::OFF, heads, weights })
    }

    /// Adds gates to the learner, and freezes the tensors for which `is_trained` is false.
    ///
    /// - `saved`: folder of the epoch from which gates are resumed; `None` to start them
    ///
    /// # Errors
    /// If saved gates are missing, or belong to other heads.
    pub fn gated(
        self,
        gating: &Gating,
        is_trained: impl Fn(&str) -> bool,
        saved: Option<&Path>,
    ) -> Result<Self, Error> {
        let Self { objective, model, .. } = self;
        for (_, tensor) in model.weights().iter().filter(|(name, _)| !is_trained(name)) {
            let _ = tensor.set_requires_grad(false);
        }
        let (layout, (_, device)) = (model.layout(), model.options());
        let heads = match (gating, saved) {
            (Gating::Fixed(closed), _) => Heads::Fixed(closed.clone()),
            (Gating::Trained(plan), Some(folder)) => {
                Heads::Trained(TrainedGates::load(plan, folder, device)?)
            }
            (Gating::Trained(plan), None) => {
                let of_module =
                    |id: core_masking::HeadId| layout.module(id.attention(), id.layer_index()).shape.heads;
                Heads::Trained(TrainedGates::start(plan, of_module, device))
            }
        };
        Ok(Self::on(&model, model.weights().share(), objective, heads)?)
    }

    /// Returns a learner that shares the weights, for another thread.
    pub(crate) fn share(&self) -> Result<Self, core_masking::Error> {
        let heads = match &self.heads {
            Heads::Open => Heads::Open,
            Heads::Fixed(closed) => Heads::Fixed(closed.clone()),
            Heads::Trained(gates) => Heads::Trained(gates.share()),
        };
        Self::on(&self.model, self.model.weights().share(), self.objective, heads)
    }

    pub(crate) fn objective(&self) -> &O {
        &self.objective
    }

    /// Returns all tensors; those to be trained require gradients.
    pub(crate) fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Writes the model as a Hugging Face folder, with its gates.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), Error> {
        self.model.save(folder)?;
        match &self.heads {
            Heads::Trained(gates) => gates.save(folder),
            _ => Ok(()),
        }
    }

    /// Prepares an epoch; `seed` is for dropout.
    pub(crate) fn begin_epoch(&mut self, seed: u64) {
        self.dropout = ModelDropout::new(self.model.config().dropout(), seed);
        if let Heads::Trained(gates) = &mut self.heads {
            gates.begin_epoch();
        }
    }

    /// Prepares an update: a step, counted from 1, out of `steps` over all epochs.
    pub(crate) fn begin_step(&mut self, step: usize, steps: usize) {
        if let Heads::Trained(gates) = &mut self.heads {
            gates.begin_step(step, steps);
        }
    }

    /// Returns the learning rate of a tensor that is not on the schedule, does not decay and is not clipped.
    pub(crate) fn own_rate(&self, name: &str) -> Option<f64> {
        match &self.heads {
            Heads::Trained(gates) => gates.rate(name),
            _ => None,
        }
    }

    /// Returns gates that close these heads.
    fn closing(&self, heads: &HeadSet) -> Result<Gates, core_masking::Error> {
        Gates::masking(&self.model.layout(), std::slice::from_ref(heads), self.model.options())
    }

    /// Computes the training loss in nats, summed over the predictions of these rows; a scalar.
    pub(crate) fn loss(&self, examples: &O::Examples, rows: &[usize]) -> Result<Tensor, O::Error> {
        let under = |gates: &Gates| self.objective.loss(&self.model, examples, rows, gates, &self.dropout);
        match &self.heads {
            Heads::Open => under(&self.closing(&HeadSet::none())?),
            Heads::Fixed(closed) => under(&self.closing(closed)?),
            Heads::Trained(gates) => {
                let loss = under(&gates.sample(&self.model.layout())?)?;
                let penalty = gates.penalty().map(|penalty| penalty * O::predictions(examples, rows) as f64);
                Ok(penalty.map_or_else(|| loss.shallow_clone(), |penalty| &loss + penalty))
            }
        }
    }

    /// Computes the loss in nats without dropout and smoothing, summed over the predictions of these rows.
    pub(crate) fn validate(
        &self,
        examples: &O::Examples,
        rows: &[usize],
    ) -> Result<Validation<O::Outcome>, O::Error> {
        let (closed, penalty) = match &self.heads {
            Heads::Open => (HeadSet::none(), 0.0),
            Heads::Fixed(closed) => (closed.clone(), 0.0),
            Heads::Trained(gates) => (gates.closed(), gates.test_penalty()),
        };
        let found = O::validate(&self.model, examples, rows, &self.closing(&closed)?)?;
        Ok(Validation { loss: found.loss + penalty * O::predictions(examples, rows) as f64, ..found })
    }

    /// Returns the score of a split, higher is better; `None` to choose epochs by the loss. With gates the loss decides, because a score
    /// does not include the penalty on open heads.
    pub(crate) fn score(&self, outcomes: &[O::Outcome]) -> Result<Option<f64>, O::Error> {
        match self.heads {
            Heads::Open => self.objective.score(outcomes),
            _ => Ok(None),
        }
    }
}
