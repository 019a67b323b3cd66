//! The score over the share of closed heads after training without them, beside the model as it was (no such figure is in the
//! papers; Michel et al. 2019 prune without training).
use records::{Order, PruningRow, Scope};

use super::curve::Curve;
use super::pruning_curves::{BASE, Drawn, FLAT, look};
use super::{BANDS, Context, scored, that_hold};
use crate::chart::{At, Axis, COLUMN, Chart, Entry, Layer, Panel, Style, TEXT};
use crate::data::pruning::{Pruning, Series, percent};
use crate::data::retrained::Retrained;
use crate::palette::INK;
use crate::scale::extent;
use crate::table::{Cell, Row, Table};
use crate::words::{short, tenths};

/// Name of the files, without extension.
pub const STEM: &str = "prune-and-retrain";

/// The curves after training with their intervals, and dotted those of the same orders before it; a panel for each set of heads.
pub fn figure(retrained: &Retrained, context: Context<'_>) -> Chart {
    let Retrained { after, before, updates } = retrained;
    let scopes: Vec<Scope> = retrained.scopes().into_iter().collect();
    let panels: Vec<_> = scopes.iter().map(|&scope| (scope, curves(retrained, scope, context))).collect();
    let all = || panels.iter().flat_map(|(_, found)| found.trained.iter().chain(&found.untrained));
    let heights = all().flat_map(Curve::heights).chain([after.base]);
    let y = Axis::of_at_least(after.metric.axis_label(), extent(heights), FLAT);
    let panel = |(place, (scope, found)): (usize, &(Scope, Curves))| {
        let mut layers = vec![Layer::Rule(At::Y(after.base), BASE)];
        layers.extend(found.trained.iter().rev().flat_map(Curve::bands));
        layers.extend(found.untrained.iter().chain(&found.trained).rev().flat_map(Curve::lines));
        let name = if scopes.len() > 1 { scope.to_string() } else { String::new() };
        let x = Axis::around("heads closed (%)", 0.0, 100.0);
        Panel::new(name, [x, if place == 0 { y.clone() } else { y.clone().silent() }], 160.0, layers)
    };
    let mut legend: Vec<Entry> = Vec::new();
    for curve in panels.iter().flat_map(|(_, found)| &found.trained) {
        let entry = Entry { line: curve.line, mark: curve.mark, ..Entry::text(curve.name.clone()) };
        if !legend.contains(&entry) {
            legend.push(entry);
        }
    }
    let has_untrained = panels.iter().any(|(_, found)| !found.untrained.is_empty());
    legend.extend(has_untrained.then(|| Entry::line("not trained on", Style::dotted(INK, 0.8))));
    legend.push(Entry::line(format!("base {}", after.metric.amount(after.base)), BASE));
    let (side, criterion) = (after.metric.worse_side(), context.criterion.in_words());
    let sentences = [
        (true, format!("each step goes on from the intact model and costs {updates} updates")),
        (true, "at 0 % the model is trained on with all its heads".to_owned()),
        (all().any(|curve| !curve.bands().is_empty()), BANDS.to_owned()),
        (all().any(Curve::has_hollow), format!("hollow: {side} base, {criterion}")),
        (before.is_some(), "dotted: the same heads masked without training".to_owned()),
    ];
    Chart {
        name: "Pruning and training on",
        label: format!("{STEM}-{}", after.file.subject),
        title: format!(
            "{} of models trained on without some heads, over the share of these; {}",
            after.metric.label(),
            after.file.title()
        ),
        notes: std::iter::once(after.base_line())
            .chain(after.file.of_orders())
            .chain(that_hold(sentences))
            .collect(),
        width: if scopes.len() > 1 { TEXT } else { COLUMN },
        columns: scopes.len(),
        legend,
        panels: panels.iter().enumerate().map(panel).collect(),
        ..Chart::default()
    }
}

/// The curves over one set of heads.
struct Curves {
    trained: Vec<Curve>,
    untrained: Vec<Curve>,
}

fn curves(retrained: &Retrained, scope: Scope, context: Context<'_>) -> Curves {
    let (mut trained, mut untrained) = (Vec::new(), Vec::new());
    for series in retrained.after.series.iter().filter(|series| series.curve.scope == scope) {
        trained.push(Drawn::new(series, look(series), context).curve);
        if let Some(series) = same(retrained.before.as_ref(), series) {
            let curve = Drawn::new(series, look(series), context).curve;
            let dotted = |line: Style| Style::dotted(line.color, 0.8);
            untrained.push(Curve { line: curve.line.map(dotted), mark: None, ..curve });
        }
    }
    Curves { trained, untrained }
}

/// The same curve of the model as it was.
fn same<'a>(before: Option<&'a Pruning>, series: &Series) -> Option<&'a Series> {
    before?.series.iter().find(|other| other.curve == series.curve)
}

/// One row for each step of each curve: the score with and without training.
pub fn table(retrained: &Retrained, context: Context<'_>) -> Table {
    let Retrained { after, before, updates } = retrained;
    let row = |series: &Series, row: &PruningRow| {
        let untrained = same(before.as_ref(), series).and_then(|series| {
            series.runs.iter().flatten().find(|other| {
                (other.order_seed, other.masked) == (row.order_seed, row.masked) && other.masked > 0
            })
        });
        let order = match (row.order, row.order_seed) {
            (Order::Random, Some(seed)) => format!("random {seed}"),
            (order, _) if row.complement => format!("complement of {order}"),
            (order, _) => order.to_string(),
        };
        let cells = vec![
            Cell::from(row.masked.to_string()),
            Cell::from(tenths(percent(row))),
            scored(&after.metric, row, context),
            untrained.map(|row| scored(&after.metric, row, context)).unwrap_or_default(),
        ];
        Row { label: format!("{}, {order}", row.attention), cells }
    };
    let steps =
        after.series.iter().flat_map(|series| series.runs.iter().flatten().map(move |row| (series, row)));
    Table {
        name: "Pruning and training on",
        label: format!("{STEM}-table-{}", after.file.subject),
        title: format!(
            "{} without the heads of each step, trained on for {updates} updates and not, with the 95 % interval of the change \
             in brackets; {}",
            after.metric.label(),
            after.file.title()
        ),
        headings: ["Heads, order", "of each step"],
        columns: ["closed", "%", "trained on", "not trained on"].map(str::to_owned).into(),
        rows: steps.map(|(series, step)| row(series, step)).collect(),
        mark: Some(format!(
            "significantly {} base (p < {})",
            after.metric.worse_side(),
            short(context.criterion.alpha)
        )),
        summary: std::iter::once(after.base_line()).chain(after.file.of_orders()).collect(),
        ..Table::default()
    }
}
