//! Rotary positions: Su et al. (2021), <https://arxiv.org/abs/2104.09864>. As in transformers, a dimension of the first half of a head is
//! paired with one of the second half; in some families neighbouring dimensions are paired, as in the paper.
use families::rotary::RotaryConfig;
use tch::{Device, Kind, Tensor};

#[derive(Debug)]
pub(crate) struct Rotary {
    frequencies: Tensor, // [width / 2], radians per token, in double precision
    interleaved: bool,
}

/// Rotations at consecutive positions, `[position, width / 2]` each.
#[derive(Debug)]
pub(crate) struct RotaryAngles {
    cosines: Tensor,
    sines: Tensor,
    interleaved: bool,
}

impl Rotary {
    pub(crate) fn new(
        RotaryConfig { width, interleaved, theta, scaling }: RotaryConfig,
        device: Device,
    ) -> Self {
        let frequency = |place: i64| {
            let plain = theta.powf(-2.0 * place as f64 / width as f64);
            scaling.map_or(plain, |scaling| scaling.scale(plain))
        };
        let frequencies: Vec<f64> = (0..width / 2).map(frequency).collect();
        Self { frequencies: Tensor::from_slice(&frequencies).to_device(device), interleaved }
    }

    /// Returns the rotations at `count` positions from `first` on, counted from 0.
    pub(crate) fn angles(&self, first: i64, count: i64, kind: Kind) -> RotaryAngles {
        let positions = Tensor::arange_start(first, first + count, (Kind::Double, self.frequencies.device()));
        let angles = positions.unsqueeze(1) * &self.frequencies; // [position, width / 2]
        RotaryAngles {
            cosines: angles.cos().to_kind(kind),
            sines: angles.sin().to_kind(kind),
            interleaved: self.interleaved,
        }
    }
}

impl RotaryAngles {
    /// Rotates queries or keys at the first positions, `[batch, heads, position, d_head]`.
    pub(crate) fn apply(&self, x: &Tensor) -> Tensor {
        let half = self.cosines.size()[1];
        let rest = x.size()[3] - 2 * half;
        let [cosines, sines] = [&self.cosines, &self.sines].map(|all| all.narrow(0, 0, x.size()[2]));
        let rotated = x.narrow(3, 0, 2 * half);
        let (first, second) = if self.interleaved {
            let pairs = rotated.unflatten(3, [half, 2]); // [batch, heads, position, half, 2]
            (pairs.select(4, 0), pairs.select(4, 1))
        } else {
            (rotated.narrow(3, 0, half), rotated.narrow(3, half, half))
        };
        let (turned, by) = (&first * &cosines - &second * &sines, second * cosines + first * sines);
        let mut parts = if self.interleaved {
            vec![Tensor::stack(&[turned, by], 4).flatten(3, 4)]
        } else {
            vec![turned, by]
        };
        if rest > 0 {
            parts.push(x.narrow(3, 2 * half, rest));
        }
        Tensor::cat(&parts, 3)
    }
}
