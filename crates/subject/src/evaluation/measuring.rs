//! Scores of heads over all batches of a split.
use std::collections::BTreeMap;

use core_masking::importance::Measured;
use core_masking::{HeadScores, Measure};
use training::{Progress, workers};

use crate::error::Error;

/// Runs `job` on each batch, one thread for each of `models`, and adds up in the order of batches, so that equal runs give
/// equal numbers.
///
/// # Errors
/// If a batch fails, or a score is no number.
pub(crate) fn over_batches<M: Send>(
    models: &mut [M],
    batches: usize,
    quiet: bool,
    job: impl Fn(&M, usize) -> Result<Measured, Error> + Sync,
) -> Result<BTreeMap<Measure, HeadScores>, Error> {
    let mut total = Measured::new();
    let mut progress = Progress::new(batches, quiet);
    progress.message("measuring heads".to_owned());
    workers::in_order(models, batches, job, |_, measured| {
        for (measure, means) in measured {
            total.entry(measure).or_default().merge(&means);
        }
        progress.advance(1);
        Ok(())
    })?;
    let scores: BTreeMap<Measure, HeadScores> =
        total.into_iter().map(|(measure, means)| (measure, means.means())).collect();
    let is_finite = |scores: &HeadScores| scores.iter().all(|(_, score)| score.is_finite());
    if scores.values().all(is_finite) { Ok(scores) } else { Err(Error::NotFinite) }
}
