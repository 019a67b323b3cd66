//! Relevance propagation through single operations. Axis `n`: target positions, all propagated in one pass.
use tch::Tensor;

use crate::layers::{LayerNorm, Linear};

/// Stabiliser ε.
const EPSILON: f64 = 1e-5;

/// Splits z into z⁺ and z⁻, which sum to z.
pub(super) fn signs(z: &Tensor) -> [Tensor; 2] {
    let up = z.clamp_min(0.0);
    let down = z - &up;
    [up, down]
}

/// Returns the relevance per unit of z⁺ or z⁻ if the output has relevance 1: ½ / (Σ z⁺ + ε) or ½ / (Σ z⁻ - ε).
pub(super) fn rate(sum: &Tensor, sign: usize) -> Tensor {
    0.5 / (sum + [EPSILON, -EPSILON][sign])
}

/// Returns the share of an output's relevance that each input gets. `z`: contributions of inputs to outputs, `[.., in]`.
fn shares(z: &Tensor) -> Tensor {
    let [up, down] = signs(z);
    let sums = [&up, &down].map(|part| part.sum_dim_intlist(-1, true, None));
    up * rate(&sums[0], 0) + down * rate(&sums[1], 1)
}

/// Maximum entries of z in memory at once, so that they fit into the CPU cache; one position may have more.
const AT_ONCE: i64 = 1 << 16;

/// Propagates through a position-wise operation.
///
/// - `relevance`: of the outputs, `[n, position, out]`
/// - `x`: `[position, in]`
/// - `z`: maps inputs at some positions, `[some, in]`, to their contributions to outputs, `[some, out, in]`
/// - returns the relevance of `x`, `[n, position, in]`, rescaled to conserve it at each position
fn at_each_position(relevance: &Tensor, x: &Tensor, z: impl Fn(&Tensor) -> Tensor) -> Tensor {
    let some = (AT_ONCE / (relevance.size()[2] * x.size()[1]).max(1)).max(1);
    let parts = relevance.split(some, 1).into_iter().zip(x.split(some, 0));
    let of = |(relevance, x): (Tensor, Tensor)| relevance.transpose(0, 1).matmul(&shares(&z(&x))); // [some, n, in]
    let found = Tensor::cat(&parts.map(of).collect::<Vec<_>>(), 0).transpose(0, 1);
    let size = |of: &Tensor| of.abs().sum_dim_intlist(-1, true, None); // [n, position, 1]
    &found * (size(relevance) / size(&found).clamp_min(f64::MIN_POSITIVE))
}

/// Propagates through linear maps of one input: `z[i, j] = W[i, j] x[j] + b[i] / in`.
///
/// - `relevance`: of the outputs of all maps, `[n, position, out]`
/// - `x`: `[position, in]`
/// - returns the relevance of `x`, `[n, position, in]`
pub(super) fn linear(relevance: &Tensor, x: &Tensor, maps: &[&Linear]) -> Tensor {
    let weight = Tensor::cat(&maps.iter().map(|map| map.weight()).collect::<Vec<_>>(), 0); // [out, in]
    let bias = Tensor::cat(&maps.iter().map(|map| map.bias()).collect::<Vec<_>>(), 0);
    let even = (bias / x.size()[1] as f64).unsqueeze(1); // [out, 1]
    at_each_position(relevance, x, |x| &weight * x.unsqueeze(1) + &even)
}

/// Propagates through layer norm: `z[i, j] = J[i, j] x[j] + β[i] / width`, with Jacobian `J = γ / σ (I - (1 + x̂ x̂ᵀ) / width)`.
///
/// - `relevance`: `[n, position, width]`, like the result
/// - `x`: `[position, width]`
pub(super) fn norm(relevance: &Tensor, x: &Tensor, norm: &LayerNorm) -> Tensor {
    let ((weight, bias, epsilon), width) = (norm.parts(), x.size()[1]);
    let even = (bias / width as f64).unsqueeze(1); // [out, 1]
    let identity = Tensor::eye(width, (x.kind(), x.device()));
    at_each_position(relevance, x, |x| {
        let mean = |of: &Tensor| of.mean_dim(-1, true, None); // [some, 1]
        let centred = x - mean(x);
        let deviation = (mean(&centred.square()) + epsilon).sqrt();
        let scaled = centred / &deviation;
        let jacobian = &identity - (scaled.unsqueeze(2) * scaled.unsqueeze(1) + 1.0) / width as f64; // [some, out, in]
        (weight / deviation).unsqueeze(2) * jacobian * x.unsqueeze(1) + &even
    })
}

/// Propagates through `x + y`; returns the relevance of both.
///
/// - `relevance`: `[n, position, width]`; `x`, `y`: `[position, width]`
pub(super) fn sum(relevance: &Tensor, x: &Tensor, y: &Tensor) -> [Tensor; 2] {
    let shares = shares(&Tensor::stack(&[x, y], -1)); // [position, width, 2]
    rescaled(relevance, [0, 1].map(|term| relevance * shares.select(-1, term)))
}

/// Starts with relevance 1 at the largest logit of each position, one row per position.
///
/// - `hidden`: `[position, d_model]`; `embedding`: `[vocab, d_model]`; `bias`: `[vocab]`
/// - returns the relevance of `hidden`, `[position, position, d_model]`
pub(super) fn largest_logit(hidden: &Tensor, (embedding, bias): (&Tensor, &Tensor)) -> Tensor {
    let top = hidden.linear(embedding, Some(bias)).argmax(-1, false); // [position]
    let even = bias.index_select(0, &top).unsqueeze(1) / hidden.size()[1] as f64;
    let found = shares(&(hidden * embedding.index_select(0, &top) + even)); // [position, d_model]
    let size = found.abs().sum_dim_intlist(-1, true, None).clamp_min(f64::MIN_POSITIVE);
    Tensor::eye(hidden.size()[0], (hidden.kind(), hidden.device())).unsqueeze(-1)
        * (found / size).unsqueeze(1)
}

/// Scales `parts`, `[n, ..]`, by one factor per row to restore the sum of absolute values of `relevance`.
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

    /// x = (1, 2), W = (3 1), b = 1: z = (3.5, 2.5), all positive, so the inputs get 7/12 and 5/12 of the relevance 2. For x = (0, 0)
    /// both get half.
    #[test]
    fn a_linear_map_divides_relevance_by_contribution() {
        let (weight, bias) = (Tensor::from_slice2(&[[3.0, 1.0]]), Some(Tensor::from_slice(&[1.0])));
        let map = Linear::from(families::parts::Linear { weight, bias });
        let relevance = Tensor::from_slice(&[2.0, 2.0]).view([1, 2, 1]);
        let x = Tensor::from_slice2(&[[1.0, 2.0], [0.0, 0.0]]);
        let found = linear(&relevance, &x, &[&map]).flatten(0, -1);
        let expected = Tensor::from_slice(&[7.0 / 6.0, 5.0 / 6.0, 1.0, 1.0]);
        let gap = (found - expected).abs().max().double_value(&[]);
        assert!(gap < 1e-5, "{gap:e}");
    }
}
