//! The question that Michel et al. (2019) leave open: language models.
use records::{BASE, Blocks, Order, PruningRow};

use super::claims::{base, floor, row, share_of};
use super::{Section, Subject};
use crate::Error;
use crate::left_out::LeftOut;
use crate::number::count;
use crate::origin::Model;
use crate::pruning::Pruning;
use crate::pruning::order::Scope;
use crate::result_file::ResultFile;
use crate::significance::{Adjustment, Criterion, Which};
use crate::sweep::Sweep;

/// Section 8 of the paper names other models as future work; it has no numbers of them.
pub(super) fn question(
    all: &[Subject],
    criterion: Criterion,
    left_out: &mut LeftOut,
) -> Result<Section, Error> {
    let mut measured = Vec::new();
    for subject in all.iter().filter(|subject| model(subject) == Model::Language) {
        measured.extend(curve(subject, criterion, left_out)?);
    }
    Ok(Section {
        title: "M19's question: a language model",
        note: "How to read it: decoder-only models, of which the paper has no numbers. Single heads: those whose masking alone \
               changes the score significantly, adjusted for a single false alarm among all. Shares are of the order by \
               importance, by the two rules above, with the change of the score there and its 95 % interval. Of nats the less \
               the better, and a change by d multiplies the perplexity with exp(d)."
            .to_owned(),
        columns: &[
            "model and test set",
            "base",
            "nats a word",
            "single heads",
            "shown safe",
            "change and interval",
            "no significant loss",
            "change and interval",
            "floor",
        ],
        published: Vec::new(),
        measured,
        remarks: Vec::new(),
    })
}

/// What the first file that there is says of the model.
fn model(subject: &Subject) -> Model {
    subject.files().next().map_or(Model::Other, |file| file.origin.model())
}

/// The row of a subject; none without a curve by importance or a sweep.
fn curve(
    subject: &Subject,
    criterion: Criterion,
    left_out: &mut LeftOut,
) -> Result<Option<Vec<String>>, Error> {
    let alone = subject.sweep.as_ref().map_or(String::new(), |sweep| single_heads(sweep, criterion));
    let Some(pruning) = &subject.pruning else {
        let Some(sweep) = &subject.sweep else { return Ok(None) };
        let (base, words) = (sweep.metric.described(sweep.base), in_words(&sweep.file, left_out)?);
        return Ok(Some(row([&sweep.title(), &base, &words, &alone, "", "", "", "", ""])));
    };
    let shares = pruning.find(Scope::All, Order::Importance).map(|series| {
        Which::BOTH.map(|which| {
            let [share, _] = share_of(pruning, series, criterion, which);
            let step = series.removable(pruning.rules(criterion), which).and_then(|found| found.step);
            let of = |masked| series.runs.iter().flat_map(|run| &run.steps).find(|row| row.masked == masked);
            [share, step.and_then(|step| of(step.masked)).map_or(String::new(), |row| change(pruning, row))]
        })
    });
    let [safe, no_loss] = shares.unwrap_or_default();
    let (title, base, words) = (pruning.title(), base(pruning), in_words(&pruning.file, left_out)?);
    let floor = floor(pruning, Scope::All);
    Ok(Some(row([&title, &base, &words, &alone, &safe[0], &safe[1], &no_loss[0], &no_loss[1], &floor])))
}

/// `3 of 96 heads`; empty where none was tested.
fn single_heads(sweep: &Sweep, criterion: Criterion) -> String {
    let rows: Vec<_> = sweep.rows().iter().map(|(_, row)| row).collect();
    let tally = Criterion { adjustment: Adjustment::Family, ..criterion }.tally(&rows);
    if tally.tested == 0 {
        return String::new();
    }
    format!("{} of {}", tally.significant, count(tally.tested, "head"))
}

/// `+0.0123 [+0.0100 to +0.0150]`
fn change(pruning: &Pruning, row: &PruningRow) -> String {
    let metric = &pruning.metric;
    let interval = row.delta_low.zip(row.delta_high).filter(|_| row.masked > 0);
    let interval = interval
        .map(|(low, high)| format!(" [{} to {}]", metric.change(low), metric.change(high)))
        .unwrap_or_default();
    metric.change(row.score_delta) + &interval
}

/// The nats of the intact model for each word of the text; empty where words were not counted.
fn in_words(file: &ResultFile, left_out: &mut LeftOut) -> Result<String, Error> {
    let read = Blocks::read(&Blocks::path_beside(&file.path)).map_err(Error::from);
    let Some(blocks) = left_out.keep(read)?.flatten() else { return Ok(String::new()) };
    let sum = |column: &str| {
        let place = blocks.columns.iter().position(|name| name == column)?;
        Some(blocks.get(BASE)?.sums.get(place)?.value())
    };
    let both = sum("nats").zip(sum("words")).filter(|(_, words)| *words > 0.0);
    Ok(both.map_or(String::new(), |(nats, words)| format!("{:.3}", nats / words)))
}
