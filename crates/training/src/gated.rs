//! Fine-tuning under gates: those that are trained, or some heads closed from the first step to the last.
//!
//! A model that is fine-tuned with a fixed set of closed heads goes the same way as one whose gates are trained, so that it is a
//! control of the latter.
use std::path::Path;

use core_masking::{Gates, HeadLayout, HeadSet, Weights};
use tch::Tensor;

use crate::error::Error;
use crate::gates::{Concrete, GateTraining};
use crate::learner::{GatedLearner, Learner, Validation};

/// What is done to heads while a model is fine-tuned.
#[derive(Debug, Clone, PartialEq)]
pub enum Gating {
    /// These are closed, all others open.
    Fixed(HeadSet),
    /// Gates are trained.
    Trained(GateTraining),
}

/// The heads of a model in training.
#[derive(Debug)]
enum State {
    Fixed(HeadSet),
    Trained(Concrete),
}

/// A model in training under gates. Its best epoch is that of the lowest loss on the development set, with the heads closed
/// that are closed at test time, and the penalty of the others.
#[derive(Debug)]
pub struct Gated<L> {
    model: L,
    layout: HeadLayout,
    state: State,
    /// Those of the model, and what is trained of the gates.
    weights: Weights,
}

impl<L: GatedLearner> Gated<L> {
    /// A model before the first step; of its tensors those stay as they are that `is_trained` does not hold for.
    pub fn start(model: L, gating: &Gating, is_trained: impl Fn(&str) -> bool) -> Self {
        freeze(model.weights(), is_trained);
        let layout = model.layout();
        let per_module = |id: core_masking::HeadId| {
            let module = layout.module(id.attention(), id.layer_index());
            module.shape.heads
        };
        let state = match gating {
            Gating::Fixed(closed) => State::Fixed(closed.clone()),
            Gating::Trained(plan) => {
                State::Trained(Concrete::start(plan, per_module, model.weights().options().1))
            }
        };
        Self::on(model, state)
    }

    /// A model in the folder of an epoch, where its gates are too.
    ///
    /// # Errors
    /// If those are missing, or are of other heads.
    pub fn resume(
        model: L,
        gating: &Gating,
        is_trained: impl Fn(&str) -> bool,
        folder: &Path,
    ) -> Result<Self, Error> {
        freeze(model.weights(), is_trained);
        let state = match gating {
            Gating::Fixed(closed) => State::Fixed(closed.clone()),
            Gating::Trained(plan) => {
                State::Trained(Concrete::load(plan, folder, model.weights().options().1)?)
            }
        };
        Ok(Self::on(model, state))
    }

    fn on(model: L, state: State) -> Self {
        let own = model.weights().iter().map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
        let weights = match &state {
            State::Fixed(_) => Weights::from_tensors(own),
            State::Trained(gates) => Weights::from_tensors(own.chain([gates.named()])),
        };
        Self { layout: model.layout(), model, state, weights }
    }

    /// The gates with these heads closed and all others open.
    fn closing(&self, heads: &HeadSet) -> Result<Gates, Error> {
        Ok(Gates::masking(&self.layout, std::slice::from_ref(heads), self.model.weights().options())?)
    }
}

/// Leaves tensors out of training.
fn freeze(weights: &Weights, is_trained: impl Fn(&str) -> bool) {
    for (_, tensor) in weights.iter().filter(|(name, _)| !is_trained(name)) {
        let _ = tensor.set_requires_grad(false);
    }
}

impl<L: GatedLearner> Learner for Gated<L> {
    type Examples = L::Examples;
    type Outcome = L::Outcome;
    type Error = L::Error;

    fn share(&self) -> Result<Self, L::Error> {
        let state = match &self.state {
            State::Fixed(closed) => State::Fixed(closed.clone()),
            State::Trained(gates) => State::Trained(gates.share()),
        };
        Ok(Self::on(self.model.share()?, state))
    }

    fn weights(&self) -> &Weights {
        &self.weights
    }

    fn save(&self, folder: &Path) -> Result<(), L::Error> {
        self.model.save(folder)?;
        match &self.state {
            State::Fixed(_) => Ok(()),
            State::Trained(gates) => Ok(gates.save(folder)?),
        }
    }

    fn begin_epoch(&mut self, seed: u64) {
        self.model.begin_epoch(seed);
        if let State::Trained(gates) = &mut self.state {
            gates.begin_epoch();
        }
    }

    fn begin_step(&mut self, step: usize, steps: usize) {
        self.model.begin_step(step, steps);
        if let State::Trained(gates) = &mut self.state {
            gates.begin_step(step, steps);
        }
    }

    fn tokens(examples: &L::Examples, row: usize) -> usize {
        L::tokens(examples, row)
    }

    fn predictions(examples: &L::Examples, rows: &[usize]) -> usize {
        L::predictions(examples, rows)
    }

    fn loss(&self, examples: &L::Examples, rows: &[usize]) -> Result<Tensor, L::Error> {
        match &self.state {
            State::Fixed(closed) => self.model.loss_under(examples, rows, &self.closing(closed)?),
            State::Trained(gates) => {
                let loss = self.model.loss_under(examples, rows, &gates.sample(&self.layout)?)?;
                Ok(loss + gates.penalty() * L::predictions(examples, rows) as f64)
            }
        }
    }

    fn validate(&self, examples: &L::Examples, rows: &[usize]) -> Result<Validation<L::Outcome>, L::Error> {
        let (closed, penalty) = match &self.state {
            State::Fixed(closed) => (closed.clone(), 0.0),
            State::Trained(gates) => (gates.closed(), gates.test_penalty()),
        };
        let found = self.model.validate_under(examples, rows, &self.closing(&closed)?)?;
        Ok(Validation { loss: found.loss + penalty * L::predictions(examples, rows) as f64, ..found })
    }

    /// The loss says all: a score would not know what heads cost.
    fn score(&self, _: &[L::Outcome]) -> Result<Option<f64>, L::Error> {
        Ok(None)
    }

    fn batches(&self, train: &L::Examples, seed: u64) -> Vec<Vec<usize>> {
        self.model.batches(train, seed)
    }

    fn dev_batches(&self, dev: &L::Examples) -> Vec<Vec<usize>> {
        self.model.dev_batches(dev)
    }

    fn learning_rate(&self, step: usize, steps: usize) -> f64 {
        self.model.learning_rate(step, steps)
    }

    fn own_rate(&self, name: &str) -> Option<f64> {
        match &self.state {
            State::Fixed(_) => None,
            State::Trained(gates) => gates.rate(name),
        }
    }
}
