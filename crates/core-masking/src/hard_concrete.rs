//! Gates that learn to close: the Hard Concrete distribution of Louizos et al. (2018), Section 3.2,
//! <https://arxiv.org/abs/1712.01312>, on attention heads as in Voita et al. (2019), Section 6.1,
//! <https://aclanthology.org/P19-1580>.
//!
//! Each gate has one trained number, `log_alpha`. In training it is sampled for each batch; most samples are exactly 0 or 1. The
//! probability that a gate is not 0 is differentiable; its sum over the heads is the penalty.
use tch::Tensor;

use crate::{HeadId, HeadScores, HeadSet, to_vec};

/// Constants of `lib/layers/concrete_gate.py` in <https://github.com/lena-voita/the-story-of-heads> at efaa0dd: the temperature β, and the
/// ends γ and ζ of the interval that (0, 1) is stretched to before clipping.
const TEMPERATURE: f64 = 0.33;
const LOW: f64 = -0.1;
const HIGH: f64 = 1.1;

/// Noise is clipped this far from 0 and 1, whose logits are infinite, as in that file.
const EDGE: f64 = 1e-6;

/// One trained gate per head.
#[derive(Debug)]
pub struct HardConcrete {
    heads: Vec<HeadId>,
    log_alpha: Tensor,
}

impl HardConcrete {
    /// Creates the gates from `log_alpha`, `[heads]`, to which gradients flow back.
    pub fn new(heads: Vec<HeadId>, log_alpha: Tensor) -> Self {
        assert_eq!(log_alpha.size(), [heads.len() as i64], "one number for each head");
        Self { heads, log_alpha }
    }

    /// Returns the heads in the order of `log_alpha`.
    pub fn heads(&self) -> &[HeadId] {
        &self.heads
    }

    /// Returns `log_alpha`, `[heads]`.
    pub fn log_alpha(&self) -> &Tensor {
        &self.log_alpha
    }

    /// Returns gates that share `log_alpha`, for another thread.
    pub fn share(&self) -> Self {
        Self { heads: self.heads.clone(), log_alpha: self.log_alpha.shallow_clone() }
    }

    /// Samples the gates of one batch, `[heads]`, each from 0 to 1. `noise`: `[heads]`, uniform between 0 and 1.
    pub fn sample(&self, noise: &Tensor) -> Tensor {
        let noise = noise.clamp(EDGE, 1.0 - EDGE);
        let logit = noise.log() - (-&noise).log1p();
        let concrete = ((logit + &self.log_alpha) / TEMPERATURE).sigmoid();
        (concrete * (HIGH - LOW) + LOW).clamp(0.0, 1.0)
    }

    /// Returns the probability that a gate is not 0, `[heads]`: `sigmoid(log_alpha - β ln(-γ / ζ))`, Louizos et al. (2018), Equation 12.
    fn p_open(&self) -> Tensor {
        (&self.log_alpha - TEMPERATURE * (-LOW / HIGH).ln()).sigmoid()
    }

    /// Returns the expected number of open gates, a scalar: the training penalty.
    pub fn expected_open(&self) -> Tensor {
        self.p_open().sum(None)
    }

    /// Returns the heads that are masked at test time: those whose gate is at least as likely to be 0 as 1.
    ///
    /// Voita et al. (2019), footnote 7. Differs from the authors' code, whose gates are not binary at test time.
    pub fn closed(&self) -> HeadSet {
        self.scores().iter().filter(|&(_, log_alpha)| log_alpha <= 0.0).map(|(id, _)| id).collect()
    }

    /// Returns all heads except the `open` heads with the largest `log_alpha`.
    pub fn closed_but(&self, open: usize) -> HeadSet {
        let closed = self.heads.len().saturating_sub(open);
        self.scores().ascending().into_iter().take(closed).collect()
    }

    /// Returns `log_alpha` of each head.
    pub fn scores(&self) -> HeadScores {
        self.heads.iter().copied().zip(to_vec::<f64>(&self.log_alpha.detach())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn gates(log_alpha: &[f64]) -> HardConcrete {
        let heads = (1..=log_alpha.len()).map(|head| format!("self:1:{head}").parse().unwrap());
        HardConcrete::new(heads.collect(), Tensor::from_slice(log_alpha).set_requires_grad(true))
    }

    fn values(tensor: &Tensor) -> Vec<f64> {
        to_vec(tensor)
    }

    /// At noise 1/2 the logit is 0: log_alpha 0 gives 1.2/2 - 0.1 = 1/2. With log_alpha 0.33 ln 3 the sigmoid is 3/4, which gives 0.9 -
    /// 0.1. With 0.33 ln 23 it is 23/24, which is clipped to 1; with -0.33 ln 23 the gate is clipped to 0. The derivative of a sigmoid s is
    /// s (1 - s), which stretching multiplies by 1.2 / 0.33 and clipping by 0.
    #[test]
    fn samples_are_stretched_and_clipped() {
        let log_alpha = [0.0, 0.33 * 3_f64.ln(), 0.33 * 23_f64.ln(), -0.33 * 23_f64.ln()];
        let own = gates(&log_alpha);
        let drawn = own.sample(&Tensor::from_slice(&[0.5; 4]));
        drawn.sum(None).backward();
        for (found, expected) in values(&drawn).into_iter().zip([0.5, 0.8, 1.0, 0.0]) {
            assert!((found - expected).abs() < 1e-15, "{found} instead of {expected}");
        }
        let slopes = [1.0 / 4.0, 3.0 / 16.0, 0.0, 0.0].map(|slope| 1.2 / 0.33 * slope);
        for (found, expected) in values(&own.log_alpha.grad()).into_iter().zip(slopes) {
            assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
        }
        // noise of exactly 0 or 1 gives no infinities
        assert_eq!(values(&gates(&[0.0, 0.0]).sample(&Tensor::from_slice(&[0.0, 1.0]))), [0.0, 1.0]);
    }

    /// By Hoeffding's inequality the share of open gates in n samples is off by more than t with probability at most 2 exp(-2 n t²): for n
    /// = 20,000 and t = 0.025 that is 2 e^-25, less than 3 in 10^11.
    #[test]
    fn sampled_gates_are_open_as_often_as_expected() {
        let gates = gates(&[-3.0, -0.791, 0.0, 0.4, 2.0]);
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let draws = 20_000;
        let mut open = [0.0; 5];
        for _ in 0..draws {
            let noise: Vec<f64> = (0..5).map(|_| rng.random()).collect();
            for (open, gate) in open.iter_mut().zip(values(&gates.sample(&Tensor::from_slice(&noise)))) {
                *open += f64::from(u8::from(gate > 0.0));
            }
        }
        for (open, expected) in open.iter().zip(values(&gates.p_open())) {
            let share = open / f64::from(draws);
            assert!((share - expected).abs() < 0.025, "{share} instead of {expected}");
        }
    }

    #[test]
    fn gates_take_their_likelier_value_at_test_time() {
        let gates = gates(&[0.1, -0.2, 0.0, 3.0]);
        assert_eq!(gates.closed().to_string(), "self:1:2+self:1:3");
        assert_eq!(gates.closed_but(1).to_string(), "self:1:1+self:1:2+self:1:3");
        assert_eq!([4, 9, 0].map(|open| gates.closed_but(open).len()), [0, 0, 4]);
    }
}
