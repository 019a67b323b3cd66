//! Demo data for induction: repeated random symbols. Each text is a block followed by its repetition, so that a model which looks up what
//! came after the earlier occurrence of a symbol predicts the whole second half (Olsson et al. 2022, "In-context learning and induction
//! heads", <https://arxiv.org/abs/2209.11895>). Block lengths vary, so that the earlier occurrence is not at a fixed distance.
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::documents::Document;
use crate::splits::check;

/// Symbols, the first of which are used: printable ASCII characters except the space.
const SYMBOLS: std::ops::RangeInclusive<char> = '!'..='~';

/// Settings of the repeated random symbols.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeats {
    /// Seed of the blocks; a split does not depend on the sizes of the others.
    pub seed: u64,
    /// Number of symbols to draw blocks from; each occurs at most once per block.
    pub symbols: usize,
    /// Length of the shortest block in symbols; all lengths up to the longest are equally frequent.
    pub shortest: usize,
    /// Length of the longest block in symbols.
    pub longest: usize,
    /// Number of training texts.
    pub train: usize,
    /// Number of texts on which the best epoch is chosen.
    pub dev: usize,
    /// Number of test texts.
    pub test: usize,
}

impl Repeats {
    /// Names of the splits.
    pub const SPLITS: [&str; 3] = ["train", "dev", "test"];

    /// Checks that the settings do not contradict each other.
    pub fn validate(&self) -> Result<(), String> {
        check(&[
            ("data.repeats.symbols must be at most 94", self.symbols <= SYMBOLS.clone().count()),
            ("data.repeats.longest must be at most data.repeats.symbols", self.longest <= self.symbols),
            (
                "data.repeats.shortest must be from 1 to data.repeats.longest",
                (1..=self.longest).contains(&self.shortest),
            ),
            (
                "sizes in data.repeats must be at most 10000000",
                [self.train, self.dev, self.test].iter().all(|&size| size <= 10_000_000),
            ),
        ])
    }

    /// Returns the texts of a split, each a block and its repetition; `None` if the split does not exist.
    pub fn read(&self, split: &str) -> Option<Vec<Document>> {
        let place = Self::SPLITS.iter().position(|&name| name == split)?;
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(place as u64);
        let mut symbols: Vec<char> = SYMBOLS.clone().take(self.symbols).collect();
        let mut text = || {
            let length = random.random_range(self.shortest..=self.longest);
            let (block, _) = symbols.partial_shuffle(&mut random, length);
            let block: String = block.iter().collect();
            Document::from(block.clone() + &block)
        };
        Some((0..[self.train, self.dev, self.test][place]).map(|_| text()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Repeats =
        Repeats { seed: 1, symbols: 9, shortest: 2, longest: 5, train: 400, dev: 7, test: 100 };

    #[test]
    fn a_split_does_not_depend_on_the_sizes_of_the_others() {
        let more = Repeats { train: 500, test: 50, ..OWN };
        assert_eq!(more.read("train").unwrap()[..400], OWN.read("train").unwrap());
        assert_eq!(more.read("test").unwrap(), OWN.read("test").unwrap()[..50]);
        assert_ne!(OWN.read("test").unwrap()[..7], OWN.read("dev").unwrap());
        assert!(OWN.read("shifted").is_none());
    }

    #[test]
    fn impossible_block_lengths_are_refused() {
        assert_eq!(OWN.validate(), Ok(()));
        let faults = [
            (Repeats { symbols: 95, ..OWN }, "data.repeats.symbols must be at most 94"),
            (Repeats { longest: 10, ..OWN }, "data.repeats.longest must be at most data.repeats.symbols"),
            (Repeats { shortest: 0, ..OWN }, "data.repeats.shortest must be from 1 to data.repeats.longest"),
            (Repeats { shortest: 6, ..OWN }, "data.repeats.shortest must be from 1 to data.repeats.longest"),
        ];
        for (repeats, fault) in faults {
            assert_eq!(repeats.validate(), Err(fault.to_owned()));
        }
    }
}
