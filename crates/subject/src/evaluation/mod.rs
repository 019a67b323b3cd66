//! Many head sets over one split: what they share is computed once, by all threads, within a bound of memory.
mod groups;
mod memory;
mod plan;
#[cfg(test)]
mod plan_table;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use core_masking::{GatedModel, HeadSet, Trunk};
use training::{Progress, stop};

use crate::error::Error;
use crate::models::Models;

use groups::{Round, most_together, rounds};
pub(crate) use groups::{by_lowest_layer, neighbours};
pub(crate) use memory::{Layers, Need, Purpose, SegmentBytes};
pub(crate) use plan::Plan;

/// One evaluation of a split, as all threads see it.
pub(crate) trait Scorer: Sync {
    /// The model that scores.
    type Model: GatedModel;

    /// Result of a segment.
    type Segment: Send;

    /// Neighbours in `sets` that are evaluated together, of which `most` are rows of one batch; the intact model alone.
    fn groups(sets: &[HeadSet], most: usize) -> Vec<Range<usize>>;

    /// Results of the segments of a batch under each wanted set, and the prefix for the next sets and this batch.
    fn score(
        &self,
        models: &Models<Self::Model>,
        request: &Request<'_>,
        left: Option<Trunk>,
    ) -> Result<(BySet<Self::Segment>, Trunk), Error>;

    /// A line on what was done, if there is something to say.
    fn report(&self) -> Option<String> {
        None
    }
}

/// Results of each segment of a batch, in their order, under each of several head sets.
pub(crate) type BySet<S> = Vec<Vec<S>>;

/// A batch under head sets that are evaluated together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// Places of its segments.
    pub rows: &'a [usize],
    /// All sets of a group.
    pub sets: &'a [HeadSet],
    /// Places of those that are wanted.
    pub wanted: &'a [usize],
    /// True if the kept heads of a layer are multiplied by heads / kept.
    pub rescale: bool,
    /// Sets that are rows of one batch.
    pub sets_per_batch: usize,
    /// Rows that go on at once when the batch takes more memory than is likely.
    pub rows_at_once: usize,
}

/// Head sets, and which of them are to be evaluated: how depends on all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sets<'a> {
    pub all: &'a [HeadSet],
    pub wanted: &'a [bool],
    /// True if the kept heads of a layer are multiplied by heads / kept.
    pub rescale: bool,
}

/// A split, ready to be evaluated under any number of head sets.
pub(crate) struct Batches {
    pub plan: Plan,
    /// Prefix cache: results that the last head sets have left of each batch.
    prefixes: Vec<Mutex<Option<Trunk>>>,
}

impl Batches {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { prefixes: plan.batches.iter().map(|_| Mutex::new(None)).collect(), plan }
    }

    /// Results of each segment under each wanted set, handed to `each` with the set's place, in order; `models`: one
    /// for each thread.
    ///
    /// The first set, which is the intact model unless that is known, says how long one takes, and so how many of a group are
    /// finished together.
    pub(crate) fn run<C: Scorer>(
        &self,
        scorer: &C,
        models: &mut [Models<C::Model>],
        sets: Sets<'_>,
        progress: &mut Progress,
        mut each: impl FnMut(&mut Progress, usize, Vec<C::Segment>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let groups = C::groups(sets.all, self.plan.sets_per_batch);
        let mut wanted = sets.wanted.to_vec();
        let mut run = |rounds: &[Round]| {
            let job = |models: &Models<C::Model>, round: &Round, batch: usize| {
                self.score((scorer, models), &sets, round, batch)
            };
            groups::evaluate(models, rounds, &self.plan.batches, job, progress, &mut each)
        };
        if groups.iter().all(|group| group.len() == 1) {
            return run(&rounds(&groups, &wanted, usize::MAX));
        }
        let Some(first) = rounds(&groups, &wanted, 1).into_iter().next() else { return Ok(()) };
        let started = Instant::now();
        run(std::slice::from_ref(&first))?;
        wanted[first.group.start + first.wanted[0]] = false;
        let rest = rounds(&groups, &wanted, most_together(started.elapsed(), self.plan.sets_per_batch));
        if rest.is_empty() {
            return Ok(());
        }
        stop::check()?;
        run(&rest)
    }

    fn score<C: Scorer>(
        &self,
        (scorer, models): (&C, &Models<C::Model>),
        sets: &Sets<'_>,
        round: &Round,
        batch: usize,
    ) -> Result<BySet<C::Segment>, Error> {
        let Plan { batches, sets_per_batch, keeps_prefixes, rows_at_once, .. } = &self.plan;
        let request = Request {
            rows: &batches[batch],
            sets: &sets.all[round.group.clone()],
            wanted: &round.wanted,
            rescale: sets.rescale,
            sets_per_batch: *sets_per_batch,
            rows_at_once: rows_at_once[batch],
        };
        let prefix = || self.prefixes[batch].lock().unwrap_or_else(PoisonError::into_inner);
        let left = prefix().as_ref().map(Trunk::share);
        let (found, left) = scorer.score(models, &request, left)?;
        if *keeps_prefixes {
            *prefix() = Some(left);
        }
        Ok(found)
    }
}
