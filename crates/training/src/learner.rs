//! A model in training: what a task minimises, with all heads open, some closed, or under gates that are trained.
//!
//! A model that is fine-tuned with a fixed set of closed heads goes the same way as one whose gates are trained, so that it is a
//! control of the latter.
use std::fmt::{Debug, Display};
use std::path::Path;

use core_masking::{GatedModel, Gates, HeadSet, ModelConfig, ModelDropout, Weights};
use tch::{Kind, Tensor};

use crate::error::Error;
use crate::gates::{GateTraining, TrainedGates};

/// Loss, score, batches and learning rates of a training.
pub trait Objective: Copy + Debug + Send {
    /// The model that is trained.
    type Model: GatedModel;

    /// A split, as token ids.
    type Examples: Sync;

    /// Ingredient of the score, of one example.
    type Outcome: Send;

    /// Faults, of the training and of the task.
    type Error: From<Error> + From<core_masking::Error> + From<durable::Error> + Display + Send;

    /// Names of tensors that are not trained.
    const FROZEN: &'static [&'static str] = &[];

    /// Tokens of a row, of its longer side if it has two.
    fn tokens(examples: &Self::Examples, row: usize) -> usize;

    /// The number of predictions in these rows, tokens or texts; losses are divided by it.
    fn predictions(examples: &Self::Examples, rows: &[usize]) -> usize;

    /// The loss that is minimised, in nats, summed over the predictions of these rows; a scalar. `gates`: of one row.
    ///
    /// # Errors
    /// If the model cannot take a row.
    fn loss(
        &self,
        model: &Self::Model,
        examples: &Self::Examples,
        rows: &[usize],
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Result<Tensor, Self::Error>;

    /// The loss in nats without dropout and smoothing, summed over the predictions of these rows. `gates`: of one row.
    ///
    /// # Errors
    /// If the model cannot take a row.
    fn validate(
        model: &Self::Model,
        examples: &Self::Examples,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Validation<Self::Outcome>, Self::Error>;

    /// The score of a split, higher is better, if the loss does not say all.
    ///
    /// # Errors
    /// If outcomes give no score.
    fn score(&self, _: &[Self::Outcome]) -> Result<Option<f64>, Self::Error> {
        Ok(None)
    }

    /// The batches of an epoch.
    fn batches(&self, train: &Self::Examples, seed: u64) -> Vec<Vec<usize>>;

    /// The batches of the development set.
    fn dev_batches(&self, dev: &Self::Examples) -> Vec<Vec<usize>>;

    /// The learning rate of a step, counted from 1; `steps` of all epochs.
    fn learning_rate(&self, step: usize, steps: usize) -> f64;
}

/// Loss and outcomes of a part of the development set.
#[derive(Debug)]
pub struct Validation<T> {
    /// In nats, summed.
    pub loss: f64,
    /// Ingredients of the score, if there is one.
    pub outcomes: Vec<T>,
}

impl<T> Validation<T> {
    /// From losses alone, of any shape.
    pub fn of_losses(losses: &Tensor) -> Self {
        Self { loss: losses.sum(Kind::Double).double_value(&[]), outcomes: Vec::new() }
    }
}

/// Treatment of the heads of a model that is fine-tuned.
#[derive(Debug, Clone, PartialEq)]
pub enum Gating {
    /// These are closed, all others open.
    Fixed(HeadSet),
    /// Gates are trained.
    Trained(GateTraining),
}

/// The heads of a model in training.
#[derive(Debug)]
enum Heads {
    /// All are open.
    Open,
    /// These are closed.
    Fixed(HeadSet),
    Trained(TrainedGates),
}

/// A model in training. Each thread has one, and all share their weights.
///
/// Under gates the best epoch is that of the lowest loss on the development set, with the heads closed that are closed at test
/// time, and the penalty of the others; otherwise that of the best score, if the objective has one.
#[derive(Debug)]
pub struct Learner<O: Objective> {
    objective: O,
    model: O::Model,
    dropout: ModelDropout,
    heads: Heads,
    /// Tensors of the model and, if gates are trained, theirs; those to be trained require gradients.
    weights: Weights,
}

impl<O: Objective> Learner<O> {
    /// A model with all heads open, on a copy of its weights.
    ///
    /// # Errors
    /// Never, since all tensors are there.
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

    /// The same model under gates. Of its tensors those stay as they are that `is_trained` does not hold for.
    ///
    /// - `saved`: the folder of an epoch, where learned gates go on from; they begin anew without one
    ///
    /// # Errors
    /// If the gates that were saved are missing, or are of other heads.
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

    /// Another one on the same weights, for another thread.
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

    /// All tensors; those to be trained require gradients.
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

    /// Prepares an epoch, whose dropout has this seed.
    pub(crate) fn begin_epoch(&mut self, seed: u64) {
        self.dropout = ModelDropout::new(self.model.config().dropout(), seed);
        if let Heads::Trained(gates) = &mut self.heads {
            gates.begin_epoch();
        }
    }

    /// Prepares an update: a step, counted from 1, of `steps` of all epochs.
    pub(crate) fn begin_step(&mut self, step: usize, steps: usize) {
        if let Heads::Trained(gates) = &mut self.heads {
            gates.begin_step(step, steps);
        }
    }

    /// The learning rate of a tensor that has one of its own: it does not decay, and its gradient is not clipped.
    pub(crate) fn own_rate(&self, name: &str) -> Option<f64> {
        match &self.heads {
            Heads::Trained(gates) => gates.rate(name),
            _ => None,
        }
    }

    /// The gates with these heads closed and all others open.
    fn closing(&self, heads: &HeadSet) -> Result<Gates, core_masking::Error> {
        Gates::masking(&self.model.layout(), std::slice::from_ref(heads), self.model.options())
    }

    /// The loss that is minimised, in nats, summed over the predictions of these rows; a scalar.
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

    /// The loss in nats without dropout and smoothing, summed over the predictions of these rows.
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

    /// The score of a split, higher is better, if the loss does not say all. It does under gates: a score would not know what
    /// heads cost.
    pub(crate) fn score(&self, outcomes: &[O::Outcome]) -> Result<Option<f64>, O::Error> {
        match self.heads {
            Heads::Open => self.objective.score(outcomes),
            _ => Ok(None),
        }
    }
}
