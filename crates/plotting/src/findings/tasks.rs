//! Compares which heads matter for several tasks of one pretrained model.
use std::collections::BTreeMap;

use records::{CorrelationRow, Measure};
use stats::correlation::{pearson, spearman};

use crate::findings::error::{LeftOut, Result, within};
use crate::findings::importance::Importance;
use crate::findings::subject_results::SubjectResults;

/// Agreement between two tasks on the heads of one pretrained model.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairing {
    /// The pretrained model.
    pub pretrained: String,
    /// Displayed names of the two setups.
    pub subjects: [String; 2],
    /// Agreement of the effects of masking one head.
    pub row: CorrelationRow,
    /// Pearson's r and Spearman's rho of the importance; `None` unless both setups measured it.
    pub importance: Option<[f64; 2]>,
}

/// Compares every two setups that were fine-tuned from one pretrained model.
pub fn pairings(all: &[SubjectResults], left_out: &mut LeftOut) -> Vec<Pairing> {
    let mut by_model: BTreeMap<&str, Vec<&SubjectResults>> = BTreeMap::new();
    for subject in all.iter().filter(|subject| subject.sweep.is_some()) {
        if let Some(pretrained) = subject.pretrained() {
            by_model.entry(pretrained).or_default().push(subject);
        }
    }
    let mut pairings = Vec::new();
    for (pretrained, subjects) in by_model {
        for (place, first) in subjects.iter().enumerate() {
            for second in &subjects[place + 1..] {
                let row = left_out.keep(agreement_of([first, second])).flatten();
                let subjects = [first, second].map(|subject| subject.shown());
                let (pretrained, importance) = (pretrained.to_owned(), importance_of([first, second]));
                pairings.extend(row.map(|row| Pairing { pretrained, subjects, row, importance }));
            }
        }
    }
    pairings
}

/// Compares the losses in two sweeps over all heads, with the first sweep's test settings. The metrics may differ in direction.
fn agreement_of(both: [&SubjectResults; 2]) -> Result<Option<CorrelationRow>> {
    let files = both.map(|subject| subject.sweep.as_ref().map(|sweep| &sweep.file));
    let [Some(first), Some(second)] = files else { return Ok(None) };
    let Some(testing) = first.testing() else { return Ok(None) };
    let rows = || {
        let [one, other] = [first, second].map(|file| significance::Sweep::read(&file.path));
        significance::agreement(&one?, &other?, testing)
    };
    let what = || format!("cannot compare `{}` and `{}`", first.path.display(), second.path.display());
    Ok(rows().map_err(within(what))?.into_iter().next())
}

/// Correlates the importance of heads; `None` if one setup lacks a head.
fn importance_of(both: [&SubjectResults; 2]) -> Option<[f64; 2]> {
    let [first, second] = both.map(|subject| subject.importance.as_ref());
    let values = |found: &Importance| found.of(Measure::ExampleNormalised);
    let (first, second) = (values(first?), values(second?));
    if !first.keys().eq(second.keys()) {
        return None;
    }
    let [x, y] = [first, second].map(|values| values.into_values().collect::<Vec<_>>());
    let found = [pearson(&x, &y).ok()?, spearman(&x, &y).ok()?];
    Some(found.map(|correlation| correlation.coefficient))
}
