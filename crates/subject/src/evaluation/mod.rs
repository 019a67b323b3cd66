//! Many head sets over one split: what they share is computed once, by all threads, within a bound of memory.
mod groups;
mod measuring;
mod plan;

use std::ops::Range;

use core_masking::{HeadSet, Trunk};
use training::Progress;

use crate::error::Error;
use crate::model::Model;

pub(crate) use groups::{by_lowest_layer, neighbours};
pub(crate) use measuring::over_batches;
use plan::Trunks;
pub(crate) use plan::{Load, Plan};

/// One evaluation of a split, as all threads see it.
pub(crate) trait Scorer: Sync {
    /// The model that scores.
    type Model: Model;

    /// What is known of a segment.
    type Segment: Send;

    /// Neighbours in `sets` that are evaluated together, of which `most` are rows of one batch.
    fn groups(sets: &[HeadSet], most: usize) -> Vec<Range<usize>>;

    /// What is found of the segments of a batch under each set, and what is left for the next sets and this batch.
    fn score(
        &self,
        model: &Self::Model,
        request: &Request<'_>,
        left: Option<Trunk>,
    ) -> Result<(BySet<Self::Segment>, Trunk), Error>;

    /// A line on what was done, if there is something to say.
    fn report(&self) -> Option<String> {
        None
    }
}

/// What is found of each segment of a batch, in their order, under each of several head sets.
pub(crate) type BySet<S> = Vec<Vec<S>>;

/// A batch under head sets that are evaluated together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// Places of its segments.
    pub rows: &'a [usize],
    /// What is masked.
    pub sets: &'a [HeadSet],
    /// Whether the kept heads of a layer are multiplied by heads / kept.
    pub rescale: bool,
    /// Sets that are rows of one batch.
    pub sets_per_batch: usize,
}

/// A split, ready to be evaluated under any number of head sets.
pub(crate) struct Sweep<C> {
    plan: Plan,
    trunks: Trunks,
    pub scorer: C,
}

impl<C: Scorer> Sweep<C> {
    pub(crate) fn new(plan: Plan, scorer: C) -> Self {
        Self { trunks: Trunks::new(&plan), plan, scorer }
    }

    /// What is found of each segment under each of these sets, handed to `each` with the set's place, in order; `models`: one
    /// for each thread.
    pub(crate) fn run(
        &self,
        models: Vec<C::Model>,
        sets: &[HeadSet],
        rescale: bool,
        progress: &mut Progress,
        each: impl FnMut(&mut Progress, usize, Vec<C::Segment>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Plan { batches, sets_per_batch, .. } = &self.plan;
        let job = |model: &C::Model, group: Range<usize>, batch: usize| {
            let (rows, sets_per_batch) = (&batches[batch], *sets_per_batch);
            let request = Request { rows, sets: &sets[group], rescale, sets_per_batch };
            self.trunks.with(batch, |left| self.scorer.score(model, &request, left))
        };
        groups::evaluate(models, &C::groups(sets, *sets_per_batch), batches, job, progress, each)
    }
}
