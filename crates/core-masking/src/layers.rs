//! What every Transformer layer is made of besides attention.
use tch::Tensor;

use crate::{Error, Weights};

/// `x W^T + b`.
#[derive(Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    /// Takes `{name}.weight` `[out, in]` and `{name}.bias` `[out]`.
    ///
    /// # Errors
    /// If one of them is missing.
    pub fn new(weights: &Weights, name: &str) -> Result<Self, Error> {
        Ok(Self {
            weight: weights.get(&format!("{name}.weight"))?,
            bias: weights.get(&format!("{name}.bias"))?,
        })
    }

    /// Outputs and inputs.
    pub fn size(&self) -> (u64, u64) {
        let size = self.weight.size();
        (size[0] as u64, size[1] as u64)
    }

    /// Multiply-adds of one row.
    pub fn multiply_adds(&self) -> u64 {
        let (outputs, inputs) = self.size();
        outputs * inputs
    }

    /// `[out, in]`
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// `[out]`
    pub fn bias(&self) -> &Tensor {
        &self.bias
    }

    /// `x`: `[.., in]`; returns `[.., out]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight, Some(&self.bias))
    }
}

/// Layer normalisation over the last axis.
#[derive(Debug)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    epsilon: f64,
}

impl LayerNorm {
    /// Takes `{name}.weight` and `{name}.bias`, both `[d_model]`; `epsilon` is added to the variance.
    ///
    /// # Errors
    /// If one of them is missing.
    pub fn new(weights: &Weights, name: &str, epsilon: f64) -> Result<Self, Error> {
        Ok(Self {
            weight: weights.get(&format!("{name}.weight"))?,
            bias: weights.get(&format!("{name}.bias"))?,
            epsilon,
        })
    }

    /// `x`: `[.., d_model]`; returns the same shape.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        x.layer_norm(self.weight.size(), Some(&self.weight), Some(&self.bias), self.epsilon, false)
    }
}
