//! The alpha-beta rule for steps of each position alone, on plain slices: what inputs add to outputs is another matrix at each
//! position, which tensors could only hold and read from memory.
use tch::Tensor;

use super::rules::EPSILON;
use crate::to_vec;

/// Numbers that are added up side by side.
const LANES: usize = 8;

/// Positions that are gone through together, so that weights are read once for all of them.
const BLOCK: usize = 8;

/// Relevance of the inputs of a step that looks at each position alone, before it is rescaled.
///
/// - `relevance`: of the outputs, `[n, position, out]`
/// - `inputs`: of each position
/// - `fill`: writes z, what each input adds to an output, for a position and an output
/// - returns `[n, position, in]`, of the kind and on the device of `relevance`
pub(super) fn by_position(
    relevance: &Tensor,
    inputs: usize,
    mut fill: impl FnMut(usize, usize, &mut [f64]),
) -> Tensor {
    let size = relevance.size();
    let [rows, positions, outputs] = [size[0], size[1], size[2]].map(|extent| extent as usize);
    let given: Vec<f64> = to_vec(&relevance.permute([1, 2, 0])); // [position, out, n]
    let mut found = vec![0.0; positions * rows * inputs]; // [position, n, in]
    let mut z = vec![0.0; inputs];
    let of_position = (rows * inputs).max(1);
    for (block, found) in found.chunks_mut(BLOCK * of_position).enumerate() {
        for output in 0..outputs {
            for (position, found) in (BLOCK * block..).zip(found.chunks_exact_mut(of_position)) {
                let given = &given[(position * outputs + output) * rows..][..rows];
                if given.iter().any(|&relevance| relevance != 0.0) {
                    fill(position, output, &mut z);
                    divide(given, &z, found);
                }
            }
        }
    }
    let shape = [positions as i64, rows as i64, inputs as i64];
    let found = Tensor::from_slice(&found).view(shape).transpose(0, 1);
    found.to_device(relevance.device()).to_kind(relevance.kind())
}

/// Adds to `found`, `[n, in]`, what inputs get of the relevance of one output, `[n]`.
fn divide(relevance: &[f64], z: &[f64], found: &mut [f64]) {
    let (up, down) = sums(z);
    for (&relevance, found) in relevance.iter().zip(found.chunks_exact_mut(z.len())) {
        if relevance != 0.0 {
            let of_up = 0.5 * relevance / (up + EPSILON);
            let of_down = 0.5 * relevance / (down - EPSILON);
            for (found, &z) in found.iter_mut().zip(z) {
                *found += of_up * above(z) + of_down * below(z);
            }
        }
    }
}

/// What is above 0. Quicker than `f64::max`, and hands on what is no number.
fn above(z: f64) -> f64 {
    if z < 0.0 { 0.0 } else { z }
}

/// What is below 0.
fn below(z: f64) -> f64 {
    if z > 0.0 { 0.0 } else { z }
}

/// The sum of what is above 0, and of what is below.
fn sums(z: &[f64]) -> (f64, f64) {
    let (mut up, mut down) = ([0.0; LANES], [0.0; LANES]);
    let whole = z.chunks_exact(LANES);
    let rest = whole.remainder();
    for chunk in whole {
        for lane in 0..LANES {
            up[lane] += above(chunk[lane]);
            down[lane] += below(chunk[lane]);
        }
    }
    let add = |lanes: [f64; LANES], part: fn(f64) -> f64| {
        lanes.iter().sum::<f64>() + rest.iter().map(|&z| part(z)).sum::<f64>()
    };
    (add(up, above), add(down, below))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve inputs: 3, 1 and -2 add something. Half of 1 is divided 3 : 1, half goes to -2.
    #[test]
    fn half_goes_to_what_adds_and_half_to_what_takes_away() {
        let mut z = [0.0; 12];
        (z[1], z[9], z[11]) = (3.0, 1.0, -2.0);
        assert_eq!(sums(&z), (4.0, -2.0));
        let mut found = vec![0.0; 24];
        divide(&[1.0, -2.0], &z, &mut found);
        for (place, expected) in [(0, 0.0), (1, 0.375), (9, 0.125), (11, 0.5), (13, -0.75), (23, -1.0)] {
            assert!((found[place] - expected).abs() < 1e-5, "{place}: {}", found[place]);
        }
    }
}
