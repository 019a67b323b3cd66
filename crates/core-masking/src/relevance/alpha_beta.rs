//! The alpha-beta rule for steps that look at each position alone, on plain slices. What inputs add to outputs is a matrix of its
//! own at each position, too many to be held as tensors.
use std::array;

use pulp::{Arch, NullaryFnOnce};
use tch::Tensor;

use super::rules::EPSILON;
use crate::to_vec;

/// Numbers that are added up side by side.
const LANES: usize = 8;

/// Positions that are gone through together, so that weights are read once for all of them.
const BLOCK: usize = 8;

/// Outputs that are divided together, so that a sum is loaded and stored once for all of them.
const TOGETHER: usize = 4;

/// Divides relevance between the inputs of a step that looks at each position alone: of an output with relevance R an input
/// gets `a z⁺ + c z⁻`, where `a = R / 2 (Σ z⁺ + ε)` and `c = R / 2 (Σ z⁻ - ε)`.
///
/// - `relevance`: of the outputs, `[n, position, out]`
/// - `inputs`: of each position
/// - `fill`: writes z, what each input adds to an output, for a position and an output
/// - returns that of the inputs, `[n, position, in]`, not yet rescaled
pub(super) fn by_position(
    relevance: &Tensor,
    inputs: usize,
    fill: impl Fn(usize, usize, &mut [f64]),
) -> Tensor {
    let size = relevance.size();
    let [rows, positions, outputs] = [size[0], size[1], size[2]].map(|extent| extent as usize);
    let given: Vec<f64> = to_vec(&relevance.permute([1, 2, 0])); // [position, out, n]
    let mut found = vec![0.0; positions * rows * inputs]; // [position, n, in]
    // compiled for each set of vector instructions, since most of the time is spent here
    Arch::new().dispatch(Division { rows, inputs, outputs, given: &given, found: &mut found, fill });
    let found = Tensor::from_slice(&found).view([size[1], size[0], inputs as i64]).transpose(0, 1);
    found.to_device(relevance.device()).to_kind(relevance.kind())
}

/// The division as a value, so that it is compiled as a whole for the instructions that it is called with.
struct Division<'a, F> {
    rows: usize,
    inputs: usize,
    outputs: usize,
    given: &'a [f64],
    found: &'a mut [f64],
    fill: F,
}

impl<F: Fn(usize, usize, &mut [f64])> NullaryFnOnce for Division<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { rows, inputs, outputs, given, found, fill } = self;
        let mut some_outputs = Outputs::new(inputs);
        let of_position = (rows * inputs).max(1);
        for (block, found) in found.chunks_mut(BLOCK * of_position).enumerate() {
            for first in (0..outputs).step_by(TOGETHER) {
                let some = first..outputs.min(first + TOGETHER);
                for (position, found) in (BLOCK * block..).zip(found.chunks_exact_mut(of_position)) {
                    let given = &given[(position * outputs + first) * rows..][..rows * some.len()];
                    if given.iter().any(|&relevance| relevance != 0.0) {
                        some_outputs.fill(some.clone().map(|output| (position, output)), &fill);
                        some_outputs.divide(given, found);
                    }
                }
            }
        }
    }
}

/// Contributions of inputs to some outputs of a position.
struct Outputs {
    inputs: usize,
    above: Vec<f64>, // z⁺, [TOGETHER, in]
    below: Vec<f64>, // z⁻, the same
    sums: [Sums; TOGETHER],
}

/// Sums of what the inputs of an output add and of what they take away.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    /// `Σ z⁺`
    above: f64,
    /// `Σ z⁻`
    below: f64,
}

impl Outputs {
    fn new(inputs: usize) -> Self {
        let [above, below] = array::from_fn(|_| vec![0.0; TOGETHER * inputs]);
        Self { inputs, above, below, sums: [Sums::default(); TOGETHER] }
    }

    /// `outputs`: positions and outputs; what was there of others stays, which [`divide`](Self::divide) gives nothing.
    #[inline(always)]
    fn fill(&mut self, outputs: impl Iterator<Item = (usize, usize)>, z: &impl Fn(usize, usize, &mut [f64])) {
        let parts = self.above.chunks_exact_mut(self.inputs).zip(self.below.chunks_exact_mut(self.inputs));
        for (((position, output), (above, below)), sums) in outputs.zip(parts).zip(&mut self.sums) {
            z(position, output, above);
            *sums = split(above, below);
        }
    }

    /// - `given`: relevance of the outputs, `[out, n]`
    /// - `found`: the sum to which that of the inputs is added, `[n, in]`
    #[inline(always)]
    fn divide(&self, given: &[f64], found: &mut [f64]) {
        let rows = found.len() / self.inputs;
        let [above, below] = [&self.above, &self.below].map(|part| {
            let mut outputs = part.chunks_exact(self.inputs);
            array::from_fn::<&[f64], TOGETHER, _>(|_| outputs.next().expect("room for these outputs"))
        });
        for (row, found) in found.chunks_exact_mut(self.inputs).enumerate() {
            let (mut of_above, mut of_below) = ([0.0; TOGETHER], [0.0; TOGETHER]);
            for (output, given) in given.chunks_exact(rows).enumerate() {
                of_above[output] = 0.5 * given[row] / (self.sums[output].above + EPSILON);
                of_below[output] = 0.5 * given[row] / (self.sums[output].below - EPSILON);
            }
            if of_above != [0.0; TOGETHER] {
                for (input, found) in found.iter_mut().enumerate() {
                    let mut sum = *found;
                    for output in 0..TOGETHER {
                        sum +=
                            of_above[output] * above[output][input] + of_below[output] * below[output][input];
                    }
                    *found = sum;
                }
            }
        }
    }
}

/// Splits z, given in `above`, into z⁺ and z⁻.
#[inline(always)]
fn split(above: &mut [f64], below: &mut [f64]) -> Sums {
    for (above, below) in above.iter_mut().zip(&mut *below) {
        *below = if *above < 0.0 { *above } else { 0.0 };
        *above -= *below;
    }
    Sums { above: sum(above), below: sum(below) }
}

#[inline(always)]
fn sum(values: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve inputs: 3, 1 and -2 add something. Half of 1 is divided 3 : 1, half goes to -2. Other outputs get nothing of what was
    /// there before.
    #[test]
    fn half_goes_to_what_adds_and_half_to_what_takes_away() {
        let mut outputs = Outputs::new(12);
        outputs.fill((0..TOGETHER).map(|output| (0, output)), &|_, _, z| z.fill(7.0));
        outputs.fill([(5, 6)].into_iter(), &|position, output, z| {
            assert_eq!((position, output), (5, 6));
            z.fill(0.0);
            (z[1], z[9], z[11]) = (3.0, 1.0, -2.0);
        });
        assert_eq!(outputs.sums[0], Sums { above: 4.0, below: -2.0 });
        let mut found = [0.0; 24];
        outputs.divide(&[1.0, -2.0], &mut found);
        for (row, sign) in [(0, 1.0), (1, -2.0)] {
            for (place, expected) in [(0, 0.0), (1, 0.375), (9, 0.125), (11, 0.5)] {
                let found = found[12 * row + place];
                assert!((found - sign * expected).abs() < 1e-5, "{row} {place}: {found}");
            }
        }
    }
}
