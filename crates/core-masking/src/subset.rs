//! Gates of which a given number is open: differentiable subset pruning, Li, Cotterell and Sachan (2021), Section 3,
//! <https://aclanthology.org/2021.tacl-1.86>; constants of <https://github.com/rycolab/differentiable-subset-pruning> at de4fe02.
//!
//! Each head has one trained number, w. Training needs no penalty, since the gates of a batch sum to the target number of heads. At test
//! time the heads with the largest w are open.
use tch::{Kind, Tensor};

/// Temperatures of the first and the last step, as for the authors' BERT.
///
/// Differs from the paper, whose translator starts at 0.1.
const TEMPERATURES: [f64; 2] = [1000.0, 1e-8];

/// Returns the temperature after a share `done` of the steps, 0 to 1: it falls exponentially.
pub fn temperature(done: f64) -> f64 {
    let [first, last] = TEMPERATURES;
    first * (last / first).powf(done)
}

/// Samples the gates of one batch, `[heads]`, which sum to `open` at any temperature; the lower it is, the closer each gate is to 0 or 1.
/// At high temperatures a gate may exceed 1.
///
/// The sum of `open` softmaxes of w with Gumbel noise, each of which excludes what the previous ones have drawn (Xie and Ermon 2019,
/// Section 3, <https://arxiv.org/abs/1901.10517>).
///
/// - `weights`: w, `[heads]`; gradients flow back to it
/// - `noise`: `[heads]`, uniform between 0 and 1
/// - `open`: 1 or more
pub fn relaxed(weights: &Tensor, noise: &Tensor, open: usize, temperature: f64) -> Tensor {
    let kind = weights.kind();
    let noise = noise.to_kind(Kind::Double).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
    let mut score = weights.to_kind(Kind::Double) - (-noise.log()).log(); // [heads]
    let soft = |score: &Tensor| (score / temperature).softmax(0, Kind::Double);
    let mut drawn = vec![soft(&score)];
    for last in 0..open.saturating_sub(1) {
        score += (-&drawn[last] + 1.0).clamp_min(f64::MIN_POSITIVE).log();
        drawn.push(soft(&score));
    }
    Tensor::stack(&drawn, 0).sum_dim_intlist(0, false, Kind::Double).to_kind(kind) // [heads]
}

/// Returns gates of 1 for the `open` largest of `weights`, `[heads]`, and 0 for the others. Gradients pass through as if the gates were w
/// (Bengio et al. 2013, <https://arxiv.org/abs/1308.3432>).
pub fn straight_through(weights: &Tensor, open: usize) -> Tensor {
    let (_, greatest) = weights.detach().topk(open as i64, 0, true, false);
    let hard = weights.detach().zeros_like().index_fill(0, &greatest, 1.0);
    weights - weights.detach() + hard
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::to_vec;

    const NOISE: [f64; 5] = [0.7, 0.05, 0.45, 0.9, 0.3];

    fn weights(of: &[f64]) -> Tensor {
        Tensor::from_slice(of).set_requires_grad(true)
    }

    fn gates(of: [f64; 5], open: usize, temperature: f64) -> Vec<f64> {
        to_vec(&relaxed(&weights(&of), &Tensor::from_slice(&NOISE), open, temperature))
    }

    #[test]
    fn as_many_as_wanted_are_open_at_any_temperature_and_at_the_end_exactly() {
        for (done, expected) in [(0.0, 1e3), (3.0 / 11.0, 1.0), (1.0, 1e-8)] {
            assert!((temperature(done) / expected - 1.0).abs() < 1e-12, "{done}");
        }
        let of = [0.3, -0.2, 0.8, -1.5, 0.1];
        for open in 1..=5 {
            for done in [0.0, 0.2, 0.3, 0.5, 0.8, 1.0] {
                let sum: f64 = gates(of, open, temperature(done)).iter().sum();
                assert!((sum - open as f64).abs() < 1e-12, "{sum} of {open}");
            }
            let last = gates(of, open, temperature(1.0));
            assert!(last.iter().all(|&gate| gate == 0.0 || gate == 1.0), "{last:?}");
        }
        for done in [0.0, 0.5, 1.0] {
            let own = weights(&[0.1, 0.2, 0.3]);
            let found = relaxed(&own, &Tensor::from_slice(&[0.0, 1.0, 0.5]), 2, temperature(done));
            found.narrow(0, 1, 1).sum(None).backward();
            let sum = (found.sum(None) + own.grad().sum(None)).double_value(&[]);
            assert!(sum.is_finite(), "noise at its ends is no infinity");
        }
        // w + Gumbel noise: 0.3 + 1.03, -0.2 - 1.10, 0.8 + 0.23, -1.5 + 2.25, 0.1 - 0.19
        assert_eq!(gates(of, 3, temperature(1.0)), [1.0, 0.0, 1.0, 1.0, 0.0]);
    }

    /// Noise of 1/e has no effect: -ln(-ln(1/e)) = 0. At w = ln 1, ln 2, ln 5 and temperature 1 the first softmax is 1/8, 2/8, 5/8. The
    /// second is proportional to 1 * 7/8, 2 * 6/8 and 5 * 3/8, which is 7 : 12 : 15 of 34.
    #[test]
    fn a_second_draw_leaves_out_the_first() {
        let of = [0.0, 2_f64.ln(), 5_f64.ln()];
        let noise = Tensor::from_slice(&[(-1_f64).exp(); 3]);
        let expected = [1.0 / 8.0 + 7.0 / 34.0, 2.0 / 8.0 + 12.0 / 34.0, 5.0 / 8.0 + 15.0 / 34.0];
        for (found, expected) in
            to_vec::<f64>(&relaxed(&weights(&of), &noise, 2, 1.0)).into_iter().zip(expected)
        {
            assert!((found - expected).abs() < 1e-14, "{found} instead of {expected}");
        }
    }

    #[test]
    fn derivatives_agree_with_finite_differences() {
        let (start, factors) = ([0.3, -0.2, 0.8, -1.5, 0.1], [1.0, -2.0, 3.0, 0.5, -0.7]);
        for temperature in [2.0, 0.5] {
            let loss = |of: &Tensor| {
                let gates = relaxed(of, &Tensor::from_slice(&NOISE), 3, temperature);
                (gates * Tensor::from_slice(&factors)).sum(None)
            };
            let own = weights(&start);
            loss(&own).backward();
            for (place, derivative) in to_vec::<f64>(&own.grad()).into_iter().enumerate() {
                let at = |offset: f64| {
                    let mut moved = start;
                    moved[place] += offset;
                    loss(&weights(&moved)).double_value(&[])
                };
                let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((derivative - difference).abs() < 1e-8, "{derivative} and {difference}");
            }
            assert!(own.grad().abs().max().double_value(&[]) > 0.1);
        }
    }

    /// Of two equal weights one is open.
    #[test]
    fn straight_through_the_gates_are_hard_and_the_gradient_is_that_of_w() {
        let own = weights(&[0.3, -0.2, 0.8, 0.3]);
        let gates = straight_through(&own, 2);
        let open = to_vec::<f64>(&gates);
        assert_eq!((open[1], open[2], open[0] + open[3]), (0.0, 1.0, 1.0));
        let factors = [1.0, -2.0, 3.0, 0.5];
        (gates * Tensor::from_slice(&factors)).sum(None).backward();
        assert_eq!(to_vec::<f64>(&own.grad()), factors);
    }
}
