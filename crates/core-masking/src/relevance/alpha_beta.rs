//! The alpha-beta rule for steps that look at each position alone, on plain slices. What inputs add to outputs is a matrix of its
//! own at each position, too many to be held as tensors.
//!
//! An output with relevance R gives an input `a z⁺ + c z⁻ = (a - c) z⁺ + c z`, where `a = R / 2 (Σ z⁺ + ε)` and
//! `c = R / 2 (Σ z⁻ - ε)`. Of this the first term is added up here, and the second, which is linear in z, is left to the caller.
use tch::Tensor;

use super::rules::EPSILON;
use crate::to_vec;

/// Numbers that are added up side by side.
const LANES: usize = 8;

/// Positions that are gone through together, so that weights are read once for all of them.
const BLOCK: usize = 8;

/// Relevance of the inputs of a step, before it is rescaled.
pub(super) struct Divided {
    /// The sum over outputs of `(a - c) z⁺`, `[n, position, in]`.
    pub(super) above: Tensor,
    /// The c of each output, `[n, position, out]`.
    pub(super) factors: Tensor,
}

/// Divides relevance between the inputs of a step that looks at each position alone.
///
/// - `relevance`: of the outputs, `[n, position, out]`
/// - `inputs`: of each position
/// - `fill`: writes z, what each input adds to an output, for a position and an output
pub(super) fn by_position(
    relevance: &Tensor,
    inputs: usize,
    fill: impl Fn(usize, usize, &mut [f64]),
) -> Divided {
    let size = relevance.size();
    let [rows, positions, outputs] = [size[0], size[1], size[2]].map(|extent| extent as usize);
    let mut factors: Vec<f64> = to_vec(&relevance.permute([1, 2, 0])); // [position, out, n], first of R
    let mut found = vec![0.0; positions * rows * inputs]; // [position, n, in]
    let mut z = vec![0.0; inputs];
    let of_position = (rows * inputs).max(1);
    for (block, found) in found.chunks_mut(BLOCK * of_position).enumerate() {
        for output in 0..outputs {
            for (position, found) in (BLOCK * block..).zip(found.chunks_exact_mut(of_position)) {
                let factors = &mut factors[(position * outputs + output) * rows..][..rows];
                if factors.iter().any(|&relevance| relevance != 0.0) {
                    fill(position, output, &mut z);
                    divide(factors, &mut z, found);
                }
            }
        }
    }
    let tensor = |values: &[f64], shape: [usize; 3], axes: [i64; 3]| {
        let tensor = Tensor::from_slice(values).view(shape.map(|extent| extent as i64)).permute(axes);
        tensor.to_device(relevance.device()).to_kind(relevance.kind())
    };
    Divided {
        above: tensor(&found, [positions, rows, inputs], [1, 0, 2]),
        factors: tensor(&factors, [positions, outputs, rows], [2, 0, 1]),
    }
}

/// Adds `(a - c) z⁺` of one output to `found`, `[n, in]`; turns its relevance into c, and z into z⁺.
fn divide(factors: &mut [f64], z: &mut [f64], found: &mut [f64]) {
    let (above, all) = keep_above(z);
    let below = all - above;
    for (factor, found) in factors.iter_mut().zip(found.chunks_exact_mut(z.len())) {
        if *factor != 0.0 {
            let of_above = 0.5 * *factor / (above + EPSILON);
            *factor = 0.5 * *factor / (below.min(0.0) - EPSILON);
            let difference = of_above - *factor;
            for (found, &z) in found.iter_mut().zip(&*z) {
                *found += difference * z;
            }
        }
    }
}

/// Turns z into z⁺; returns the sums of z⁺ and of z.
fn keep_above(z: &mut [f64]) -> (f64, f64) {
    let (mut above, mut all) = ([0.0; LANES], [0.0; LANES]);
    let mut whole = z.chunks_exact_mut(LANES);
    for chunk in whole.by_ref() {
        for lane in 0..LANES {
            all[lane] += chunk[lane];
            // quicker than `f64::max`, and NaN stays NaN
            chunk[lane] = if chunk[lane] < 0.0 { 0.0 } else { chunk[lane] };
            above[lane] += chunk[lane];
        }
    }
    let (mut above, mut all) = (above.iter().sum::<f64>(), all.iter().sum::<f64>());
    for z in whole.into_remainder() {
        all += *z;
        *z = z.max(0.0);
        above += *z;
    }
    (above, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve inputs: 3, 1 and -2 add something. Half of 1 is divided 3 : 1, half goes to -2: with c = 1/2 / -2 and
    /// a = 1/2 / 4, (a - c) z⁺ + c z is 3/8, 1/8 and 1/2.
    #[test]
    fn half_goes_to_what_adds_and_half_to_what_takes_away() {
        let mut z = [0.0; 12];
        (z[1], z[9], z[11]) = (3.0, 1.0, -2.0);
        let whole = z;
        assert_eq!(keep_above(&mut z.clone()), (4.0, 2.0));
        let (mut found, mut factors) = (vec![0.0; 24], [1.0, -2.0]);
        divide(&mut factors, &mut z, &mut found);
        for (row, sign) in [(0, 1.0), (1, -2.0)] {
            for (place, expected) in [(0, 0.0), (1, 0.375), (9, 0.125), (11, 0.5)] {
                let whole = found[12 * row + place] + factors[row] * whole[place];
                assert!((whole - sign * expected).abs() < 1e-5, "{row} {place}: {whole}");
            }
        }
    }
}
