//! Multiply-adds of a causal pass through the blocks of a language model.
use crate::block::Block;

impl Block {
    /// Returns the multiply-adds of `positions` of one row, each of which sees itself and earlier ones.
    pub(super) fn causal_multiply_adds(&self, positions: u64) -> u64 {
        let seen: u64 = (1..=positions).map(|place| self.seen(place)).sum();
        self.attention.key_value_multiply_adds(positions)
            + self.attention.attend_multiply_adds(positions, 0)
            + seen * self.pair_multiply_adds()
            + positions * self.feed_forward.multiply_adds()
    }

    /// Returns the multiply-adds of one more position, the `place`-th, when the earlier ones are cached.
    pub(super) fn step_multiply_adds(&self, place: u64) -> u64 {
        self.attention.key_value_multiply_adds(1)
            + self.attention.attend_multiply_adds(1, 0)
            + self.seen(place) * self.pair_multiply_adds()
            + self.feed_forward.multiply_adds()
    }

    /// Returns the number of keys that the `place`-th position sees.
    fn seen(&self, place: u64) -> u64 {
        self.window.map_or(place, |window| place.min(window as u64))
    }

    /// Returns the multiply-adds per pair of query and key.
    fn pair_multiply_adds(&self) -> u64 {
        self.attention.attend_multiply_adds(1, 1) - self.attention.attend_multiply_adds(1, 0)
    }
}
