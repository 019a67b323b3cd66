//! Dropout, which on a CPU does not use libtorch's generator. That generator is global and serial: threads that draw from it disturb each
//! other's sequence, and it takes a tenth of a training step's time.
use std::cell::RefCell;

use families::DropoutRates;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tch::{Device, Tensor};

/// Dropout (Srivastava et al. 2014), an argument of every forward pass.
#[derive(Debug)]
pub struct Dropout(Option<DropoutMask>);

#[derive(Debug)]
struct DropoutMask {
    /// An element is dropped if its 16 random bits are below this.
    threshold: u16,
    generator: RefCell<ChaCha8Rng>,
}

impl Dropout {
    /// No dropout: evaluation.
    pub const OFF: Self = Self(None);

    /// Creates dropout with probability `rate`, at least 0 and below 1, rounded to a multiple of 1/65,536.
    pub fn new(rate: f64, seed: u64) -> Self {
        let threshold = (rate * 65_536.0).round() as u16;
        let generator = RefCell::new(ChaCha8Rng::seed_from_u64(seed));
        Self((threshold > 0).then_some(DropoutMask { threshold, generator }))
    }

    /// Returns true if nothing is ever dropped.
    pub fn is_off(&self) -> bool {
        self.0.is_none()
    }

    /// Sets dropped elements of `x` to 0 and scales the others so that the expectation is unchanged.
    pub fn apply(&self, x: Tensor) -> Tensor {
        match &self.0 {
            None => x,
            Some(mask) => mask.apply(&x),
        }
    }
}

/// Dropout of a model; [`ModelDropout::OFF`] in evaluation.
#[derive(Debug)]
pub struct ModelDropout {
    /// Of the output of each sublayer, and of embeddings except in language models.
    pub hidden: Dropout,
    /// Of attention weights.
    pub attention: Dropout,
    /// Of the classification head's input; in language models, of embeddings.
    pub classifier: Dropout,
}

impl ModelDropout {
    /// Evaluation.
    pub const OFF: Self = Self { hidden: Dropout::OFF, attention: Dropout::OFF, classifier: Dropout::OFF };

    /// Creates dropout with these rates.
    pub fn new(rates: DropoutRates, seed: u64) -> Self {
        let stream = |place: u64| seed.wrapping_add(place << 48);
        Self {
            hidden: Dropout::new(rates.hidden, stream(0)),
            attention: Dropout::new(rates.attention, stream(1)),
            classifier: Dropout::new(rates.classifier, stream(2)),
        }
    }
}

impl DropoutMask {
    fn apply(&self, x: &Tensor) -> Tensor {
        if x.device() != Device::Cpu {
            // a mask drawn here would have to be copied to the device, whose own generator is fast
            return x.dropout(f64::from(self.threshold) / 65_536.0, true);
        }
        let mut bits = vec![0; 2 * x.numel()];
        self.generator.borrow_mut().fill_bytes(&mut bits);
        let kept = 65_536.0 / (65_536.0 - f32::from(self.threshold));
        let scale: Vec<f32> = bits
            .chunks_exact(2)
            .map(|pair| if u16::from_le_bytes([pair[0], pair[1]]) < self.threshold { 0.0 } else { kept })
            .collect();
        x * Tensor::from_slice(&scale).view_as(x).to_kind(x.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Kind;

    fn dropped_ones(rate: f64, seed: u64) -> Vec<f32> {
        let ones = Tensor::ones([400, 250], (Kind::Float, Device::Cpu));
        Dropout::new(rate, seed).apply(ones).view([-1]).try_into().unwrap()
    }

    /// 100,000 samples at rate 1/4: the share dropped has a standard deviation of sqrt(3/16 / 100,000) = 0.0014.
    #[test]
    fn elements_are_dropped_at_the_rate_and_the_rest_keep_the_expectation() {
        let values = dropped_ones(0.25, 7);
        assert!(values.iter().all(|&value| value == 0.0 || value == 4.0 / 3.0));
        let dropped = values.iter().filter(|&&value| value == 0.0).count() as f64 / values.len() as f64;
        assert!((dropped - 0.25).abs() < 5.0 * 0.0014, "{dropped}");
    }
}
