//! Two searches that score head sets: greedy-forward and swap.
use core_masking::{HeadId, HeadSet};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use stats::Direction;

use crate::error::Error;
use crate::pool::Pool;

/// Number of swaps scored together, of which the best is made.
const EXCHANGES_TOGETHER: usize = 16;

/// Measures the scores of head sets, in the order given.
type Measure<'a> = dyn FnMut(&[HeadSet]) -> Result<Vec<f64>, Error> + 'a;

/// Search among the heads of a pool.
pub struct Search<'a> {
    /// Heads to choose from, and how many each layer keeps.
    pub pool: &'a Pool,
    /// The pool's heads by increasing importance.
    pub order: &'a [HeadId],
    /// Whether higher or lower scores are better.
    pub direction: Direction,
    /// Measures the scores of head sets, in the order given.
    pub scores: &'a mut Measure<'a>,
}

impl Search<'_> {
    /// Adds heads to `masked` until it has `count`: each time the head whose masking leaves the best score, or the least important of those
    /// that tie. Returns the set, and its score if a head was added.
    pub fn grow(&mut self, mut masked: HeadSet, count: usize) -> Result<(HeadSet, Option<f64>), Error> {
        let mut score = None;
        while masked.len() < count {
            let candidates = self.order.iter().filter(|&&id| self.pool.may_mask(id, &masked));
            let sets: Vec<HeadSet> = candidates.map(|&id| masked.with(id)).collect();
            let best;
            (masked, best) = self.best(sets)?;
            score = Some(best);
        }
        Ok((masked, score))
    }

    /// Starts from the `count` least important heads and swaps one masked head for another while the score improves, in an order drawn with
    /// `seed`. Returns the set and its score.
    pub fn exchange(
        &mut self,
        count: usize,
        evaluations: u64,
        seed: u64,
    ) -> Result<(HeadSet, Option<f64>), Error> {
        let start = self.pool.extend(&HeadSet::none(), self.order, count);
        let (mut masked, mut score) = self.best(vec![start])?;
        let mut left = evaluations as usize - 1;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut untried = self.exchanges(&masked, &mut rng);
        while left > 0 && !untried.is_empty() {
            let together = EXCHANGES_TOGETHER.min(left).min(untried.len());
            let tried = untried.split_off(untried.len() - together);
            left -= together;
            let (set, best) = self.best(tried)?;
            if self.direction.is_better(best, score) {
                (masked, score) = (set, best);
                untried = self.exchanges(&masked, &mut rng);
            }
        }
        Ok((masked, Some(score)))
    }

    /// Returns all sets that swap one head of `masked` for another that may be masked, in an order drawn with `rng`.
    fn exchanges(&self, masked: &HeadSet, rng: &mut ChaCha8Rng) -> Vec<HeadSet> {
        let mut exchanges = Vec::new();
        for out in masked.iter() {
            let rest = masked.without(out);
            let others =
                self.order.iter().filter(|&&id| !masked.contains(id) && self.pool.may_mask(id, &rest));
            exchanges.extend(others.map(|&into| rest.with(into)));
        }
        exchanges.shuffle(rng);
        exchanges
    }

    /// Returns the set with the best score, the first of those that tie, and its score. Panics if there are no sets.
    fn best(&mut self, sets: Vec<HeadSet>) -> Result<(HeadSet, f64), Error> {
        let scored = sets.iter().cloned().zip((self.scores)(&sets)?);
        let better = |best: (HeadSet, f64), other: (HeadSet, f64)| {
            if self.direction.is_better(other.1, best.1) { other } else { best }
        };
        Ok(scored.reduce(better).expect("there are sets to choose from"))
    }
}

#[cfg(test)]
mod tests {
    use core_masking::Attention;
    use records::Scope;

    use super::*;
    use crate::unit::MaskingUnits;

    fn pool(keep_at_least: usize) -> Pool {
        let id = |layer, head| HeadId::from_index(Attention::SelfAttention, layer, head);
        let heads = (0..2).flat_map(|layer| (0..3).map(move |head| id(layer, head))).collect();
        Pool { scope: Scope::All, heads, keep_at_least, step_percent: 10, units: MaskingUnits::SINGLE_HEADS }
    }

    /// Runs a search among 2 layers of 3 heads; the score of a set is its number of heads of `wanted`.
    fn search<T>(keep_at_least: usize, wanted: &str, run: impl FnOnce(&mut Search<'_>) -> T) -> T {
        let (pool, wanted) = (pool(keep_at_least), wanted.parse::<HeadSet>().unwrap());
        let mut scores = |sets: &[HeadSet]| {
            Ok(sets.iter().map(|set| wanted.iter().filter(|&id| set.contains(id)).count() as f64).collect())
        };
        let (order, direction) = (&pool.heads, Direction::HigherIsBetter);
        run(&mut Search { pool: &pool, order, direction, scores: &mut scores })
    }

    #[test]
    fn heads_are_added_by_score_and_then_by_importance() {
        let grown =
            |count| search(0, "self:1:3+self:2:2", |search| search.grow(HeadSet::none(), count).unwrap());
        assert_eq!(grown(0), (HeadSet::none(), None));
        assert_eq!(grown(1), ("self:1:3".parse().unwrap(), Some(1.0)));
        assert_eq!(grown(3), ("self:1:1+self:1:3+self:2:2".parse().unwrap(), Some(2.0)));
    }

    #[test]
    fn exchanges_find_the_best_set_that_layers_allow() {
        let wanted = "self:1:3+self:2:2+self:2:3";
        let found =
            |keep, evaluations| search(keep, wanted, |search| search.exchange(3, evaluations, 3).unwrap());
        assert_eq!(found(0, 100), (wanted.parse().unwrap(), Some(3.0)));
        assert_eq!(found(0, 1), ("self:1:1+self:1:2+self:1:3".parse().unwrap(), Some(1.0)));
        // at most one head of each layer
        assert_eq!(found(2, 100).1, Some(2.0));
    }

    /// 2 masked heads and 4 others give 8 swaps. If each layer keeps two heads, a masked head of the first layer can only be swapped for
    /// one of the three of the second.
    #[test]
    fn every_exchange_is_tried_once() {
        for (keep_at_least, expected) in [(0, 8), (2, 2 * 3)] {
            let masked: HeadSet = "self:1:1+self:1:2".parse().unwrap();
            let mut sets = search(keep_at_least, "", |search| {
                search.exchanges(&masked, &mut ChaCha8Rng::seed_from_u64(3))
            });
            sets.sort();
            sets.dedup();
            assert_eq!(sets.len(), expected);
            assert!(sets.iter().all(|set| set.len() == 2 && *set != masked));
        }
    }
}
