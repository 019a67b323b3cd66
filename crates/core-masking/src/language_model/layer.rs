//! What a causal pass through the blocks of a language model costs.
use crate::block::Block;

impl Block {
    /// Multiply-adds of one row of the batch: of `positions`, each of which sees itself and those before it.
    pub(super) fn causal_multiply_adds(&self, positions: u64) -> u64 {
        let seen: u64 = (1..=positions).map(|place| self.seen(place)).sum();
        self.attention.key_value_multiply_adds(positions)
            + self.attention.attend_multiply_adds(positions, 0)
            + seen * self.pair_multiply_adds()
            + positions * self.feed_forward.multiply_adds()
    }

    /// Multiply-adds of one more position, the `place`-th, whose predecessors are cached.
    pub(super) fn step_multiply_adds(&self, place: u64) -> u64 {
        self.attention.key_value_multiply_adds(1)
            + self.attention.attend_multiply_adds(1, 0)
            + self.seen(place) * self.pair_multiply_adds()
            + self.feed_forward.multiply_adds()
    }

    /// Keys that the `place`-th position sees.
    fn seen(&self, place: u64) -> u64 {
        self.window.map_or(place, |window| place.min(window as u64))
    }

    /// Multiply-adds of a query and a key.
    fn pair_multiply_adds(&self) -> u64 {
        self.attention.attend_multiply_adds(1, 1) - self.attention.attend_multiply_adds(1, 0)
    }
}
