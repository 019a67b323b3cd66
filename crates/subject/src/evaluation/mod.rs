//! Evaluation of many head sets on one split. All threads share common computations, within a memory budget.
mod groups;
mod memory;
mod plan;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use core_masking::{GatedModel, HeadSet, PrefixCache, Replacement};
use training::{Progress, stop};

use crate::error::Error;
use crate::models::Models;

pub(crate) use groups::neighbours;
use groups::{Work, computed_layers, most_together, rounds};
pub(crate) use memory::{Layers, Need, Purpose};
pub(crate) use plan::Plan;

/// One evaluation of a split, shared by all threads.
pub(crate) trait Scorer: Sync {
    type Model: GatedModel;

    type Segment: Send;

    /// True if only the layers from the lowest masked head upwards are recomputed for each head set.
    const SHARES_LOWER_LAYERS: bool = true;

    /// Groups consecutive `sets` for joint evaluation; `most` of them fit into one batch. The full model is evaluated separately.
    fn groups(sets: &[HeadSet], _most: usize) -> Vec<Range<usize>> {
        groups::by_lowest_layer(sets)
    }

    /// Returns results of a batch's segments under each set, and the prefix to reuse for this batch under the next sets.
    fn score(
        &self,
        models: &Models<Self::Model>,
        request: &Request<'_>,
        left: Option<PrefixCache>,
    ) -> Result<(BySet<Self::Segment>, PrefixCache), Error>;

    /// Returns a warning about the results of the full model, once all of its segments are scored.
    fn doubt(&self) -> Option<String> {
        None
    }
}

/// For each head set, the results of a batch's segments in order.
pub(crate) type BySet<S> = Vec<Vec<S>>;

/// A batch under head sets that are evaluated together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// Indices of its segments.
    pub rows: &'a [usize],
    /// The masked heads.
    pub sets: &'a [HeadSet],
    /// True if the remaining heads of a layer are multiplied by heads / remaining heads.
    pub rescale: bool,
    /// Replacement of masked heads' outputs, one row or one per segment; absent to mask with zeros.
    pub replacement: Option<&'a Replacement>,
    /// Head sets whose rows form one batch.
    pub sets_per_batch: usize,
}

pub(crate) struct Masks<'a> {
    pub sets: &'a [HeadSet],
    /// Multiplies the remaining heads of a layer by heads / remaining heads.
    pub rescale: bool,
}

/// Returns replacements of these heads' outputs in these segments; `None` to mask with zeros.
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

/// A split in batches, to be evaluated under any number of head sets.
pub(crate) struct Batches {
    pub plan: Plan,
    /// Prefix cache: for each batch, what the last head sets computed and later ones can reuse.
    prefixes: Vec<Mutex<Option<PrefixCache>>>,
}

impl Batches {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { prefixes: plan.batches.iter().map(|_| Mutex::new(None)).collect(), plan }
    }

    /// Calls `each` with the index of each head set and its results for all segments, in order. The time for the first set (the full model,
    /// unless already known) determines how many sets of a group are finished together.
    ///
    /// - `models`: one per thread
    /// - `replace`: returns the replacement of masked heads' outputs
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
        let left = prefix().as_ref().map(PrefixCache::share);
        let (found, left) = scorer.score(models, &request, left)?;
        if *keeps_prefixes {
            *prefix() = Some(left);
        }
        Ok(found)
    }
}
