//! Pruning under each kind of ablation: how many more heads can be masked if their mean or another output replaces them.
use crate::findings::{Criterion, KindsOfCurves, Pruning, RuleKind, Series};
use charts::chart::{Chart, Shape};
use charts::palette::{BLUE, INK, VERMILLION};
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use records::{Order, Scope};
use words::signed;

use super::figures::{chart, curve};
use super::shares::{SPREAD, score_at, share};
use crate::artefact::{Artefact, Reads, chapter};
use crate::artefacts::ablation_kinds::KINDS;
use crate::findings::error::no_kinds;
use crate::findings::experiment;
use crate::view::curve::Curve;

pub(crate) const STEM: &str = "pruning-kinds";

pub(in crate::artefacts) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "pruning-kinds", chapter::MANY_HEADS],
    "Score over the share of masked heads under each kind of ablation, and how many more heads can be masked than with zeros",
    Reads::Each(experiment::PRUNING),
    |file, request, left_out| {
        let found = KindsOfCurves::read(file.clone(), left_out)?;
        let sheet = found.map(|found| Ok(sheet(&found, request.criterion)));
        request.sheet_or(sheet, || no_kinds(&file, experiment::PRUNING))
    },
)
.detail("after `--ablation mean` and `--ablation resample`");

const NAME: &str = "Pruning by kind";

pub(crate) fn sheet(found: &KindsOfCurves, criterion: Criterion) -> Sheet {
    let chart = figure(found, criterion);
    crate::view::sheet(&found.all[0].1.results.file, STEM, chart, [table(found, criterion)])
}

fn by_importance(found: &KindsOfCurves) -> impl Iterator<Item = (&'static str, &Pruning, &Series)> {
    let all = found.all.iter();
    all.filter_map(|(name, curves)| Some((*name, curves, curves.find(Scope::All, Order::Importance)?)))
}

/// Returns a row per kind: the share that can be masked together by each rule, in heads too, and how many more than under zero ablation.
pub(crate) fn rows(found: &KindsOfCurves, criterion: Criterion) -> Vec<Row> {
    let mut of_zero = [None; 2];
    let row = |(name, pruning, series): (&'static str, &Pruning, &Series)| {
        let judge = pruning.results.judge(criterion);
        let heads = series.runs.iter().flatten().map(|row| row.heads).max().unwrap_or_default();
        let mut cells = vec![heads.into()];
        for (which, of_zero) in RuleKind::BOTH.into_iter().zip(&mut of_zero) {
            let Some(found) = series.removable(judge, which) else {
                cells.extend([Cell::gap("?"), Cell::default(), Cell::default()]);
                continue;
            };
            let number = (found.percent * heads as f64 / 100.0).round();
            if name == "zero" {
                *of_zero = Some(number);
            }
            let more = of_zero.filter(|_| name != "zero").map(|of_zero| number - of_zero);
            let more = more.map(|more| Cell::printed(more, |more| signed(more, 0)));
            cells.extend([
                Cell::number(share(&found, ""), found.percent),
                (number as usize).into(),
                more.into(),
            ]);
        }
        Row::new(name, cells.into_iter().chain([score_at(pruning, series, 50.0)]))
    };
    by_importance(found).map(row).collect()
}

fn table(found: &KindsOfCurves, criterion: Criterion) -> Table {
    let (_, zero) = &found.all[0];
    let results = &zero.results;
    let title = format!(
        "Heads that can be masked together, by kind of ablation: dispensable, and without a significant loss of {}",
        results.metric().label()
    );
    Table::new(NAME, results.file.label(&format!("{STEM}-table")), results.file.titled(title))
        .columns(
            ["Kind", "by importance"],
            [
                "heads",
                "dispensable (%)",
                "in heads",
                "more than zero",
                "no sig. loss (%)",
                "in heads",
                "more than zero",
                "score at 50%",
            ],
        )
        .rows(rows(found, criterion))
        .note(results.base_line())
        .note(notes(found))
        .note(results.judge(criterion).rules("steps"))
        .note(SPREAD)
        .note("more than zero: difference between the heads masked at the last steps of the two curves, not tested")
        .note(results.file.of_orders())
}

fn notes(found: &KindsOfCurves) -> Vec<String> {
    let has_draw = found.all.iter().any(|(name, _)| *name == "resample");
    let draw = has_draw.then(|| "resample: one draw of other texts".to_owned());
    let fold = "the means can be folded into the bias of the output projection, if the model has one";
    [KINDS.to_owned(), fold.to_owned()].into_iter().chain(draw).collect()
}

/// Draws the curve by importance under each kind, with intervals.
fn figure(found: &KindsOfCurves, criterion: Criterion) -> Chart {
    let drawn = by_importance(found).map(|(name, _, series)| {
        let (color, width, mark) = match name {
            "zero" => (INK, 0.8, (Shape::Diamond, 1.6)),
            "mean" => (BLUE, 1.1, (Shape::Circle, 1.6)),
            _ => (VERMILLION, 0.8, (Shape::Square, 1.2)),
        };
        (series, curve(series, Curve::look(name, color, width, Some(mark)), criterion))
    });
    let (_, zero) = &found.all[0];
    let title =
        format!("{} over the share of masked heads, by kind of ablation", zero.results.metric().label());
    chart(zero, criterion, ([NAME, STEM], &title, "heads masked (%)"), drawn.collect(), Vec::new())
        .note(notes(found))
}
