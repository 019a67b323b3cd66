//! Resizing as in Pillow 11, to the last bit: the filter is as wide as the reduction, arithmetic is fixed-point, and rows come before
//! columns. Pillow 13 takes the faster order, and some levels differ by 1. Source:
//! <https://github.com/python-pillow/Pillow/blob/11.0.0/src/libImaging/Resample.c>.
use super::Levels;

/// Resampling filter, numbered as in Pillow and in `preprocessor_config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    Nearest,
    Lanczos,
    Bilinear,
    Bicubic,
    Box,
    Hamming,
}

/// Fractional bits of a weight: of 32 bits, 8 remain for a level and 2 for sums that overshoot.
const PRECISION: u32 = 32 - 8 - 2;

impl Filter {
    /// Returns the filter with this number in Pillow, or `None`.
    pub(super) fn numbered(number: u64) -> Option<Self> {
        let all = [Self::Nearest, Self::Lanczos, Self::Bilinear, Self::Bicubic, Self::Box, Self::Hamming];
        all.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the distance up to which pixels count, in pixels of the result.
    fn support(self) -> f64 {
        match self {
            Self::Nearest => 0.0,
            Self::Box => 0.5,
            Self::Bilinear | Self::Hamming => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// Returns the weight at a distance, before division by the sum of weights.
    fn weight(self, x: f64) -> f64 {
        let sinc = |x: f64| {
            if x == 0.0 { 1.0 } else { (x * std::f64::consts::PI).sin() / (x * std::f64::consts::PI) }
        };
        let distance = x.abs();
        match self {
            Self::Nearest => 0.0,
            Self::Box => f64::from(u8::from(x > -0.5 && x <= 0.5)),
            Self::Bilinear => (1.0 - distance).max(0.0),
            Self::Hamming if distance >= 1.0 => 0.0,
            Self::Hamming => sinc(x) * (0.54 + 0.46 * (x * std::f64::consts::PI).cos()),
            Self::Bicubic => cubic(distance),
            Self::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Self::Lanczos => 0.0,
        }
    }
}

/// Keys (1981), <https://doi.org/10.1109/TASSP.1981.1163711>, with a = -1/2.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

impl Levels {
    pub(super) fn resized(self, height: usize, width: usize, filter: Filter) -> Self {
        if (self.height, self.width) == (height, width) {
            return self;
        }
        if filter == Filter::Nearest {
            return self.nearest(height, width);
        }
        let narrow = if self.width == width { self } else { self.along_rows(width, filter) };
        if narrow.height == height {
            narrow
        } else {
            narrow.transposed().along_rows(height, filter).transposed()
        }
    }

    fn along_rows(&self, width: usize, filter: Filter) -> Self {
        let weights = weights(self.width, width, filter);
        let mut values = Vec::with_capacity(self.channels * self.height * width);
        for row in self.values.chunks_exact(self.width) {
            values.extend(weights.iter().map(|(first, weights)| {
                let sum: i64 = weights
                    .iter()
                    .zip(&row[*first..])
                    .map(|(weight, &level)| weight * i64::from(level))
                    .sum();
                ((sum + (1 << (PRECISION - 1))) >> PRECISION).clamp(0, 255) as u8
            }));
        }
        Self { values, width, ..*self }
    }

    fn transposed(&self) -> Self {
        let (height, width) = (self.height, self.width);
        let planes = self.values.chunks_exact(height * width);
        let values = planes.flat_map(|plane| {
            (0..width).flat_map(move |column| plane.iter().skip(column).step_by(width).copied())
        });
        Self { channels: self.channels, height: width, width: height, values: values.collect() }
    }

    fn nearest(&self, height: usize, width: usize) -> Self {
        let (rows, columns) = (places(self.height, height), places(self.width, width));
        let planes = self.values.chunks_exact(self.height * self.width);
        let values = planes.flat_map(|plane| {
            let columns = &columns;
            rows.iter()
                .flat_map(move |row| columns.iter().map(move |column| plane[row * self.width + column]))
        });
        Self { channels: self.channels, height, width, values: values.collect() }
    }
}

/// Returns the pixel that each pixel of the result is copied from. Like Pillow, adds step after step, including rounding errors.
fn places(old: usize, new: usize) -> Vec<usize> {
    let step = old as f64 / new as f64;
    let mut at = step * 0.5;
    let next = |_| {
        let place = (at as usize).min(old - 1);
        at += step;
        place
    };
    (0..new).map(next).collect()
}

/// Returns, for each pixel of the result, the first pixel that contributes and the weights from there on, which sum to `1 << PRECISION` up
/// to rounding.
fn weights(old: usize, new: usize, filter: Filter) -> Vec<(usize, Vec<i64>)> {
    let scale = old as f64 / new as f64;
    let reduction = scale.max(1.0);
    let support = filter.support() * reduction;
    let of_pixel = |pixel: usize| {
        let centre = (pixel as f64 + 0.5) * scale;
        let first = (centre - support + 0.5).max(0.0) as usize;
        let last = ((centre + support + 0.5) as usize).min(old);
        let weights: Vec<f64> = (first..last)
            .map(|place| filter.weight((place as f64 - centre + 0.5) * (1.0 / reduction)))
            .collect();
        let sum: f64 = weights.iter().sum();
        let fixed = |weight: &f64| {
            let weight = if sum == 0.0 { *weight } else { weight / sum };
            (weight * f64::from(1 << PRECISION) + 0.5_f64.copysign(weight)) as i64
        };
        (first, weights.iter().map(fixed).collect())
    };
    (0..new).map(of_pixel).collect()
}
