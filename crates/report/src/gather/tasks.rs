//! Which heads matter for several tasks of one pretrained model.
use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use findings::error::LeftOut;
use findings::importance::Importance;
use records::Row;
use stats::correlation::{pearson, spearman};

use super::Gathered;
use crate::view::comparison::Pairing;

/// Each two subjects that were fine-tuned from one pretrained model.
pub fn pairings(all: &[Gathered], left_out: &mut LeftOut) -> Result<Vec<Pairing>> {
    let mut by_model: BTreeMap<&str, Vec<&Gathered>> = BTreeMap::new();
    for gathered in all.iter().filter(|gathered| gathered.subject.sweep.is_some()) {
        if let Some(pretrained) = &gathered.pretrained {
            by_model.entry(pretrained).or_default().push(gathered);
        }
    }
    let mut pairings = Vec::new();
    for (pretrained, subjects) in by_model {
        for (place, first) in subjects.iter().enumerate() {
            for second in &subjects[place + 1..] {
                let row = left_out.keep(agreement_of([first, second]))?.flatten();
                let subjects = [first, second].map(|gathered| gathered.name.clone());
                let importance = importance_of([first, second]);
                pairings.extend(row.map(|row| Pairing {
                    pretrained: pretrained.to_owned(),
                    subjects,
                    row,
                    importance,
                }));
            }
        }
    }
    Ok(pairings)
}

/// How two sweeps agree over all heads, with the seed of the first one's tests.
fn agreement_of(both: [&Gathered; 2]) -> Result<Option<records::CorrelationRow>> {
    let files = both.map(|gathered| gathered.subject.sweep.as_ref().map(|sweep| &sweep.file));
    let [Some(first), Some(second)] = files else { return Ok(None) };
    let Some(testing) = first.testing() else { return Ok(None) };
    let sweeps = [first, second].map(|file| significance::Sweep::read(&file.path));
    let [one, other] = sweeps;
    let what = || format!("cannot compare `{}` and `{}`", first.path.display(), second.path.display());
    let rows = significance::agreement(&one.with_context(what)?, &other.with_context(what)?, testing);
    Ok(rows.with_context(what)?.into_iter().next())
}

/// How the importance of the same heads agrees; nothing where one of them lacks a head.
fn importance_of(both: [&Gathered; 2]) -> Option<[f64; 2]> {
    let [first, second] = both.map(|gathered| gathered.subject.importance.as_ref());
    let values = |found: &Importance| {
        let of = |row: &records::ImportanceRow| (row.name(), row.example_normalised);
        found.rows.iter().map(of).collect::<BTreeMap<_, _>>()
    };
    let (first, second) = (values(first?), values(second?));
    if !first.keys().eq(second.keys()) {
        return None;
    }
    let [x, y] = [first, second].map(|values| values.into_values().collect::<Vec<_>>());
    let found = [pearson(&x, &y).ok()?, spearman(&x, &y).ok()?];
    Some(found.map(|correlation| correlation.coefficient))
}
