//! Gates that are trained: what closes them, how they begin, and what is saved of them.
//!
//! Voita et al. (2019), Section 6.1: the gates of [`HardConcrete`] are drawn once for each batch, and the loss has a term for
//! their expected number. Or a given number of them is drawn, [`subset`], and the loss has no such term.
use std::path::Path;

use clap::ValueEnum;
use core_masking::{Gates, HardConcrete, HeadId, HeadLayout, HeadSet, Weights, subset};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use tch::{Device, Kind, Tensor};

use crate::error::Error;

/// File of the gates beside a model.
pub(crate) const FILE: &str = "gates.safetensors";

/// Streams of random numbers of a seed that others do not draw from: batches, dropout and weights draw from stream 0.
const NOISE: u64 = 1;
const START: u64 = 2;

const LOG_ALPHA: &str = "gates.log_alpha";
const MULTIPLIER: &str = "gates.multiplier";
const HISTORY: &str = "gates.history";

/// Learning rate of gates, the same in all steps, unless another is asked for.
pub const GATE_RATE: f64 = 0.05;

/// Rate of the multiplier: it rises by this times the share of the heads that are open beyond the target, in each update. So gates
/// arrive within some hundred updates, whether a head is worth 0.002 nats per prediction or 0.02.
pub const MULTIPLIER_RATE: f64 = 0.2;

/// `log_alpha` of a gate that is to begin open: it is closed with a probability of 6 %.
const OPEN: f32 = 2.0;

/// The share of the steps in which the target falls from all heads to the number that is wanted.
const FALL: f64 = 0.5;

/// ρ of the augmented Lagrangian: what keeps the gates near their target while the multiplier is still on its way.
const DAMPING: f64 = 20.0;

/// Training of gates.
#[derive(Debug, Clone, PartialEq)]
pub struct GateTraining {
    /// The heads that have one.
    pub heads: Vec<HeadId>,
    /// Rule by which they close.
    pub closing: Closing,
    /// Of the gates, the same in all steps.
    pub learning_rate: f64,
    /// Of the draws.
    pub seed: u64,
}

/// Rule by which gates close.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Closing {
    /// Each is drawn by itself, and closed by a penalty.
    Concrete {
        /// Gates before the first step.
        start: GateStart,
        /// Learning rate of the multiplier, where there is one.
        multiplier_rate: f64,
        /// Penalty that closes them.
        penalty: Penalty,
    },
    /// A given number is drawn, from 1 to all. They begin at random, and w of [`subset`] stands in the place of `log_alpha`.
    Subset {
        /// The number.
        open: usize,
        /// Takes the greatest without noise, and their gradients as they are.
        straight_through: bool,
    },
}

/// Gates before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GateStart {
    /// Nearly open, log_alpha at 2
    Open,
    /// At random, about as often closed as open (Glorot-uniform), as in the authors' code
    Authors,
}

/// Penalty that closes gates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Penalty {
    /// The loss, per prediction, has this times the expected number of open gates: λ of Voita et al. (2019), Equation 6.
    Lambda(f64),
    /// A given number is to stay open: the loss has `μ d + ρ d² / 2`, with d the expected number of open gates minus the target,
    /// as a share of the heads: the augmented Lagrangian of Hestenes (1969), <https://doi.org/10.1007/BF00927673>. Before
    /// each update μ rises by its rate times d, and falls where d is negative. The target falls from all heads to this number in
    /// the first half of the steps, as in Wang et al. (2020), Section 3.3, <https://arxiv.org/abs/1910.04732>.
    ///
    /// Differs from Wang et al., who train a second multiplier, of d², and both by Adam: within some hundred updates these rise
    /// far beyond what closes the gates, and close too many.
    Heads(usize),
}

impl Penalty {
    /// Heads that are closed at test time: those whose gates are likelier to be 0 than 1, or all but the number that is wanted.
    pub fn closed(self, gates: &HardConcrete) -> HeadSet {
        match self {
            Self::Lambda(_) => gates.closed(),
            Self::Heads(open) => gates.closed_but(open),
        }
    }
}

impl Closing {
    /// Heads that are closed at test time.
    pub fn closed(self, gates: &HardConcrete) -> HeadSet {
        match self {
            Self::Concrete { penalty, .. } => penalty.closed(gates),
            Self::Subset { open, .. } => gates.closed_but(open),
        }
    }

    /// The number of heads that stays open, if it was given: gates reach it at the end of their training, not before.
    pub fn wanted(self) -> Option<usize> {
        match self {
            Self::Concrete { penalty: Penalty::Heads(open), .. } | Self::Subset { open, .. } => Some(open),
            Self::Concrete { penalty: Penalty::Lambda(_), .. } => None,
        }
    }
}

impl GateTraining {
    /// `log_alpha` before the first step, `[heads]`; `per_module`: heads of the module of each of them.
    fn first(&self, per_module: impl Fn(HeadId) -> usize) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(START);
        let mut first = |&id: &HeadId| match self.closing {
            Closing::Concrete { start: GateStart::Open, .. } => OPEN,
            // TensorFlow takes a tensor [1, heads, 1, 1] for a kernel with as many inputs and outputs as heads: ±sqrt(6 / 2 heads);
            // Li et al. (2021) have one tensor [layers, heads], which for BERT, of as many layers as heads, is the same
            Closing::Concrete { start: GateStart::Authors, .. } | Closing::Subset { .. } => {
                let limit = (3.0 / per_module(id) as f32).sqrt();
                rng.random_range(-limit..limit)
            }
        };
        self.heads.iter().map(&mut first).collect()
    }
}

/// Trained gates with what is known of them.
#[derive(Debug)]
pub(crate) struct TrainedGates {
    plan: GateTraining,
    gates: HardConcrete,
    /// μ; 0 unless a number of heads is wanted.
    multiplier: f64,
    /// `log_alpha` before each epoch so far.
    history: Vec<Tensor>,
    /// Of the next update.
    noise: Tensor,
    /// The number of open gates that the next update aims at.
    target: f64,
    /// Of the draw of a number of heads.
    temperature: f64,
}

impl TrainedGates {
    /// Gates before the first step; `per_module`: how many heads the module of a head has.
    pub(crate) fn start(plan: &GateTraining, per_module: impl Fn(HeadId) -> usize, device: Device) -> Self {
        let first = Tensor::from_slice(&plan.first(per_module)).to_device(device);
        Self::new(plan, &first, 0.0, Vec::new())
    }

    /// Gates as they were saved.
    ///
    /// # Errors
    /// If the file is missing, or of other heads.
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

    /// On the same numbers, for another thread.
    pub(crate) fn share(&self) -> Self {
        Self {
            gates: self.gates.share(),
            noise: self.noise.shallow_clone(),
            history: Vec::new(),
            plan: self.plan.clone(),
            ..*self
        }
    }

    /// Writes down where the gates stand before an epoch.
    pub(crate) fn begin_epoch(&mut self) {
        self.history.push(self.gates.log_alpha().detach().copy());
    }

    /// Draws the noise of a step of `steps`, counted from 1, and moves target and multiplier.
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
            // as many digits as are saved, so that a resumed run goes the same way
            self.multiplier = f64::from((self.multiplier + multiplier_rate * excess) as f32);
        }
    }

    /// These open gates minus the target, as a share of the heads.
    fn excess(&self, open: &Tensor) -> Tensor {
        (open - self.target) / self.plan.heads.len() as f64
    }

    /// The penalty of the open gates that are expected, for each prediction; a scalar. None for a number that is drawn.
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

    /// The gates of the step that was begun.
    pub(crate) fn sample(&self, layout: &HeadLayout) -> Result<Gates, Error> {
        let weights = self.gates.log_alpha();
        let drawn = match self.plan.closing {
            Closing::Concrete { .. } => self.gates.sample(&self.noise),
            Closing::Subset { open, straight_through: true } => subset::straight_through(weights, open),
            Closing::Subset { open, .. } => subset::relaxed(weights, &self.noise, open, self.temperature),
        };
        Ok(Gates::of_heads(layout, self.gates.heads(), &drawn)?)
    }

    /// Heads that are closed at test time.
    pub(crate) fn closed(&self) -> HeadSet {
        self.plan.closing.closed(&self.gates)
    }

    /// The penalty of the heads that are open at test time, for each prediction.
    pub(crate) fn test_penalty(&self) -> f64 {
        match self.plan.closing {
            Closing::Concrete { penalty: Penalty::Lambda(lambda), .. } => {
                lambda * (self.plan.heads.len() - self.closed().len()) as f64
            }
            _ => 0.0,
        }
    }

    /// Their trained tensor, by name.
    pub(crate) fn named(&self) -> (String, Tensor) {
        (LOG_ALPHA.to_owned(), self.gates.log_alpha().shallow_clone())
    }

    /// The learning rate of what is trained of them, by name.
    pub(crate) fn rate(&self, name: &str) -> Option<f64> {
        (name == LOG_ALPHA).then_some(self.plan.learning_rate)
    }

    /// Writes all that an exact resume needs, and where the gates stood before each epoch.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), Error> {
        let now = self.gates.log_alpha().detach();
        let history: Vec<&Tensor> = self.history.iter().chain([&now]).collect();
        let multiplier = Tensor::from_slice(&[self.multiplier as f32]);
        let saved = [(HISTORY, Tensor::stack(&history, 0)), (MULTIPLIER, multiplier)];
        let saved = saved.map(|(name, tensor)| (name.to_owned(), tensor));
        Ok(Weights::from_tensors(saved).write(&folder.join(FILE))?)
    }
}

/// The gates before the first epoch and after each, as saved in the folder of an epoch.
///
/// # Errors
/// If the file is missing, or of other heads.
pub fn gate_history(folder: &Path, heads: &[HeadId]) -> Result<Vec<HardConcrete>, Error> {
    let saved = Saved::read(folder, heads, Device::Cpu)?;
    Ok(saved.history.into_iter().map(|row| HardConcrete::new(heads.to_vec(), row)).collect())
}

/// File that [`TrainedGates::save`] writes.
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
