//! Many head sets over one split: what they share is computed once, by all threads, within a bound of memory.
mod groups;
mod memory;
mod plan;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use core_masking::{GatedModel, HeadSet, Replacement, Trunk};
use training::{Progress, stop};

use crate::error::Error;
use crate::models::Models;

pub(crate) use groups::neighbours;
use groups::{Work, computed_layers, most_together, rounds};
pub(crate) use memory::{Layers, Need, Purpose};
pub(crate) use plan::Plan;

/// One evaluation of a split, as all threads see it.
pub(crate) trait Scorer: Sync {
    /// The model that scores.
    type Model: GatedModel;

    /// Result of a segment.
    type Segment: Send;

    /// True if only the layers from the lowest masked head on are computed again for each head set.
    const SHARES_LOWER_LAYERS: bool = true;

    /// Neighbours in `sets` that are evaluated together, of which `most` are rows of one batch; the intact model alone.
    fn groups(sets: &[HeadSet], _most: usize) -> Vec<Range<usize>> {
        groups::by_lowest_layer(sets)
    }

    /// Results of the segments of a batch under each set, and the prefix for the next sets and this batch.
    fn score(
        &self,
        models: &Models<Self::Model>,
        request: &Request<'_>,
        left: Option<Trunk>,
    ) -> Result<(BySet<Self::Segment>, Trunk), Error>;

    /// Returns a warning about the results of the full model, once all of its segments are scored.
    fn doubt(&self) -> Option<String> {
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
    /// The masked heads.
    pub sets: &'a [HeadSet],
    /// True if the kept heads of a layer are multiplied by heads / kept.
    pub rescale: bool,
    /// What takes the place of masked heads, of one row or for each segment; nothing if absent.
    pub replacement: Option<&'a Replacement>,
    /// Sets that are rows of one batch.
    pub sets_per_batch: usize,
}

/// Head sets to be masked, and how.
pub(crate) struct Masks<'a> {
    pub sets: &'a [HeadSet],
    /// Multiplies the kept heads of a layer by heads / kept.
    pub rescale: bool,
}

/// Replacements of the contexts of these heads in these segments; nothing if `None`.
pub(crate) type Replace<'a, M> =
    dyn Fn(&Models<M>, &[usize], &HeadSet) -> Result<Option<Replacement>, Error> + Sync + 'a;

#[cfg(test)]
pub(crate) fn no_replacement<M>(
    _: &Models<M>,
    _: &[usize],
    _: &HeadSet,
) -> Result<Option<Replacement>, Error> {
    Ok(None)
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

    /// Results of each segment under each set, handed to `each` with the set's place, in order.
    ///
    /// The first set, which is the intact model unless that is known, says how long one takes, and so how many of a group are
    /// finished together.
    ///
    /// - `models`: one for each thread
    /// - `replace`: what takes the place of masked heads
    /// - `quiet`: show no progress
    pub(crate) fn run<C: Scorer>(
        &self,
        scorer: &C,
        models: &mut [Models<C::Model>],
        (masks, replace): (&Masks<'_>, &Replace<'_, C::Model>),
        quiet: bool,
        mut each: impl FnMut(&mut Progress, usize, Vec<C::Segment>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let layers = models[0].layout().types().map(|(_, shape)| shape.layers).max().unwrap_or(0);
        let shares = C::SHARES_LOWER_LAYERS && self.plan.keeps_prefixes;
        let work = Work { tokens: &self.plan.tokens, layers: computed_layers(masks.sets, layers, shares) };
        let mut progress = Progress::new(work.total(), quiet);
        let mut groups = C::groups(masks.sets, self.plan.sets_per_batch);
        let mut run = |rounds: &[Range<usize>]| {
            let job = |models: &Models<C::Model>, round: &Range<usize>, batch: usize| {
                let masks = Masks { sets: &masks.sets[round.clone()], ..*masks };
                self.score((scorer, models), (&masks, replace), batch)
            };
            groups::evaluate((models, &work), rounds, &self.plan.batches, job, &mut progress, &mut each)
        };
        if groups.iter().all(|group| group.len() == 1) {
            return run(&groups);
        }
        let started = Instant::now();
        run(std::slice::from_ref(&(0..1)))?;
        groups[0].start = 1;
        let rest = rounds(&groups, most_together(started.elapsed(), self.plan.sets_per_batch));
        stop::check()?;
        run(&rest)
    }

    fn score<C: Scorer>(
        &self,
        (scorer, models): (&C, &Models<C::Model>),
        (&Masks { sets, rescale }, replace): (&Masks<'_>, &Replace<'_, C::Model>),
        batch: usize,
    ) -> Result<BySet<C::Segment>, Error> {
        let Plan { batches, sets_per_batch, keeps_prefixes, .. } = &self.plan;
        let rows = &batches[batch];
        let masked: HeadSet = sets.iter().flat_map(HeadSet::iter).collect();
        let replacement = if masked.is_empty() { None } else { replace(models, rows, &masked)? };
        let request = Request {
            rows,
            sets,
            rescale,
            replacement: replacement.as_ref(),
            sets_per_batch: *sets_per_batch,
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
