//! Images as classifier inputs: Dosovitskiy et al. (2021), <https://arxiv.org/abs/2010.11929>, Section 3.1.
use serde::{Deserialize, Serialize};

use super::ClassifierOptions;

/// Shape of a model's images, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageShape {
    /// 3 for RGB, 1 for greyscale.
    pub channels: i64,
    /// Number of rows.
    pub height: i64,
    /// Number of columns.
    pub width: i64,
    /// Side of a patch; pixels beyond the last whole patch are ignored.
    pub patch: i64,
}

/// Height and width of an image, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number of pixels, or height and width")]
pub enum ImageSize {
    /// Equal height and width.
    Square(i64),
    /// Height, then width.
    Sides([i64; 2]),
}

/// Maximum side of an image, in pixels.
const LONGEST_SIDE: i64 = 1 << 13;

impl ImageShape {
    pub(super) fn of(options: &ClassifierOptions) -> Option<Self> {
        let ClassifierOptions { image_size, patch_size, num_channels, .. } = options;
        let [height, width] = match (*image_size)? {
            ImageSize::Square(side) => [side; 2],
            ImageSize::Sides(sides) => sides,
        };
        Some(Self { channels: (*num_channels)?, height, width, patch: (*patch_size)? })
    }

    pub(super) fn validate(self) -> Result<(), String> {
        let Self { channels, height, width, patch } = self;
        let sides = [("image_size", height), ("image_size", width), ("patch_size", patch)];
        if ![1, 3].contains(&channels) {
            return Err(format!("num_channels is {channels}; it must be 1 (greyscale) or 3 (RGB)"));
        }
        for (name, number) in sides {
            if !(1..=LONGEST_SIDE).contains(&number) {
                return Err(format!("{name} is {number}; it must be from 1 to {LONGEST_SIDE}"));
            }
        }
        if patch > height.min(width) {
            return Err(format!("patch_size ({patch}) is larger than image_size ({})", height.min(width)));
        }
        Ok(())
    }

    /// Returns the number of patches.
    pub fn patches(self) -> i64 {
        (self.height / self.patch) * (self.width / self.patch)
    }

    /// Returns the number of values.
    pub fn values(self) -> i64 {
        self.channels * self.height * self.width
    }
}
