//! First-order effects of single heads, stored by another sweep of the model and segments.
use std::path::{Path, PathBuf};

use core_masking::HeadSet;
use heads::experiment::ABLATE_ONE;
use records::{BASE, Blocks, Identity, Signature, UNTIL_DECIDED};
use stats::predictions::Predictions;
use stats::{Cell, Cells, Segments};

use crate::error::Error;

/// First-order predictions for head sets.
pub(super) struct Stored {
    /// The sweep whose effects were summed.
    pub path: PathBuf,
    /// For each set, the cells of all segments.
    pub predicted: Vec<Vec<Cells>>,
}

/// Predicts the segments of each of `sets` by summing the first-order effects of its heads, as stored by `ablate-one`.
///
/// `None` if no complete sweep in the folder of `path` matches the full model's segments `base`, or the metric is not a mean of real
/// numbers.
///
/// # Errors
/// If stored statistics are broken.
pub(super) fn predictions(
    path: &Path,
    identity: &Identity,
    base: &Segments,
    sets: &[HeadSet],
) -> Result<Option<Stored>, Error> {
    let cells: Vec<Cells> = (0..base.len()).map(|place| base.cells(place)).collect();
    for (path, signature) in sweeps(path, identity) {
        let Some(blocks) = Blocks::beside(&path, &signature)? else { continue };
        // other batch sizes round differently
        if blocks.get(BASE) != Some(&significance::block(BASE.to_owned(), base, None)) {
            continue;
        }
        let mut store = significance::Store::new(&blocks, base.metric());
        let mut of_set = |set: &HeadSet| -> Result<Option<Vec<Cells>>, Error> {
            let mut sums = vec![0.0; cells.len()];
            for head in set.iter() {
                let Some(Predictions::Changes(changes)) = store.first_order(&head.to_string(), BASE)? else {
                    return Ok(None);
                };
                sums.iter_mut().zip(changes).for_each(|(sum, change)| *sum += change);
            }
            let mut predicted = cells.clone();
            for (own, change) in predicted.iter_mut().zip(sums) {
                own[0] = Cell::Decimal((f64::from(own[0].value()) + change) as f32);
            }
            Ok(Some(predicted))
        };
        if let Some(predicted) = sets.iter().map(&mut of_set).collect::<Result<Option<_>, _>>()? {
            return Ok(Some(Stored { path, predicted }));
        }
    }
    Ok(None)
}

/// Returns the complete sweeps of single heads in the folder of `path` whose inputs match `identity`; stopping rules may differ. Files that
/// cannot be read are skipped.
fn sweeps(path: &Path, identity: &Identity) -> Vec<(PathBuf, Signature)> {
    let entries = std::fs::read_dir(durable::parent(path)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let without_rules = |identity: &Identity| {
        let mut identity = Identity { experiment: ABLATE_ONE.name.to_owned(), ..identity.clone() };
        identity.arguments.remove(UNTIL_DECIDED);
        identity
    };
    let own = without_rules(identity);
    let is_same = |file: PathBuf| {
        let signature = Signature::read(&file).ok()??;
        let stored = &signature.identity;
        let is_sweep = stored.experiment == ABLATE_ONE.name && signature.complete.is_some();
        (is_sweep && without_rules(stored) == own).then(|| (file.with_extension("csv"), signature))
    };
    files.into_iter().filter_map(is_same).collect()
}
