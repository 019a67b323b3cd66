//! The claim of Michel et al. (2019) on training.
use std::path::Path;

use super::claims::{in_words, row};
use super::{Section, Subject};
use crate::Error;
use crate::dynamics::{Checkpoint, Dynamics};
use crate::number::{share, tenths};
use crate::paper::{PublishedFigure5, figure5};

/// Section 6: heads become dispensable while a model is trained.
pub(super) fn during_training(all: &[Subject], paper: Option<&Path>) -> Result<Section, Error> {
    let published = paper.map(figure5).transpose()?;
    let trainings = || all.iter().filter_map(|subject| subject.dynamics.as_ref());
    Ok(Section {
        title: "Heads become dispensable during training (Section 6, Figure 5)",
        note: "How to read it: the largest share of heads that can be masked, by importance at that checkpoint, with 85 or 90 % of its own \
               unpruned score kept; after the last checkpoint and, to compare, after the first with a score above 0. The \
               paper says that its share is within 85 to 90 %."
            .to_owned(),
        columns: &[
            "model and test set",
            "last checkpoint",
            "base",
            "heads",
            "85 % kept",
            "90 % kept",
            "85 % kept after the first",
        ],
        published: published.iter().map(published_row).collect(),
        measured: trainings().filter_map(measured_row).collect(),
        remarks: trainings().flat_map(remarks).collect(),
    })
}

fn published_row(paper: &PublishedFigure5) -> Vec<String> {
    let last = paper.epochs.last();
    let epoch = last.map_or(String::new(), |row| format!("epoch {} (the same from 10 on)", row.epoch));
    let base = last.map_or(String::new(), |row| format!("BLEU {:.1}", row.unpruned_bleu));
    let share = format!("{} %", tenths(paper.percent));
    row(["M19: IWSLT (Figure 5)", &epoch, &base, "", &share, "", ""])
}

/// Nothing for a training without a score so far.
fn measured_row(dynamics: &Dynamics) -> Option<Vec<String>> {
    let comparable = dynamics.comparable().ok()?;
    let (first, last) = (comparable.first()?, comparable.last()?);
    let base = dynamics.metric.described(last.base());
    let heads = last.steps().first().map_or(String::new(), |row| row.heads.to_string());
    let [most, more] = [85.0, 90.0].map(|least| share_of(dynamics, last, least));
    let before = format!("{}: {}", dynamics.name(first), share_of(dynamics, first, 85.0));
    let before = if comparable.len() > 1 { before } else { String::new() };
    Some(row([&dynamics.title(), &dynamics.name(last), &base, &heads, &most, &more, &before]))
}

/// The share in words, and whether the checkpoint is not finished; empty if it is but has no share.
fn share_of(dynamics: &Dynamics, checkpoint: &Checkpoint, least: f64) -> String {
    let found = checkpoint.removable(least);
    in_words(found.map(|found| share(found.percent, found.is_open)), dynamics.is_finished(checkpoint))
}

fn remarks(dynamics: &Dynamics) -> Vec<String> {
    dynamics.notes().into_iter().map(|note| format!("{}, {note}", dynamics.title())).collect()
}
