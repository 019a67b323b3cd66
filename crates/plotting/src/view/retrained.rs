//! The score over the share of closed heads after training without them, beside the model as it was (no such figure is in the
//! papers; Michel et al. 2019 prune without training).
use records::{Order, PruningRow, Scope};

use super::curve::{Curve, FLAT, base_entry, over_base, scores};
use super::pruning_curves::{curve, look};
use super::{BANDS, Context, scored, significantly_worse};
use crate::chart::{Axis, Chart, Entry, Panel, Style};
use crate::data::pruning::{Series, share};
use crate::data::retrained::Retrained;
use crate::palette::INK;
use crate::table::{Cell, Row, Table};
use crate::words::{name_among, tenths};

/// Name of the files, without extension.
pub const STEM: &str = "prune-and-retrain";

/// The curves after training with their intervals, and dotted those of the same orders before it; a panel for each set of heads.
pub fn figure(retrained: &Retrained, context: Context<'_>) -> Chart {
    let (results, scopes) = (&retrained.after.results, retrained.scopes());
    let (metric, base) = (results.metric(), results.base());
    let mut found: Vec<(Scope, Curve, Option<Curve>)> = Vec::new();
    for series in &retrained.after.series {
        let dotted = |line: Style| Style::dotted(line.color, 0.8);
        let untrained = retrained.untrained(series).map(|series| curve(series, look(series), context));
        let untrained = untrained.map(|curve| Curve { line: curve.line.map(dotted), mark: None, ..curve });
        found.push((series.curve.scope, curve(series, look(series), context), untrained));
    }
    let all = || found.iter().flat_map(|(_, trained, untrained)| std::iter::once(trained).chain(untrained));
    let y = scores(&metric, all().flat_map(Curve::heights).chain([base]), FLAT);
    let panel = |(place, &scope): (usize, &Scope)| {
        let own = || found.iter().filter(|(of, ..)| *of == scope);
        let trained: Vec<&Curve> = own().map(|(_, trained, _)| trained).collect();
        let mut layers = over_base(base, &trained);
        let untrained: Vec<&Curve> = own().filter_map(|(.., untrained)| untrained.as_ref()).collect();
        layers.extend(untrained.iter().rev().flat_map(|curve| curve.lines()));
        let axes = [Axis::percent("heads closed (%)"), y.clone()];
        Panel::new(axes, 160.0, layers).named(name_among(&scope, &scopes)).beside(place)
    };
    let mut legend: Vec<Entry> = Vec::new();
    for entry in found.iter().map(|(_, trained, _)| trained.entry()) {
        if !legend.contains(&entry) {
            legend.push(entry);
        }
    }
    let has_untrained = found.iter().any(|(.., untrained)| untrained.is_some());
    let hollow = format!("hollow: {} base, {}", metric.worse_side(), context.criterion.in_words());
    let title =
        format!("{} of models trained on without some heads, over the share of these", metric.label());
    Chart::of(&results.file, "Pruning and training on", STEM, title)
        .note(results.base_line())
        .note(results.file.of_orders())
        .note(format!("each step goes on from the intact model and costs {} updates", retrained.updates))
        .note("at 0 % the model is trained on with all its heads")
        .note(all().any(|curve| !curve.bands().is_empty()).then_some(BANDS))
        .note(all().any(Curve::has_hollow).then_some(hollow))
        .note(retrained.before.as_ref().map(|_| "dotted: the same heads masked without training"))
        .entries(legend)
        .entries(has_untrained.then(|| Entry::line("not trained on", Style::dotted(INK, 0.8))))
        .entries([base_entry("base", &metric, base)])
        .panels(scopes.len(), scopes.iter().enumerate().map(panel).collect())
}

/// One row for each step of each curve: the score with and without training.
pub fn table(retrained: &Retrained, context: Context<'_>) -> Table {
    let (results, updates) = (&retrained.after.results, retrained.updates);
    let row = |series: &Series, row: &PruningRow| {
        let is_same = |other: &&PruningRow| {
            (other.order_seed, other.masked) == (row.order_seed, row.masked) && other.masked > 0
        };
        let untrained = retrained.untrained(series);
        let untrained = untrained.and_then(|series| series.runs.iter().flatten().find(is_same));
        let order = match (row.order, row.order_seed) {
            (Order::Random, Some(seed)) => format!("random {seed}"),
            (order, _) if row.complement => format!("complement of {order}"),
            (order, _) => order.to_string(),
        };
        let cells = [
            row.masked.into(),
            Cell::from(tenths(share(row))),
            scored(row, context),
            untrained.map(|row| scored(row, context)).into(),
        ];
        Row::new(format!("{}, {order}", row.attention), cells)
    };
    let steps =
        |series: &Series| series.runs.iter().flatten().map(|step| row(series, step)).collect::<Vec<_>>();
    let title = format!(
        "{} without the heads of each step, trained on for {updates} updates and not, with the 95 % interval of the change \
         in brackets",
        results.metric().label()
    );
    Table::of(&results.file, "Pruning and training on", &format!("{STEM}-table"), title)
        .columns(["Heads, order", "of each step"], ["closed", "%", "trained on", "not trained on"])
        .rows(retrained.after.series.iter().flat_map(steps))
        .mark(significantly_worse(&results.metric(), "base", context))
        .note(results.base_line())
        .note(results.file.of_orders())
}
