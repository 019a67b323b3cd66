//! Images that a classifier reads: Dosovitskiy et al. (2021), <https://arxiv.org/abs/2010.11929>, Section 3.1.
use serde::{Deserialize, Serialize};

use super::ClassifierOptions;

/// Shape of the images that a model reads, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageShape {
    /// 3 for RGB, 1 for greyscale.
    pub channels: i64,
    /// Rows.
    pub height: i64,
    /// Columns.
    pub width: i64,
    /// Side of a patch; rows and columns beyond the last whole patch are not read.
    pub patch: i64,
}

/// Height and width of an image, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number of pixels, or height and width")]
pub enum ImageSize {
    /// Both.
    Square(i64),
    /// Height, then width.
    Sides([i64; 2]),
}

/// Pixels of the longest side of an image.
const LONGEST_SIDE: i64 = 1 << 13;

impl ImageShape {
    /// The shape that a `config.json` describes; `None` if it describes none.
    pub(super) fn of(options: &ClassifierOptions) -> Option<Self> {
        let ClassifierOptions { image_size, patch_size, num_channels, .. } = options;
        let [height, width] = match (*image_size)? {
            ImageSize::Square(side) => [side; 2],
            ImageSize::Sides(sides) => sides,
        };
        Some(Self { channels: (*num_channels)?, height, width, patch: (*patch_size)? })
    }

    /// Refuses an impossible shape: the fault, in words.
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
            return Err(format!("patch_size ({patch}) is more than image_size ({})", height.min(width)));
        }
        Ok(())
    }

    /// Patches of an image.
    pub fn patches(self) -> i64 {
        (self.height / self.patch) * (self.width / self.patch)
    }

    /// Numbers of an image.
    pub fn values(self) -> i64 {
        self.channels * self.height * self.width
    }
}
