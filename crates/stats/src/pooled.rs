//! The mean of a score over several tasks, each with other documents.
//!
//! Tasks are fixed and have equal weight whatever their size; documents are drawn within their task. A swap covers the documents of all
//! tasks, each weighted by 1 / (tasks × documents of its task).

use crate::bootstrap::{Resampled, simultaneous};
use crate::family::{Comparison, FEW_CHANGES, MIN_SEGMENTS};
use crate::interval::Interval;
use crate::means::Mean;
use crate::swaps::swap_tests;
use crate::testing::Testing;
use crate::{Error, Segments};

/// A base and its variants on the documents of one task.
#[derive(Debug, Clone)]
pub struct Task<'a> {
    /// Means of the base.
    pub base: &'a Segments,
    /// Means of each variant, in an order that all tasks share.
    pub variants: Vec<&'a Segments>,
    /// Separate tests of this task, one for each variant.
    pub compared: &'a [Comparison],
}

/// Returns the documents of all tasks, weighted so that their mean is the mean over tasks.
///
/// # Panics
/// If there is no task, or the segments of one are not means.
pub fn weighted(tasks: &[&Segments]) -> Segments {
    let weight = 1.0 / tasks.len() as f64;
    let (mut all, mut kind) = (Vec::new(), None);
    for task in tasks {
        let Segments::Means(own, metric) = task else { panic!("tasks of means") };
        let factor = weight / own.iter().map(|one| one.count).sum::<f64>();
        all.extend(own.iter().map(|one| Mean { sum: one.sum * factor, count: one.count * factor }));
        kind = Some(*metric);
    }
    Segments::Means(all, kind.expect("at least one task"))
}

/// Tests the mean over tasks of each variant against the base, and all variants as one family.
///
/// Intervals are percentiles of resamples within tasks. If fewer than 20 documents change, resamples contain too few of the changes that
/// may happen elsewhere, so intervals are at least as wide as MOVER's, whose half-width is the root of the summed squares of the tasks'
/// half-widths, divided by the number of tasks (Zou and Donner 2008, *Construction of confidence limits about effect measures*, Statistics
/// in Medicine 27, 1693-1702).
///
/// # Errors
/// If a score is not finite, or a task has no documents.
///
/// # Panics
/// If there is no task, segments are not means, or tasks differ in their numbers of variants.
pub fn test(tasks: &[Task<'_>], testing: Testing) -> Result<Vec<Comparison>, Error> {
    let variants = tasks[0].variants.len();
    let base = weighted(&tasks.iter().map(|task| task.base).collect::<Vec<_>>());
    let of = |variant: usize| weighted(&tasks.iter().map(|task| task.variants[variant]).collect::<Vec<_>>());
    let own: Vec<Segments> = (0..variants).map(of).collect();
    let (counted, changes) = base.beside(&own.iter().collect::<Vec<_>>())?;
    let scores = |change: &crate::counted::Variant| Comparison::untested(counted.score(), change.score);
    if base.len() < MIN_SEGMENTS {
        return Ok(changes.iter().map(scores).collect());
    }
    let Some(swapped) = swap_tests(&counted, &changes, testing) else {
        return Ok(changes.iter().map(scores).collect());
    };
    let resampled = resampled(tasks, &changes.iter().map(scores).collect::<Vec<_>>(), testing)?;
    let simultaneous = simultaneous(&resampled);
    let row = |place: usize| {
        let (test, is_few) = (&resampled[place], changes[place].changed.len() < FEW_CHANGES);
        let least = is_few.then(|| mover(tasks, place, test.delta())).flatten();
        let joined = |ends: Interval| least.map_or(ends, |least| ends.joined(least));
        Comparison {
            interval: test.interval().map(joined),
            simultaneous: simultaneous[place]
                .map(|ends| joined(test.interval().map_or(ends, |own| ends.joined(own)))),
            p_value: Some(swapped[place].p_value),
            p_adjusted: Some(swapped[place].p_adjusted),
            p_bootstrap: test.p_value(),
            p_koehn: test.p_koehn(),
            ..Comparison::untested(test.base, test.variant)
        }
    };
    Ok((0..variants).map(row).collect())
}

/// Returns the differences of the mean over tasks on resamples; each task has separate draws.
fn resampled(tasks: &[Task<'_>], scores: &[Comparison], testing: Testing) -> Result<Vec<Resampled>, Error> {
    let testing = testing.of_bootstrap();
    let mut sums = vec![vec![0.0; testing.resamples]; scores.len()];
    for (seed, task) in (testing.seed.wrapping_add(1)..).zip(tasks) {
        for (sums, found) in
            sums.iter_mut().zip(task.base.resampled(&task.variants, Testing { seed, ..testing })?)
        {
            sums.iter_mut().zip(found.deltas).for_each(|(sum, delta)| *sum += delta / tasks.len() as f64);
        }
    }
    sums.into_iter().zip(scores).map(|(deltas, own)| Resampled::new(own.base, own.variant, deltas)).collect()
}

/// Returns the interval of a mean of independent differences from their intervals; `None` if a task has no interval.
fn mover(tasks: &[Task<'_>], variant: usize, delta: f64) -> Option<Interval> {
    let mut squares = [0.0; 2];
    for task in tasks {
        let own = &task.compared[variant];
        let Interval { low, high } = own.interval?;
        squares[0] += (own.delta - low).powi(2);
        squares[1] += (high - own.delta).powi(2);
    }
    let [below, above] = squares.map(|sum: f64| sum.sqrt() / tasks.len() as f64);
    Some(Interval { low: delta - below, high: delta + above })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use crate::means::{MeanMetric, test_scores};
    use crate::proportion::tango;

    fn scores(values: &[f64]) -> Segments {
        Segments::Means(values.iter().map(|&value| Mean::of(value)).collect(), MeanMetric::Score)
    }

    const TESTING: Testing = Testing { resamples: 999, seed: 1, block: 1 };

    fn pooled(pairs: &[[Segments; 2]]) -> Comparison {
        let alone = |[base, own]: &[Segments; 2]| test_scores(base, &[own], TESTING, 0.0).unwrap();
        let compared: Vec<Vec<Comparison>> = pairs.iter().map(alone).collect();
        let both = pairs.iter().zip(&compared);
        let tasks = both.map(|([base, own], compared)| Task { base, variants: vec![own], compared });
        test(&tasks.collect::<Vec<_>>(), TESTING).unwrap()[0]
    }

    /// Means 1/2 and 1/4 give 3/8 although one task has twice as many documents; 3/4 and 1/4 give 1/2. Either swap of the single changed
    /// document is as large: p is 1. The interval is MOVER's of both tasks' intervals, which contains all resamples.
    #[test]
    fn tasks_count_the_same_whatever_their_size() {
        let same = scores(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        let gained = [scores(&[1.0, 1.0, 0.0, 0.0]), scores(&[1.0, 1.0, 1.0, 0.0])];
        let found = pooled(&[gained, [same.clone(), same]]);
        assert_close(found.base, 0.375, 1e-15);
        assert_close(found.delta, 0.125, 1e-15);
        assert_eq!(found.p_value, Some(1.0));
        let ([gained, same], ends) = ([tango(0, 1, 4), tango(0, 0, 8)], found.interval.unwrap());
        assert_close(ends.low, 0.125 - (0.25 - gained.low).hypot(same.low) / 2.0, 1e-12);
        assert_close(ends.high, 0.125 + (gained.high - 0.25).hypot(same.high) / 2.0, 1e-12);
    }

    /// Three documents gain 1 each in a task of 4, weight 1/8, and three lose 1 each in one of 12, weight 1/24. Observed is 3/8 - 3/24 =
    /// 1/4. Three equal signs in the first task reach it with any sum in the second, so in all 8 cases; two of three (1/8) need the full
    /// 3/24 of the second: 3 cases. Twice 8 + 3 of 64.
    #[test]
    fn swaps_are_weighted_by_tasks() {
        let found = pooled(&[
            [scores(&[0.0; 4]), scores(&[1.0, 1.0, 1.0, 0.0])],
            [scores(&[1.0; 12]), scores(&[&[0.0; 3][..], &[1.0; 9]].concat())],
        ]);
        assert_close(found.delta, 0.25, 1e-15);
        assert_close(found.p_value.unwrap(), 22.0 / 64.0, 1e-15);
    }

    /// Two equal tasks have half the variance of one, so the interval is narrower by the root of 2, but only if their draws differ.
    #[test]
    fn documents_are_drawn_within_tasks() {
        let value = |n: usize, step: usize| if n.is_multiple_of(step) { 0.5 } else { 0.25 };
        let side = |step: usize| scores(&(0..200).map(|n| value(n, step)).collect::<Vec<_>>());
        let width = |ends: Interval| ends.high - ends.low;
        let one = test_scores(&side(2), &[&side(3)], TESTING, 0.0).unwrap()[0];
        let two = pooled(&[[side(2), side(3)], [side(2), side(3)]]);
        let ratio = width(one.interval.unwrap()) / width(two.interval.unwrap());
        assert_close(ratio, std::f64::consts::SQRT_2, 0.1);
    }
}
