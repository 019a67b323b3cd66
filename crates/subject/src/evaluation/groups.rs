//! Head sets that are evaluated together, batch by batch.
use std::ops::Range;

use core_masking::{HeadId, HeadSet};
use training::{Progress, stop, workers};

use super::plan::MOST_TOGETHER;
use crate::error::Error;

/// Head sets of several layers that are evaluated together: each of them is nearly a whole pass, which rows wait for.
const OF_SEVERAL: usize = 6;

/// Neighbours in `sets` with the same `key`, up to `most` of them.
pub(crate) fn neighbours<K: PartialEq + Copy>(
    sets: &[HeadSet],
    key: impl Fn(&HeadSet) -> K,
    most: impl Fn(K) -> usize,
) -> Vec<Range<usize>> {
    let mut groups: Vec<(K, Range<usize>)> = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        let own = key(set);
        match groups.last_mut() {
            Some((key, group)) if *key == own && group.len() < most(own) => group.end = index + 1,
            _ => groups.push((own, index..index + 1)),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Neighbours in `sets` that first differ from the intact model in the same layer of a single stack: what they share lies
/// below it.
pub(crate) fn by_lowest_layer(sets: &[HeadSet]) -> Vec<Range<usize>> {
    neighbours(sets, Layers::of, Layers::most_together)
}

/// Where a set has heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layers {
    /// Nowhere: the intact model.
    None,
    /// In this layer alone.
    One(usize),
    /// In this one and some above.
    From(usize),
}

impl Layers {
    fn of(set: &HeadSet) -> Self {
        let layers = || set.iter().map(HeadId::layer_index);
        match (layers().min(), layers().max()) {
            (Some(lowest), Some(highest)) if lowest == highest => Self::One(lowest),
            (Some(lowest), _) => Self::From(lowest),
            (None, _) => Self::None,
        }
    }

    /// Sets with heads there that are evaluated together.
    fn most_together(self) -> usize {
        match self {
            Self::None => 1,
            Self::One(_) => MOST_TOGETHER,
            Self::From(_) => OF_SEVERAL,
        }
    }
}

/// Evaluates each batch under the sets of each group, on one thread for each of `states`, and hands what is found of all
/// segments under a set to `each`, with the set's place, in order.
///
/// - `batches`: places of segments; each segment is in one batch
/// - `job`: what is found of a batch's segments, in their order, under each set of a group
pub(crate) fn evaluate<S: Send, T: Send>(
    states: Vec<S>,
    groups: &[Range<usize>],
    batches: &[Vec<usize>],
    job: impl Fn(&S, Range<usize>, usize) -> Result<Vec<Vec<T>>, Error> + Sync,
    progress: &mut Progress,
    mut each: impl FnMut(&mut Progress, usize, Vec<T>) -> Result<(), Error>,
) -> Result<(), Error> {
    let job = |state: &S, item: usize| job(state, groups[item / batches.len()].clone(), item % batches.len());
    let mut segments: Vec<Vec<(usize, T)>> = Vec::new(); // of each set of the group, with their places
    workers::in_order(states, groups.len() * batches.len(), job, |item, found| {
        let (group, batch) = (&groups[item / batches.len()], item % batches.len());
        segments.resize_with(group.len(), Vec::new);
        for (segments, found) in segments.iter_mut().zip(found) {
            segments.extend(batches[batch].iter().copied().zip(found));
        }
        progress.advance(group.len());
        if batch + 1 < batches.len() {
            return Ok(());
        }
        group.clone().zip(segments.drain(..)).try_for_each(|(set, mut segments)| {
            segments.sort_unstable_by_key(|&(place, _)| place);
            each(progress, set, segments.into_iter().map(|(_, found)| found).collect())
        })?;
        let is_last = item + 1 == groups.len() * batches.len();
        if is_last { Ok(()) } else { Ok(stop::check()?) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of segment `s` under set `n` is found `10 * n + s`, whatever the groups, the batches and the threads.
    #[test]
    fn all_segments_of_a_set_come_in_order() {
        let batches = [vec![4, 0], vec![2], vec![3, 1]];
        let job = |(): &(), group: Range<usize>, batch: usize| {
            Ok(group.map(|set| batches[batch].iter().map(|place| 10 * set + place).collect()).collect())
        };
        for groups in [vec![0..1, 1..4, 4..5], vec![0..3, 3..5]] {
            let mut seen = Vec::new();
            let each = |_: &mut Progress, set, found| {
                seen.push((set, found));
                Ok(())
            };
            evaluate(vec![(), ()], &groups, &batches, job, &mut Progress::new(0, true), each).unwrap();
            let expected: Vec<(usize, Vec<usize>)> =
                (0..5).map(|set| (set, (0..5).map(|place| 10 * set + place).collect())).collect();
            assert_eq!(seen, expected);
        }
    }

    fn set(names: &[&str]) -> HeadSet {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn neighbours_with_the_same_lowest_layer_are_evaluated_together() {
        let sets = [
            HeadSet::none(),
            set(&["self:1:1"]),
            set(&["self:1:2", "self:1:3"]),
            set(&["self:3:1", "self:2:2"]),
            set(&["self:2:1", "self:4:1"]),
            set(&["self:2:1"]),
            set(&["self:1:1"]),
        ];
        assert_eq!(by_lowest_layer(&sets), [0..1, 1..3, 3..5, 5..6, 6..7]);
    }

    #[test]
    fn a_group_is_bounded_so_that_rows_come_soon() {
        let sizes = |names: &[&str]| {
            let sets = vec![set(names); 2 * MOST_TOGETHER + 1];
            by_lowest_layer(&sets).iter().map(ExactSizeIterator::len).max().unwrap()
        };
        assert_eq!((sizes(&["self:2:1"]), sizes(&["self:2:1", "self:3:1"])), (MOST_TOGETHER, OF_SEVERAL));
    }
}
