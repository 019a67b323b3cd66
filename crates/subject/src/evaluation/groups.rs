//! Head sets that are evaluated together, batch by batch.
use std::ops::Range;
use std::time::Duration;

use core_masking::{HeadId, HeadSet};
use training::{Progress, stop, workers};

use super::plan::MAX_TOGETHER;
use crate::error::Error;

/// Maximum number of head sets with heads in several layers that are evaluated together.
const OF_SEVERAL: usize = 6;

/// Head sets are finished together only if that takes no longer than this. It bounds the work that is lost when a run is killed, and the
/// time between a signal from a cluster and the end of the run.
const ROWS_WITHIN: Duration = Duration::from_secs(300);

/// Groups consecutive `sets` with equal `key`, up to `most` per group.
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

/// Groups consecutive `sets` whose lowest masked head is in the same layer of a single stack; the layers below are shared.
pub(crate) fn by_lowest_layer(sets: &[HeadSet]) -> Vec<Range<usize>> {
    neighbours(sets, Layers::of, Layers::most_together)
}

/// Splits groups into parts of at most `most` consecutive sets.
pub(crate) fn rounds(groups: &[Range<usize>], most: usize) -> Vec<Range<usize>> {
    let of_group = |group: &Range<usize>| {
        let end = group.end;
        group.clone().step_by(most).map(move |first| first..end.min(first.saturating_add(most)))
    };
    groups.iter().flat_map(of_group).collect()
}

/// Returns how many head sets to finish together, a multiple of `per_batch`, if one takes `of_one`.
pub(crate) fn most_together(of_one: Duration, per_batch: usize) -> usize {
    // saturates if `of_one` is 0
    let most = (ROWS_WITHIN.as_secs_f64() / of_one.as_secs_f64()) as usize;
    (most / per_batch).max(1).saturating_mul(per_batch)
}

/// Returns the number of layers to compute for each head set, plus one for the work before and after the layers.
///
/// - `shares`: the layers below the lowest masked head are computed once for all sets
pub(crate) fn computed_layers(sets: &[HeadSet], layers: usize, shares: bool) -> Vec<usize> {
    let lowest = |set: &HeadSet| set.iter().map(HeadId::layer_index).min().unwrap_or(0);
    sets.iter().map(|set| 1 + layers - if shares { lowest(set).min(layers) } else { 0 }).collect()
}

/// Amount of work of an evaluation, for the estimate of the remaining time: tokens of a batch times computed layers, for each head set.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    /// Tokens of each batch.
    pub tokens: &'a [usize],
    /// Layers that are computed for each head set.
    pub layers: Vec<usize>,
}

impl Work<'_> {
    pub(crate) fn total(&self) -> usize {
        self.tokens.iter().sum::<usize>() * self.layers.iter().sum::<usize>()
    }

    fn of(&self, sets: Range<usize>, batch: usize) -> usize {
        self.tokens[batch] * self.layers[sets].iter().sum::<usize>()
    }
}

/// Layers in which a set has heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layers {
    /// No head: the full model.
    None,
    One(usize),
    /// In this layer and some above it.
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

    /// Returns how many head sets of this kind are evaluated together.
    fn most_together(self) -> usize {
        match self {
            Self::None => 1,
            Self::One(_) => MAX_TOGETHER,
            Self::From(_) => OF_SEVERAL,
        }
    }
}

/// Evaluates each batch under the head sets of each round, with one thread per element of `states`. Calls `each` with the index of every
/// head set and the results of all segments, in order.
///
/// - `batches`: indices of segments; each segment is in one batch
/// - `job`: returns results of a batch's segments, in order, for each head set of a round
pub(crate) fn evaluate<S: Send, T: Send>(
    (states, work): (&mut [S], &Work<'_>),
    rounds: &[Range<usize>],
    batches: &[Vec<usize>],
    job: impl Fn(&S, &Range<usize>, usize) -> Result<Vec<Vec<T>>, Error> + Sync,
    progress: &mut Progress,
    mut each: impl FnMut(&mut Progress, usize, Vec<T>) -> Result<(), Error>,
) -> Result<(), Error> {
    let job = |state: &S, item: usize| job(state, &rounds[item / batches.len()], item % batches.len());
    let mut segments: Vec<Vec<(usize, T)>> = Vec::new(); // for each head set of the round, with the segment indices
    workers::in_order(states, rounds.len() * batches.len(), job, |item, found| {
        let (round, batch) = (&rounds[item / batches.len()], item % batches.len());
        segments.resize_with(round.len(), Vec::new);
        for (segments, found) in segments.iter_mut().zip(found) {
            segments.extend(batches[batch].iter().copied().zip(found));
        }
        progress.advance(work.of((*round).clone(), batch));
        if batch + 1 < batches.len() {
            return Ok(());
        }
        round.clone().zip(segments.drain(..)).try_for_each(|(set, mut segments)| {
            segments.sort_unstable_by_key(|&(place, _)| place);
            each(progress, set, segments.into_iter().map(|(_, found)| found).collect())
        })?;
        let is_last = item + 1 == rounds.len() * batches.len();
        if is_last { Ok(()) } else { Ok(stop::check()?) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of segment `s` under set `n` is `10 * n + s`, for any groups, batches and threads.
    #[test]
    fn all_segments_of_a_set_come_in_order() {
        let batches = [vec![4, 0], vec![2], vec![3, 1]];
        let job = |(): &(), round: &Range<usize>, batch: usize| {
            Ok(round
                .clone()
                .map(|set| batches[batch].iter().map(|place| 10 * set + place).collect())
                .collect())
        };
        for (groups, most) in [(vec![0..1, 1..4, 4..5], 3), (vec![0..3, 3..5], 2)] {
            let mut seen = Vec::new();
            let each = |_: &mut Progress, set, found| {
                seen.push((set, found));
                Ok(())
            };
            let rounds = rounds(&groups, most);
            let work = Work { tokens: &[2, 1, 2], layers: vec![1; 5] };
            let mut progress = Progress::new(work.total(), true);
            evaluate((&mut [(), ()], &work), &rounds, &batches, job, &mut progress, each).unwrap();
            assert_eq!(progress.left(), 0);
            let expected: Vec<(usize, Vec<usize>)> =
                (0..5).map(|set| (set, (0..5).map(|place| 10 * set + place).collect())).collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn layers_below_the_lowest_masked_head_are_computed_once() {
        let sets = [HeadSet::none(), set(&["self:1:1"]), set(&["self:3:2", "self:2:1"]), set(&["self:4:1"])];
        assert_eq!(computed_layers(&sets, 4, true), [5, 5, 4, 2]);
        assert_eq!(computed_layers(&sets, 4, false), [5; 4]);
    }

    /// Sets that take a minute are finished five at a time, sets that take a second all at once, and slow sets one at a time.
    #[test]
    fn parts_of_a_group_are_so_small_that_rows_come_soon() {
        let sizes = |seconds: f64, per_batch| {
            let most = most_together(Duration::from_secs_f64(seconds), per_batch);
            rounds(&[0..1, 1..13], most).iter().map(ExactSizeIterator::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(60.0, 1), [1, 5, 5, 2]);
        assert_eq!((sizes(1.0, 1), sizes(0.0, 1)), (vec![1, 12], vec![1, 12]));
        assert_eq!(sizes(900.0, 1), [1; 13]);
        // two sets per batch
        assert_eq!((sizes(60.0, 2), sizes(900.0, 2)), (vec![1, 4, 4, 4], vec![1, 2, 2, 2, 2, 2, 2]));
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
    fn a_group_is_bounded() {
        let sizes = |names: &[&str]| {
            let sets = vec![set(names); 2 * MAX_TOGETHER + 1];
            by_lowest_layer(&sets).iter().map(ExactSizeIterator::len).max().unwrap()
        };
        assert_eq!((sizes(&["self:2:1"]), sizes(&["self:2:1", "self:3:1"])), (MAX_TOGETHER, OF_SEVERAL));
    }
}
