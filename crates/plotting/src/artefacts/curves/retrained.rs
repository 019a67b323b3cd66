//! Pruning curves with the model retrained at each step. The papers have no such figure: they prune without training.
use std::collections::BTreeMap;

use charts::chart::{Axis, Chart, Entry, Panel, Style};
use charts::palette::INK;
use charts::table::{Cell, Row, Table};
use records::{CurveRow, Scope, TestedRow};
use words::tenths;

use super::figures::{complement_entry, curve, is_random, legend, look};
use super::shares::COMPLEMENT;
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::pruning::share;
use crate::findings::{Criterion, Draws, Retrained, Series, experiment};
use crate::view::curve::{Curve, base_entry, over_base, scores};
use crate::view::{difference, drawn, of_draws, scored, sheet, worse_than_control};

const RETRAINED: &str = "prune-and-retrain";

pub(in crate::artefacts) const ARTEFACT: Artefact = Artefact::new(
    ["prune-and-retrain", "retrain", chapter::MANY_HEADS],
    "Score over the share of masked heads after retraining without them, compared with no retraining",
    Reads::Each(experiment::RETRAINED),
    |file, request, left_out| {
        let found = Retrained::read(file, left_out)?;
        let table = table(&found, request.criterion);
        let chart = figure(&found, request.criterion);
        Ok(vec![sheet(&found.after.results.file, RETRAINED, chart, [table])])
    },
);

/// Draws the curves after retraining, in a panel per set of heads; dotted lines show them without retraining, except complements.
fn figure(retrained: &Retrained, criterion: Criterion) -> Chart {
    let (results, scopes) = (&retrained.after.results, retrained.scopes());
    let (metric, base) = (results.metric(), retrained.base);
    let of = |series: &Series| curve(series, look(series), criterion);
    let before = |series| {
        let dotted = |line: Style| Style::dotted(line.color, 0.8);
        let before = retrained.untrained(series).map(of);
        before.map(|curve| Curve { line: curve.line.map(dotted), mark: None, ..curve })
    };
    let series = &retrained.after.series;
    let after: Vec<(&Series, Curve)> = series.iter().map(|series| (series, of(series))).collect();
    let before: Vec<(&Series, Curve)> = series
        .iter()
        .filter(|one| !one.curve.complement)
        .filter_map(|one| Some((one, before(one)?)))
        .collect();
    let all = || after.iter().chain(&before).map(|(_, curve)| curve);
    let y = scores(&metric, all().flat_map(Curve::heights).chain([base]));
    let panel = |scope: &Scope| {
        let own = |curves: &'_ [(&Series, Curve)]| -> Vec<Curve> {
            let own = curves.iter().filter(|(series, _)| series.curve.attention == *scope);
            own.map(|(_, curve)| curve.clone()).collect()
        };
        let mut layers = over_base(base, &own(&after).iter().collect::<Vec<_>>());
        layers.extend(own(&before).iter().rev().flat_map(Curve::lines));
        Panel::new([Axis::percent("heads masked (%)"), y.clone()], 160.0, layers)
    };
    let has_complement = series.iter().any(|series| series.curve.complement);
    let has_untrained = !before.is_empty();
    let title = format!("{} after retraining without the masked heads, over their share", metric.label());
    Chart::new("Retraining after pruning", results.file.label(RETRAINED), results.file.titled(title))
        .note(format!("full model: {}", metric.described(base)))
        .note(results.file.of_orders())
        .note(format!("each step starts from the full model and takes {} updates", retrained.updates))
        .note("at 0% the model is trained further with all its heads")
        .note(all().any(|curve| !curve.bands().is_empty()).then_some(
            "bands: 95% intervals of the change from step 0, which is retrained with all heads, for each step separately",
        ))
        .note(all().any(Curve::has_hollow).then(|| format!("hollow: {}", worse_than_control(&metric, criterion))))
        .note(has_untrained.then_some("dotted: the same heads masked, without retraining"))
        .note(has_complement.then_some(format!("dashed, complement: {COMPLEMENT}")))
        .entries(legend(&after))
        .entries(complement_entry(has_complement))
        .entries(has_untrained.then(|| Entry::line("not retrained", Style::dotted(INK, 0.8))))
        .entries([base_entry("full model", &metric, base)])
        .beside(&scopes, Scope::in_words, panel)
}

/// Returns a row for each step of each curve, with random draws combined: heads and ranking, then the score with and without retraining.
pub(crate) fn rows(retrained: &Retrained, criterion: Criterion) -> Vec<Row> {
    let all = &retrained.after.series;
    let metric = retrained.after.results.metric();
    let (amount, change) = (|score| metric.amount(score), |delta| metric.change(delta));
    let row = |series: &Series, rows: &[&CurveRow]| {
        let (curve, first) = (series.curve, rows[0]);
        let untrained = retrained.untrained(series).filter(|_| first.masked > 0);
        let is_same = |other: &&CurveRow| {
            rows.iter().any(|row| (other.order_seed, other.masked) == (row.order_seed, row.masked))
        };
        let untrained: Vec<_> =
            untrained.into_iter().flat_map(|series| series.runs.iter().flatten()).filter(is_same).collect();
        let is_tested = first.delta_interval().is_some();
        let cells = if is_random(series) {
            let mean = |found: Option<Draws>, number: &dyn Fn(f64) -> String| {
                Cell::from(found.map(|found| drawn(&found, number, None)))
            };
            [
                mean(Draws::of(rows.iter().map(|row| row.score)), &amount),
                mean(Draws::of(rows.iter().map(|row| row.score_delta)).filter(|_| is_tested), &change),
                Cell::default(),
                mean(Draws::of(untrained.iter().map(|row| row.score)), &amount),
            ]
        } else {
            let draws =
                all.iter().filter(|other| is_random(other) && other.curve.attention == curve.attention);
            let draws = draws.flat_map(|series| series.runs.iter().flatten());
            let draws =
                draws.filter(|draw| draw.masked == first.masked && draw.masked_heads != first.masked_heads);
            let beside = Draws::of(draws.map(|draw| first.score - draw.score));
            let cost = || difference(&first.tests(), &metric).marked(criterion.is_loss(first));
            [
                Cell::number(amount(first.score), first.score),
                is_tested.then(cost).into(),
                beside.map(|found| drawn(&found, change, Some(0.0))).into(),
                untrained.first().map(|row| scored(*row, criterion)).into(),
            ]
        };
        let complement = if curve.complement { "complement of " } else { "" };
        let label = format!("{}, {complement}{}", curve.attention, curve.order);
        Row::new(label, [first.masked.into(), Cell::printed(share(first), tenths)].into_iter().chain(cells))
    };
    let steps = |series: &Series| {
        let mut of_step = BTreeMap::<usize, Vec<&CurveRow>>::new();
        series.runs.iter().flatten().for_each(|row| of_step.entry(row.step).or_default().push(row));
        of_step.values().map(|rows| row(series, rows)).collect::<Vec<_>>()
    };
    all.iter().flat_map(steps).collect()
}

fn table(retrained: &Retrained, criterion: Criterion) -> Table {
    let (results, updates) = (&retrained.after.results, retrained.updates);
    let metric = results.metric();
    let draws =
        retrained.after.series.iter().filter(|series| is_random(series)).map(|series| series.runs.len());
    let title = format!(
        "{} without the heads of each step, with {updates} updates of retraining and without; in brackets the 95% interval of the \
         change from all heads retrained, or from the full model",
        metric.label()
    );
    Table::new(
        "Retraining after pruning",
        results.file.label(&format!("{RETRAINED}-table")),
        results.file.titled(title),
    )
    .columns(
        ["Heads, order", "of each step"],
        ["masked", "%", "retrained", "minus all heads retrained", "minus random", "not retrained"],
    )
    .rows(rows(retrained, criterion))
    .mark(format!(
        "{}; minus random: outside all of at least {} draws",
        worse_than_control(&metric, criterion),
        Draws::ENOUGH
    ))
    .note(format!("full model: {}", metric.described(retrained.base)))
    .note(results.file.of_orders())
    .note(of_draws(draws.min().unwrap_or_default()))
}
