//! The demo of induction: blocks of random symbols, each said twice, so that a model which looks up what came after the earlier
//! occurrence of a symbol knows the whole second half (Olsson et al. 2022, "In-context learning and induction heads",
//! <https://arxiv.org/abs/2209.11895>). Lengths vary, so that the distance to the earlier occurrence does not tell where it is.
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::documents::Document;
use crate::splits::check;

/// The symbols, of which the first are used: the printable characters of ASCII but for the space.
const SYMBOLS: std::ops::RangeInclusive<char> = '!'..='~';

/// The texts: the seed of their blocks, the symbols and lengths of these, and the size of each split.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeats {
    /// Seed of the blocks; a split does not depend on the sizes of the others.
    pub seed: u64,
    /// Symbols that blocks are drawn from, each at most once in a block.
    pub symbols: usize,
    /// Symbols of the shortest block; all lengths up to the longest are equally frequent.
    pub shortest: usize,
    /// Symbols of the longest block.
    pub longest: usize,
    /// Texts to train on.
    pub train: usize,
    /// Texts to choose the best epoch on.
    pub dev: usize,
    /// Texts to score.
    pub test: usize,
}

impl Repeats {
    /// The names of its splits.
    pub const SPLITS: [&str; 3] = ["train", "dev", "test"];

    /// Refuses what contradicts itself.
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

    /// The texts of a split, each a block and the same again; absent if there is no such split.
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
    use std::collections::BTreeSet;

    use super::*;

    const OWN: Repeats =
        Repeats { seed: 1, symbols: 9, shortest: 2, longest: 5, train: 400, dev: 7, test: 100 };

    #[test]
    fn each_text_is_a_block_of_distinct_symbols_said_twice() {
        let texts = OWN.read("train").unwrap();
        let mut lengths = [0; 6];
        for Document { text, .. } in &texts {
            let (first, second) = text.split_at(text.len() / 2);
            assert_eq!(first, second);
            assert_eq!(first.chars().collect::<BTreeSet<_>>().len(), first.len(), "{first}");
            assert!(first.chars().all(|symbol| ('!'..=')').contains(&symbol)), "{first}");
            lengths[first.len()] += 1;
        }
        // 100 of each length on average, with a deviation of sqrt(400 / 4 * 3 / 4) = 9
        assert!(lengths[2..].iter().all(|&count: &i32| (count - 100).abs() < 35), "{lengths:?}");
        assert_eq!(lengths[..2], [0, 0]);
    }

    #[test]
    fn a_split_is_the_same_whatever_is_asked_of_the_others() {
        let more = Repeats { train: 500, test: 50, ..OWN };
        assert_eq!(more.read("train").unwrap()[..400], OWN.read("train").unwrap());
        assert_eq!(more.read("test").unwrap(), OWN.read("test").unwrap()[..50]);
        assert_ne!(OWN.read("test").unwrap()[..7], OWN.read("dev").unwrap());
        assert!(OWN.read("shifted").is_none());
    }

    #[test]
    fn lengths_that_the_symbols_do_not_give_are_refused() {
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
