//! Adam with bias correction and decoupled weight decay, and clipping by the global norm.
//!
//! Kingma and Ba (2015), Algorithm 1, <https://arxiv.org/abs/1412.6980>; Loshchilov and Hutter (2019), Algorithm 2,
//! <https://arxiv.org/abs/1711.05101>. An exact resume needs to save and restore the optimiser's state, which tch does not offer.
use core_masking::{Inventory, Weights};
use rayon::prelude::*;
use tch::{Device, Tensor, no_grad};

use crate::learner::{Learner, Objective};

/// Elements that a core updates at a time, few enough for its cache.
const CHUNK: i64 = 1 << 15;

/// Settings of the optimiser.
#[derive(Debug, Clone, Copy)]
pub struct AdamSettings {
    /// Decay rates of the two moments.
    pub betas: [f64; 2],
    /// Added to the denominator.
    pub epsilon: f64,
    /// Each step subtracts this share of a weight, times the learning rate. Biases and normalisation weights do not decay.
    pub weight_decay: f64,
}

/// A trained tensor and its two moments, which have its shape.
struct Parameter {
    name: String,
    value: Tensor,
    first: Tensor,
    second: Tensor,
    /// Its own learning rate; `None` to use the schedule.
    own_rate: Option<f64>,
}

/// Both moments of a set of elements.
struct Moments {
    first: Tensor,
    second: Tensor,
}

/// The optimiser's state.
pub(crate) struct Adam {
    parameters: Vec<Parameter>,
    /// The moments of all parameters on the schedule, concatenated, so that a GPU updates them in a few kernels; the moments of
    /// `parameters` are views of these.
    flat: Option<Moments>,
    settings: AdamSettings,
    step: usize,
    /// Updates of this process that skipped the parameters with their own learning rate.
    left_out: usize,
}

impl Adam {
    /// Starts with zero moments for all weights of a learner that require a gradient.
    pub(crate) fn of<O: Objective>(learner: &Learner<O>, settings: &AdamSettings) -> Self {
        let is_flat = learner.weights().options().1 != Device::Cpu;
        Self::laid_out(learner.weights(), settings, |name| learner.own_rate(name), is_flat)
    }

    fn laid_out(
        weights: &Weights,
        settings: &AdamSettings,
        own_rate: impl Fn(&str) -> Option<f64>,
        is_flat: bool,
    ) -> Self {
        let trained = weights.iter().filter(|(_, tensor)| tensor.requires_grad());
        let parameter = |(name, tensor): (&str, &Tensor)| Parameter {
            name: name.to_owned(),
            value: tensor.shallow_clone(),
            first: tensor.zeros_like().detach(),
            second: tensor.zeros_like().detach(),
            own_rate: own_rate(name),
        };
        let parameters = trained.map(parameter).collect();
        let mut adam = Self { parameters, flat: None, settings: *settings, step: 0, left_out: 0 };
        let shares = adam.parameters.iter().any(|own| own.own_rate.is_none());
        adam.flat = (is_flat && shares).then(|| adam.flatten());
        adam
    }

    /// Concatenates the moments of all parameters on the schedule.
    fn flatten(&mut self) -> Moments {
        let all = |moment: fn(&Parameter) -> &Tensor| {
            let shared = self.parameters.iter().filter(|own| own.own_rate.is_none());
            Tensor::cat(&shared.map(|own| moment(own).flatten(0, -1)).collect::<Vec<_>>(), 0)
        };
        let flat = Moments { first: all(|own| &own.first), second: all(|own| &own.second) };
        let mut start = 0;
        for own in self.parameters.iter_mut().filter(|own| own.own_rate.is_none()) {
            let size = own.value.numel() as i64;
            own.first = flat.first.narrow(0, start, size).view_as(&own.first);
            own.second = flat.second.narrow(0, start, size).view_as(&own.second);
            start += size;
        }
        flat
    }

    /// Returns the number of updates so far.
    pub(crate) fn steps(&self) -> usize {
        self.step
    }

    /// Returns the number of updates that skipped the parameters with their own learning rate.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Makes one update along the gradients, which are in the order of [`gradients`]. Gradients of parameters on the schedule are clipped
    /// to a common l2 norm of `clip_norm`. Returns this norm before clipping; if it is not finite, nothing changes. If only the norm of the
    /// other parameters is not finite, these are skipped: at some temperatures the gradient through repeated draws of a subset overflows.
    pub(crate) fn update(&mut self, gradients: &[Tensor], learning_rate: f64, clip_norm: f64) -> f64 {
        let (own, shared): (Vec<_>, Vec<_>) =
            self.parameters.iter().zip(gradients).partition(|(parameter, _)| parameter.own_rate.is_some());
        let [own, norm] =
            [own, shared].map(|some| no_grad(|| norm(some.into_iter().map(|(_, gradient)| gradient))));
        if !norm.is_finite() {
            return norm;
        }
        let scale = (clip_norm / norm).min(1.0);
        self.step += 1;
        let step = Step::new(&self.settings, self.step, learning_rate, scale);
        if let Some(flat) = &mut self.flat {
            no_grad(|| flat.update(&self.parameters, gradients, &step));
        }
        self.left_out += usize::from(!own.is_finite());
        self.update_in_chunks(gradients, &step, own.is_finite());
        norm
    }

    /// Updates what [`Moments::update`] does not update; parameters with their own learning rate only if `takes_own`.
    fn update_in_chunks(&self, gradients: &[Tensor], step: &Step, takes_own: bool) {
        let is_left = |parameter: &Parameter| {
            if parameter.own_rate.is_some() { takes_own } else { self.flat.is_none() }
        };
        let chunks: Vec<Chunk> = self
            .parameters
            .iter()
            .zip(gradients)
            .filter(|(parameter, _)| is_left(parameter))
            .flat_map(|(parameter, gradient)| parameter.chunks(gradient))
            .collect();
        chunks.into_par_iter().for_each(|mut chunk| no_grad(|| chunk.update(step)));
    }

    /// Returns the name and shape of each moment.
    pub(crate) fn inventory(&self) -> Inventory {
        self.state().iter().map(|(name, tensor)| (name.to_owned(), tensor.size())).collect()
    }

    /// Returns the moments as named tensors.
    pub(crate) fn state(&self) -> Weights {
        let moments = |parameter: &Parameter| {
            let named = |moment: &str, tensor: &Tensor| {
                (format!("{moment}.{}", parameter.name), tensor.shallow_clone())
            };
            [named("first", &parameter.first), named("second", &parameter.second)]
        };
        Weights::from_tensors(self.parameters.iter().flat_map(moments))
    }

    /// Continues from saved moments after `step` updates.
    pub(crate) fn restore(&mut self, state: &Weights, step: usize) -> Result<(), core_masking::Error> {
        self.step = step;
        for parameter in &mut self.parameters {
            parameter.first = state.get(&format!("first.{}", parameter.name))?;
            parameter.second = state.get(&format!("second.{}", parameter.name))?;
        }
        if self.flat.is_some() {
            self.flat = Some(self.flatten());
        }
        Ok(())
    }
}

impl Parameter {
    /// Returns true for matrices and embeddings, to which weight decay applies, as in BERT's own optimiser.
    fn decays(&self) -> bool {
        self.value.dim() > 1 && self.own_rate.is_none()
    }

    /// Cuts the parameter into chunks that are updated independently.
    fn chunks(&self, gradient: &Tensor) -> Vec<Chunk> {
        let size = self.value.numel() as i64;
        let [value, first, second] =
            [&self.value, &self.first, &self.second].map(|all| all.detach().view([-1]));
        let gradient = gradient.contiguous().view([-1]);
        let piece = |start: i64| {
            let part = |all: &Tensor| all.narrow(0, start, CHUNK.min(size - start));
            let [value, first, second, gradient] = [&value, &first, &second, &gradient].map(part);
            let moments = Moments { first, second };
            Chunk { value, moments, gradient, decays: self.decays(), own_rate: self.own_rate }
        };
        (0..size).step_by(CHUNK as usize).map(piece).collect()
    }
}

/// A flat part of a parameter that shares its storage.
struct Chunk {
    value: Tensor,
    moments: Moments,
    gradient: Tensor,
    decays: bool,
    own_rate: Option<f64>,
}

/// Settings of one update.
struct Step {
    settings: AdamSettings,
    learning_rate: f64,
    /// Factor that clips the gradients.
    scale: f64,
    /// `1 - beta^step` for both moments.
    correction: [f64; 2],
}

impl Step {
    fn new(settings: &AdamSettings, step: usize, learning_rate: f64, scale: f64) -> Self {
        let correction = settings.betas.map(|beta| 1.0 - beta.powi(step as i32));
        Self { settings: *settings, learning_rate, scale, correction }
    }

    /// Returns the step for a parameter with its own learning rate, whose gradient is not clipped.
    fn own(&self, learning_rate: f64) -> Self {
        Self { learning_rate, scale: 1.0, ..*self }
    }

    /// Applies weight decay to a parameter or a part of it.
    fn decay(&self, value: &mut Tensor) {
        if self.settings.weight_decay > 0.0 {
            let _ = value.g_mul_scalar_(1.0 - self.learning_rate * self.settings.weight_decay);
        }
    }
}

impl Moments {
    /// Updates the moments with a gradient, which is clipped in place, and returns what to subtract from the values.
    fn change(&mut self, gradient: &mut Tensor, step: &Step) -> Tensor {
        let AdamSettings { betas, epsilon, .. } = step.settings;
        let gradient = &gradient.g_mul_scalar_(step.scale);
        let _ = self.first.lerp_(gradient, 1.0 - betas[0]);
        let _ = self.second.lerp_(&gradient.square(), 1.0 - betas[1]);
        let mut denominator = self.second.sqrt();
        let _ = denominator.g_div_scalar_(step.correction[1].sqrt()).g_add_scalar_(epsilon);
        let mut change = &self.first / denominator;
        let _ = change.g_mul_scalar_(step.learning_rate / step.correction[0]);
        change
    }

    /// Updates all parameters on the schedule, to which these moments belong.
    fn update(&mut self, parameters: &[Parameter], gradients: &[Tensor], step: &Step) {
        let shared = || parameters.iter().zip(gradients).filter(|(own, _)| own.own_rate.is_none());
        let flat: Vec<Tensor> = shared().map(|(_, gradient)| gradient.flatten(0, -1)).collect();
        let change = self.change(&mut Tensor::cat(&flat, 0), step);
        let mut start = 0;
        for (own, _) in shared() {
            let mut value = own.value.detach();
            let size = value.numel() as i64;
            if own.decays() {
                step.decay(&mut value);
            }
            let _ = value.g_sub_(&change.narrow(0, start, size).view_as(&value));
            start += size;
        }
    }
}

impl Chunk {
    fn update(&mut self, step: &Step) {
        if let Some(rate) = self.own_rate {
            let _ = self.value.g_sub_(&self.moments.change(&mut self.gradient, &step.own(rate)));
            return;
        }
        let change = self.moments.change(&mut self.gradient, step);
        if self.decays {
            step.decay(&mut self.value);
        }
        let _ = self.value.g_sub_(&change);
    }
}

/// Returns the gradient of `loss` with respect to each weight that requires one, in the order of their names; 0 for a weight that does not
/// affect the loss, such as the keys of a layer without heads.
pub(crate) fn gradients(loss: &Tensor, weights: &Weights) -> Vec<Tensor> {
    let trained: Vec<&Tensor> =
        weights.iter().map(|(_, tensor)| tensor).filter(|tensor| tensor.requires_grad()).collect();
    let found = Tensor::run_backward(&[loss], &trained, false, false);
    let known = |(gradient, weight): (Tensor, &&Tensor)| {
        if gradient.defined() { gradient } else { weight.detach().zeros_like() }
    };
    found.into_iter().zip(&trained).map(known).collect()
}

/// Adds gradients to the total in the order given, so that the sum does not depend on which thread finished first.
pub(crate) fn add(total: &mut Option<Vec<Tensor>>, parts: impl IntoIterator<Item = Vec<Tensor>>) {
    for part in parts {
        match total {
            Some(total) => total.par_iter_mut().zip(part).for_each(|(total, gradient)| {
                let _ = no_grad(|| total.g_add_(&gradient));
            }),
            None => *total = Some(part),
        }
    }
}

/// Returns the l2 norm of all gradients together; 0 for an empty list.
fn norm<'a>(gradients: impl Iterator<Item = &'a Tensor>) -> f64 {
    let norms: Vec<Tensor> = gradients.map(Tensor::norm).collect();
    if norms.is_empty() { 0.0 } else { Tensor::stack(&norms, 0).norm().double_value(&[]) }
}

#[cfg(test)]
mod tests;
