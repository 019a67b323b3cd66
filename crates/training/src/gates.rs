//! Trained gates: the rules that close them, their start, and their saved state.
//!
//! The gates of [`HardConcrete`] are sampled once per batch, and the loss has a penalty on their expected number (Voita et al. 2019,
//! Section 6.1). Alternatively a fixed number of gates is sampled ([`subset`]), without a penalty.
use std::path::Path;

use clap::ValueEnum;
use core_masking::{Gates, HardConcrete, HeadId, HeadLayout, HeadSet, Weights, subset};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use tch::{Device, Kind, Tensor};

use crate::error::Error;

/// File of the gates, next to the model.
pub(crate) const FILE: &str = "gates.safetensors";

/// Random streams for gates; batches, dropout and weights draw from stream 0.
const NOISE: u64 = 1;
const START: u64 = 2;

const LOG_ALPHA: &str = "gates.log_alpha";
const MULTIPLIER: &str = "gates.multiplier";
const HISTORY: &str = "gates.history";

/// Default learning rate of gates, constant over all steps.
pub const GATE_RATE: f64 = 0.05;

/// Learning rate of the multiplier: each update raises it by this times the excess of open heads, as a share of all heads. So gates reach
/// their target within a few hundred updates, whether a head is worth 0.002 or 0.02 nats per prediction.
pub const MULTIPLIER_RATE: f64 = 0.2;

/// Initial `log_alpha` of an open gate: it is closed with a probability of 6%.
const OPEN: f32 = 2.0;

/// Share of the steps in which the target falls from all heads to the wanted number.
const FALL: f64 = 0.5;

/// ρ of the augmented Lagrangian, which keeps the gates near their target until the multiplier has adapted.
const DAMPING: f64 = 20.0;

/// Training of gates.
#[derive(Debug, Clone, PartialEq)]
pub struct GateTraining {
    /// The heads that have a gate.
    pub heads: Vec<HeadId>,
    /// Rule by which gates close.
    pub closing: Closing,
    /// Learning rate of the gates, constant over all steps.
    pub learning_rate: f64,
    /// Seed of the samples.
    pub seed: u64,
}

/// Rule by which gates close.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Closing {
    /// Each gate is sampled independently; a penalty closes gates.
    Concrete {
        /// Gates before the first step.
        start: GateStart,
        /// Learning rate of the multiplier, if the penalty has one.
        multiplier_rate: f64,
        /// Penalty on open gates.
        penalty: Penalty,
    },
    /// A fixed number of gates is sampled. They start at random, and w of [`subset`] takes the place of `log_alpha`.
    Subset {
        /// Number of open gates, from 1 to all.
        open: usize,
        /// Takes the gates with the highest weights, without noise, and passes their gradients straight through.
        straight_through: bool,
    },
}

/// Gates before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GateStart {
    /// Nearly open, log_alpha at 2
    Open,
    /// At random, closed about as often as open (Glorot-uniform), as in the authors' code
    Authors,
}

/// Penalty on open gates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Penalty {
    /// Adds λ times the expected number of open gates to the loss per prediction (Voita et al. 2019, Equation 6).
    Lambda(f64),
    /// Keeps a given number of heads open: adds `μ d + ρ d² / 2` to the loss, where d is the expected number of open gates minus the
    /// target, as a share of the heads. This is the augmented Lagrangian of Hestenes (1969), <https://doi.org/10.1007/BF00927673>. Each
    /// update first adds d times the rate to μ. The target falls from all heads to this number in the first half of the steps, as in Wang
    /// et al. (2020), Section 3.3, <https://arxiv.org/abs/1910.04732>.
    ///
    /// Differs from Wang et al., who train a second multiplier for d², and both by Adam: within a few hundred updates these rise far too
    /// high, and too many gates close.
    Heads(usize),
}

impl Penalty {
    /// Returns the heads that are closed at test time: those whose gates are more likely 0 than 1, or all but the wanted number.
    pub fn closed(self, gates: &HardConcrete) -> HeadSet {
        match self {
            Self::Lambda(_) => gates.closed(),
            Self::Heads(open) => gates.closed_but(open),
        }
    }
}

impl Closing {
    /// Returns the heads that are closed at test time.
    pub fn closed(self, gates: &HardConcrete) -> HeadSet {
        match self {
            Self::Concrete { penalty, .. } => penalty.closed(gates),
            Self::Subset { open, .. } => gates.closed_but(open),
        }
    }

    /// Returns the wanted number of open heads if it was given. Gates reach it at the end of their training, not before.
    pub fn wanted(self) -> Option<usize> {
        match self {
            Self::Concrete { penalty: Penalty::Heads(open), .. } | Self::Subset { open, .. } => Some(open),
            Self::Concrete { penalty: Penalty::Lambda(_), .. } => None,
        }
    }
}

impl GateTraining {
    /// Returns the initial `log_alpha`, `[heads]`; `per_module` gives the number of heads in a head's module.
    fn first(&self, per_module: impl Fn(HeadId) -> usize) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(START);
        let mut first = |&id: &HeadId| match self.closing {
            Closing::Concrete { start: GateStart::Open, .. } => OPEN,
            // For a tensor [1, heads, 1, 1] TensorFlow assumes a kernel with `heads` inputs and outputs: ±sqrt(6 / 2 heads). The tensor
            // [layers, heads] of Li et al. (2021) gives this limit for BERT, which has as many layers as heads.
            Closing::Concrete { start: GateStart::Authors, .. } | Closing::Subset { .. } => {
                let limit = (3.0 / per_module(id) as f32).sqrt();
                rng.random_range(-limit..limit)
            }
        };
        self.heads.iter().map(&mut first).collect()
    }
}

/// Trained gates with the state of their training.
#[derive(Debug)]
pub(crate) struct TrainedGates {
    plan: GateTraining,
    gates: HardConcrete,
    /// μ; 0 if no number of heads is wanted.
    multiplier: f64,
    /// `log_alpha` before each epoch so far.
    history: Vec<Tensor>,
    /// Noise for the next update.
    noise: Tensor,
    /// Target number of open gates for the next update.
    target: f64,
    /// Temperature at which a subset is sampled.
    temperature: f64,
}

impl TrainedGates {
    /// Returns the initial gates; `per_module` gives the number of heads in a head's module.
    pub(crate) fn start(plan: &GateTraining, per_module: impl Fn(HeadId) -> usize, device: Device) -> Self {
        let first = Tensor::from_slice(&plan.first(per_module)).to_device(device);
        Self::new(plan, &first, 0.0, Vec::new())
    }

    /// Loads saved gates.
    ///
    /// # Errors
    /// If the file is missing, or contains gates of other heads.
    pub(crate) fn load(plan: &GateTraining, folder: &Path, device: Device) -> Result<Self, Error> {
        let Saved { mut history, multiplier } = Saved::read(folder, &plan.heads, device)?;
        let last = history
            .pop()
            .ok_or_else(|| Error::Invalid(format!("`{}`: no epoch of gates", folder.join(FILE).display())))?;
        Ok(Self::new(plan, &last, multiplier, history))
    }

    fn new(plan: &GateTraining, log_alpha: &Tensor, multiplier: f64, history: Vec<Tensor>) -> Self {
        let trained = log_alpha.detach().copy().set_requires_grad(true);
        let heads = plan.heads.len();
        Self {
            gates: HardConcrete::new(plan.heads.clone(), trained),
            multiplier,
            noise: log_alpha.zeros_like(),
            target: heads as f64,
            temperature: subset::temperature(0.0),
            plan: plan.clone(),
            history,
        }
    }

    /// Returns gates that share the trained tensor, for another thread.
    pub(crate) fn share(&self) -> Self {
        Self {
            gates: self.gates.share(),
            noise: self.noise.shallow_clone(),
            history: Vec::new(),
            plan: self.plan.clone(),
            ..*self
        }
    }

    /// Records the gates at the start of an epoch.
    pub(crate) fn begin_epoch(&mut self) {
        self.history.push(self.gates.log_alpha().detach().copy());
    }

    /// Draws the noise for a step, counted from 1, of `steps`, and updates target and multiplier.
    pub(crate) fn begin_step(&mut self, step: usize, steps: usize) {
        let seed = self.plan.seed.wrapping_mul(1_000_003).wrapping_add(step as u64);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(NOISE);
        let noise: Vec<f32> = (0..self.plan.heads.len()).map(|_| rng.random()).collect();
        self.noise = Tensor::from_slice(&noise).to_device(self.noise.device());
        self.temperature = subset::temperature(step as f64 / steps as f64);
        if let Closing::Concrete { penalty: Penalty::Heads(wanted), multiplier_rate, .. } = self.plan.closing
        {
            let all = self.plan.heads.len() as f64;
            let fallen = (step as f64 / (FALL * steps as f64)).min(1.0);
            self.target = all - fallen * (all - wanted as f64);
            let excess = self.excess(&self.gates.expected_open().detach()).double_value(&[]);
            // rounded as when saved, so that a resumed run gives equal results
            self.multiplier = f64::from((self.multiplier + multiplier_rate * excess) as f32);
        }
    }

    /// Returns the number of open gates minus the target, as a share of the heads.
    fn excess(&self, open: &Tensor) -> Tensor {
        (open - self.target) / self.plan.heads.len() as f64
    }

    /// Returns the penalty per prediction on the expected open gates, a scalar; `None` if a subset is sampled.
    pub(crate) fn penalty(&self) -> Option<Tensor> {
        let Closing::Concrete { penalty, .. } = self.plan.closing else { return None };
        let open = self.gates.expected_open();
        Some(match penalty {
            Penalty::Lambda(lambda) => open * lambda,
            Penalty::Heads(_) => {
                let excess = self.excess(&open);
                &excess * self.multiplier + excess.square() * (0.5 * DAMPING)
            }
        })
    }

    /// Samples the gates of the current step.
    pub(crate) fn sample(&self, layout: &HeadLayout) -> Result<Gates, Error> {
        let weights = self.gates.log_alpha();
        let drawn = match self.plan.closing {
            Closing::Concrete { .. } => self.gates.sample(&self.noise),
            Closing::Subset { open, straight_through: true } => subset::straight_through(weights, open),
            Closing::Subset { open, .. } => subset::relaxed(weights, &self.noise, open, self.temperature),
        };
        Ok(Gates::of_heads(layout, self.gates.heads(), &drawn)?)
    }

    /// Returns the heads that are closed at test time.
    pub(crate) fn closed(&self) -> HeadSet {
        self.plan.closing.closed(&self.gates)
    }

    /// Returns the penalty per prediction on the heads that are open at test time.
    pub(crate) fn test_penalty(&self) -> f64 {
        match self.plan.closing {
            Closing::Concrete { penalty: Penalty::Lambda(lambda), .. } => {
                lambda * (self.plan.heads.len() - self.closed().len()) as f64
            }
            _ => 0.0,
        }
    }

    /// Returns the trained tensor with its name.
    pub(crate) fn named(&self) -> (String, Tensor) {
        (LOG_ALPHA.to_owned(), self.gates.log_alpha().shallow_clone())
    }

    /// Returns the learning rate of the tensor with this name if it belongs to the gates.
    pub(crate) fn rate(&self, name: &str) -> Option<f64> {
        (name == LOG_ALPHA).then_some(self.plan.learning_rate)
    }

    /// Writes what an exact resume needs, and the gates before each epoch.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), Error> {
        let now = self.gates.log_alpha().detach();
        let history: Vec<&Tensor> = self.history.iter().chain([&now]).collect();
        let multiplier = Tensor::from_slice(&[self.multiplier as f32]);
        let saved = [(HISTORY, Tensor::stack(&history, 0)), (MULTIPLIER, multiplier)];
        let saved = saved.map(|(name, tensor)| (name.to_owned(), tensor));
        Ok(Weights::from_tensors(saved).write(&folder.join(FILE))?)
    }
}

/// Returns the gates before the first epoch and after each, as saved in the folder of an epoch.
///
/// # Errors
/// If the file is missing, or contains gates of other heads.
pub fn gate_history(folder: &Path, heads: &[HeadId]) -> Result<Vec<HardConcrete>, Error> {
    let saved = Saved::read(folder, heads, Device::Cpu)?;
    Ok(saved.history.into_iter().map(|row| HardConcrete::new(heads.to_vec(), row)).collect())
}

/// Contents of the file that [`TrainedGates::save`] writes.
struct Saved {
    history: Vec<Tensor>,
    multiplier: f64,
}

impl Saved {
    fn read(folder: &Path, heads: &[HeadId], device: Device) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let saved = Weights::read(&path, (Kind::Float, device))?;
        let history = saved.get(HISTORY)?;
        let epochs = history.size().first().copied().unwrap_or_default().max(1);
        let inventory =
            vec![(HISTORY.to_owned(), vec![epochs, heads.len() as i64]), (MULTIPLIER.to_owned(), vec![1])];
        saved.check(&path, &inventory)?;
        let multiplier = saved.get(MULTIPLIER)?.double_value(&[0]);
        Ok(Self { history: history.unbind(0), multiplier })
    }
}

#[cfg(test)]
mod tests;
