//! Division of relevance in single steps; `n` counts target positions, whose relevance is handed down together.
use tch::Tensor;

use super::Rule;
use super::alpha_beta::by_position;
use crate::layers::{LayerNorm, Linear};
use crate::to_vec;

/// ε of the alpha-beta rule.
pub(super) const EPSILON: f64 = 1e-5;

impl Rule {
    /// `W x + b`, at each position alone.
    ///
    /// - `relevance`: of the outputs, `[n, position, out]`
    /// - `x`: `[position, in]`
    /// - returns that of `x`, `[n, position, in]`
    pub(super) fn linear(self, relevance: &Tensor, x: &Tensor, map: &Linear) -> Tensor {
        self.affine(relevance, x, map.weight(), &map.bias())
    }

    /// The same with weights `[out, in]` and bias `[out]` at hand.
    pub(super) fn affine(self, relevance: &Tensor, x: &Tensor, weight: &Tensor, bias: &Tensor) -> Tensor {
        match self {
            Self::Paper => {
                let sum = x.matmul(&weight.tr()); // Σ z of each output, [position, out]
                divided(relevance, &sum).matmul(weight) * x + equal_shares(relevance, &sum, x.size()[1])
            }
            Self::AlphaBeta => {
                let width = x.size()[1] as usize;
                let [xs, weights, biases] = [x, weight, bias].map(to_vec::<f64>);
                let z = |position: usize, output: usize, z: &mut [f64]| {
                    let (x, weights) =
                        (&xs[position * width..][..width], &weights[output * width..][..width]);
                    let of_bias = biases[output] / width as f64;
                    for ((z, x), weight) in z.iter_mut().zip(x).zip(weights) {
                        *z = weight * x + of_bias;
                    }
                };
                each_rescaled(relevance, by_position(relevance, width, z))
            }
        }
    }

    /// `x + y`: relevance of both.
    ///
    /// - `relevance`: `[n, position, width]`; `x`, `y`: `[position, width]`
    pub(super) fn residual(self, relevance: &Tensor, x: &Tensor, y: &Tensor) -> [Tensor; 2] {
        match self {
            Self::Paper => {
                let sum = x + y;
                let each = divided(relevance, &sum);
                let equal = equal_each(relevance, &sum, 2);
                [x, y].map(|term| &each * term + &equal)
            }
            Self::AlphaBeta => {
                let terms = Tensor::stack(&[x, y], -1); // [position, width, 2]
                let shares = shares(&terms, &[-1]) * relevance.unsqueeze(-1); // [n, position, width, 2]
                rescaled(relevance, shares.unbind(-1).try_into().expect("two terms"))
            }
        }
    }

    /// Layer normalisation `γ (x - mean) / σ + β`, at each position alone; `[n, position, width]` of the same.
    pub(super) fn norm(self, relevance: &Tensor, x: &Tensor, norm: &LayerNorm) -> Tensor {
        let width = x.size()[1];
        let centred = x - x.mean_dim(-1, true, None); // [position, width]
        match self {
            // z_ij = γ_i (δ_ij - 1 / width) x_j / σ, whose sum over j is γ_i (x_i - mean) / σ: γ and σ cancel
            Self::Paper => {
                let each = divided(relevance, &centred); // [n, position, width]
                x * (&each - each.mean_dim(-1, true, None)) + equal_shares(relevance, &centred, width)
            }
            // z_ij = γ_i / σ (δ_ij - 1 / width - x̂_i x̂_j / width) x_j + β_i / width, as f(0) = β
            Self::AlphaBeta => {
                let (weight, bias, epsilon) = norm.parts();
                let deviation = (centred.square().mean_dim(-1, true, None) + epsilon).sqrt(); // [position, 1]
                let (scaled, slopes) = (&centred / &deviation, weight / &deviation); // x̂ and γ / σ
                let [xs, biases, scaleds, slope] = [x, bias, &scaled, &slopes].map(to_vec::<f64>);
                let size = width as usize;
                let z = |position: usize, output: usize, z: &mut [f64]| {
                    let start = position * size;
                    let slope = slope[start + output];
                    let (even, own) = (slope / width as f64, slope / width as f64 * scaleds[start + output]);
                    let of_bias = biases[output] / width as f64;
                    for ((z, x), scaled) in
                        z.iter_mut().zip(&xs[start..][..size]).zip(&scaleds[start..][..size])
                    {
                        *z = of_bias - (even + own * scaled) * x;
                    }
                    z[output] += slope * xs[start + output];
                };
                each_rescaled(relevance, by_position(relevance, size, z))
            }
        }
    }

    /// The start: 1 at the greatest logit of each position, of which each makes a row of its own.
    ///
    /// - `hidden`: `[position, d_model]`; the output layer: `[vocab, d_model]` and `[vocab]`
    /// - returns the relevance of `hidden`, `[position, position, d_model]`
    pub(super) fn greatest_logit(self, hidden: &Tensor, (embedding, bias): (&Tensor, &Tensor)) -> Tensor {
        let (positions, options) = (hidden.size()[0], (hidden.kind(), hidden.device()));
        let top = hidden.linear(embedding, Some(bias)).argmax(-1, false); // [position]
        let z = hidden * embedding.index_select(0, &top); // [position, d_model]
        let each = match self {
            Self::Paper => {
                let (sum, one) = (z.sum_dim_intlist(-1, true, None), Tensor::ones([positions, 1], options)); // [position, 1]
                divided(&one, &sum) * &z + equal_each(&one, &sum, z.size()[1])
            }
            Self::AlphaBeta => {
                let of_bias = bias.index_select(0, &top).unsqueeze(1) / z.size()[1] as f64;
                let found = shares(&(z + of_bias), &[-1]);
                let size = found.abs().sum_dim_intlist(-1, true, None);
                found / size.clamp_min(f64::MIN_POSITIVE)
            }
        };
        Tensor::eye(positions, options).unsqueeze(-1) * each.unsqueeze(1)
    }
}

/// Relevance over the sum of what inputs add, 0 where that is 0.
fn divided(relevance: &Tensor, sum: &Tensor) -> Tensor {
    let is_zero = sum.eq(0.0);
    (relevance / sum.masked_fill(&is_zero, 1.0)).masked_fill(&is_zero, 0.0)
}

/// Share of each input of an output whose inputs add nothing: as much as any other, so that nothing is lost.
fn equal_each(relevance: &Tensor, sum: &Tensor, inputs: i64) -> Tensor {
    relevance * sum.eq(0.0).to_kind(sum.kind()) / inputs as f64
}

/// The same summed over outputs, `[n, position, 1]`.
fn equal_shares(relevance: &Tensor, sum: &Tensor, inputs: i64) -> Tensor {
    equal_each(relevance, sum, inputs).sum_dim_intlist(-1, true, None)
}

/// Half of z⁺ / (Σ z⁺ + ε) and half of z⁻ / (Σ z⁻ - ε), sums over the axes of inputs.
fn shares(z: &Tensor, inputs: &[i64]) -> Tensor {
    let (positive, negative) = (z.clamp_min(0.0), z.clamp_max(0.0));
    let sum = |part: &Tensor| part.sum_dim_intlist(inputs, true, None);
    (&positive / (sum(&positive) + EPSILON) + &negative / (sum(&negative) - EPSILON)) * 0.5
}

/// Relevance of the inputs, `[n, position, in]`, rescaled at each position so that the sum of absolute values is that of the
/// outputs, `[n, position, out]`.
fn each_rescaled(relevance: &Tensor, found: Tensor) -> Tensor {
    let size = |of: &Tensor| of.abs().sum_dim_intlist(-1, true, None); // [n, position, 1]
    &found * (size(relevance) / size(&found).clamp_min(f64::MIN_POSITIVE))
}

/// Several tensors, `[n, ..]`, scaled together so that of each row the sum of absolute values is that of `relevance`.
pub(super) fn rescaled<const PARTS: usize>(relevance: &Tensor, parts: [Tensor; PARTS]) -> [Tensor; PARTS] {
    let size = |of: &Tensor| of.abs().flatten(1, -1).sum_dim_intlist(1, false, None); // [n]
    let all = parts.iter().map(size).reduce(|sum, next| sum + next).expect("one part or more");
    let factor = size(relevance) / all.clamp_min(f64::MIN_POSITIVE);
    parts.map(|part| {
        let mut shape = vec![1; part.dim()];
        shape[0] = -1;
        part * factor.view(shape.as_slice())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_equal(found: &Tensor, expected: &Tensor, what: &str) {
        let gap = (found - expected).abs().max().double_value(&[]);
        assert!(gap < 1e-6, "{what}: {gap:e}");
    }

    /// Two logits of which the first is the greater: from (0, 0) both are 0, and the 1 is divided equally; from (1, -1) the
    /// greatest, of the bias alone, gets 3 - 3 = 0, likewise; from (2, 1) it gets 6 + 3: 2/3 and 1/3.
    #[test]
    fn a_logit_that_nothing_adds_to_is_divided_equally() {
        let hidden = Tensor::from_slice2(&[[0.0, 0.0], [1.0, -1.0], [2.0, 1.0]]);
        let layer = (Tensor::from_slice2(&[[3.0, 3.0], [1.0, 1.0]]), Tensor::from_slice(&[0.5, 0.0]));
        let found = Rule::Paper.greatest_logit(&hidden, (&layer.0, &layer.1));
        let expected = [[0.5, 0.5], [0.5, 0.5], [2.0 / 3.0, 1.0 / 3.0]];
        for (place, expected) in (0..).zip(expected) {
            let own = found.get(place).get(place);
            assert_equal(&own, &Tensor::from_slice(&expected), "its own position");
        }
        assert_equal(&found.sum(None), &Tensor::from(3.0), "and no other");
    }

    /// Relevance (1, 3) of outputs to which inputs of 0, or two that cancel, add nothing: half of each to either term of a sum,
    /// half of all to either input of a map or of a normalisation.
    #[test]
    fn outputs_that_nothing_adds_to_are_divided_equally() {
        let given = Tensor::from_slice(&[1.0, 3.0]).view([1, 1, 2]);
        let (x, half) =
            (Tensor::from_slice2(&[[5.0, -2.0]]), Tensor::from_slice(&[2.0, 2.0]).view([1, 1, 2]));
        for term in Rule::Paper.residual(&given, &x, &x.neg()) {
            assert_equal(&term, &(&given * 0.5), "residual");
        }
        let (zero, bias) = (x.zeros_like(), Tensor::from_slice(&[7.0, -1.0]));
        let weight = Tensor::from_slice2(&[[3.0, 1.0], [1.0, -1.0]]);
        assert_equal(&Rule::Paper.affine(&given, &zero, &weight, &bias), &half, "linear");
        let norm = LayerNorm::new(bias.shallow_clone(), Some(bias.shallow_clone()), 1e-12);
        assert_equal(&Rule::Paper.norm(&given, &zero, &norm), &half, "norm");
    }

    /// x = (1, 2), W = ((3, 1), (1, -1)), b = (1, 0), R = (1, 0): z = (3, 2) to the first output, without its bias. In shares
    /// 3/5 and 2/5; with half of the bias each 3.5 and 2.5: 7/12 and 5/12, all of it positive.
    #[test]
    fn a_linear_map_divides_by_what_inputs_add() {
        let tensor = |values: &[f64], shape: &[i64]| Tensor::from_slice(values).view(shape);
        let (x, weight) = (tensor(&[1.0, 2.0], &[1, 2]), tensor(&[3.0, 1.0, 1.0, -1.0], &[2, 2]));
        let (bias, given) = (tensor(&[1.0, 0.0], &[2]), tensor(&[1.0, 0.0], &[1, 1, 2]));
        let found = |rule: Rule| rule.affine(&given, &x, &weight, &bias);
        assert_equal(&found(Rule::Paper), &tensor(&[0.6, 0.4], &[1, 1, 2]), "paper");
        assert_equal(&found(Rule::AlphaBeta), &tensor(&[7.0 / 12.0, 5.0 / 12.0], &[1, 1, 2]), "alpha-beta");
    }
}
