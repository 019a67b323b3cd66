//! Methods that choose heads side by side, with repairs. No paper has them all on one model.
mod tables;

use std::collections::BTreeMap;

use charts::chart::{Axis, Chart, Color, Entry, Layer, Panel, Shape, Style};
use charts::palette::{GREEN, ORANGE, PURPLE, SILVER};
use charts::write::Sheet;
use findings::methods::{Repaired, is_of_modules};
use findings::pruning::share;
use findings::{Criterion, Draws, LeftOut, Methods, Result, Series, Speed};
use records::{CurveId, Order, PruningRow, Repair, Scope};
use stats::Direction;

use super::curve::{Curve, Point, base_entry, over_base, scores};
use super::pruning_curves::{complement_entry, curve, is_random, look};
use super::pruning_table::COMPLEMENT;
use super::{Asked, BANDS};
use tables::{Ranking, modules_table, recommendation, steps_table};

pub(crate) use tables::{recommended, with_training};

pub(crate) const STEM: &str = "compare-methods";

/// A figure and tables for each set of heads that methods choose from.
pub fn sheets(found: &Methods, asked: &Asked<'_>, left_out: &mut LeftOut) -> Result<Vec<Sheet>> {
    let speeds = left_out.keep(Speed::all_of_model(&found.results.file)).unwrap_or_default();
    let sheet = |scope: Scope| {
        let stem = if scope == Scope::All { STEM.to_owned() } else { format!("{STEM}-{scope}") };
        let compared = found.compared(scope)?;
        let repairs: Vec<Repair> = found.repairs.keys().copied().collect();
        let ranking = Ranking { found, areas: &compared.areas, repairs };
        let first = [recommendation(found, &compared), ranking.table(), ranking.contrasts()];
        let last = steps_table(found, scope, asked.criterion);
        let tables = first.into_iter().chain(modules_table(found, &compared.modules, &speeds)).chain([last]);
        let chart = figure(found, scope, &ranking, asked.criterion);
        Ok(super::sheet(&found.results.file, &stem, chart, tables))
    };
    found.scopes().into_iter().map(sheet).collect()
}

fn name(method: CurveId) -> String {
    let complement = if method.complement { "complement of " } else { "" };
    let order = match method.order {
        Order::By(measure) if !is_of_modules(method) => measure.entry().label.unwrap_or(measure.name()),
        order => order.name(),
    };
    format!("{complement}{order}")
}

/// `Fisher, least-squares`
fn repaired(method: Repaired) -> String {
    let Repaired { repair, curve } = method;
    let after = matches!(repair, Repair::Mean | Repair::LeastSquares).then(|| format!(", {repair}"));
    name(curve) + &after.unwrap_or_default()
}

/// Width of the lines of methods that have no colour.
const FAINT: f64 = 0.3;

/// Small multiples by repair: importance, the oracle, random orders, whole modules, and the best of all others stand out.
fn figure(found: &Methods, scope: Scope, ranking: &Ranking<'_>, criterion: Criterion) -> Chart {
    let (file, metric, base) = (&found.results.file, found.results.metric(), found.results.base());
    let drawn = |repair: Repair| -> Vec<(&Series, Curve)> {
        let best = ranking.best(repair);
        let own = found.repairs[&repair].series.iter().filter(|series| series.curve.attention == scope);
        let base = found.repairs[&repair].results.base();
        let drawn = |series| drawn_curve(series, base, Some(series.curve) == best, criterion);
        own.map(|series| (series, drawn(series))).collect()
    };
    let all: Vec<(&Series, Curve)> = ranking.repairs.iter().flat_map(|&repair| drawn(repair)).collect();
    let worst = worst_height(&all, base, metric.direction());
    let cut = |curve: Curve| curve.up_to(worst, metric.direction());
    let leaving = all
        .iter()
        .filter(|(_, curve)| curve.points().any(|point| metric.direction().is_better(worst, point.y)));
    let leaving = leaving.count();
    let all: Vec<(&Series, Curve)> = all.into_iter().map(|(series, curve)| (series, cut(curve))).collect();
    let y = scores(&metric, all.iter().flat_map(|(_, curve)| curve.heights()).chain([base]));
    let panel = |repair: &Repair| {
        let mut curves: Vec<Curve> = drawn(*repair).into_iter().map(|(_, curve)| cut(curve)).collect();
        curves.sort_by_key(|curve| curve.mark.is_none()); // those with marks in front
        let base = found.repairs[repair].results.base();
        let mut layers = over_base(base, &curves.iter().collect::<Vec<_>>());
        let best = ranking.best(*repair).map(|best| (50.0, format!("best other: {}", name(best)), GREEN));
        layers.extend(best.map(|best| Layer::Tops(vec![best])));
        Panel::new([Axis::percent("heads masked (%)"), y.clone()], 150.0, layers)
    };
    let has = |is: fn(&Series) -> bool| all.iter().any(|(series, _)| is(series));
    let has_complement = has(|series| series.curve.complement);
    let title = format!("{} over the share of masked heads, by method and repair", metric.label());
    let mut entries: Vec<Entry> = Vec::new();
    for (_, curve) in all.iter().filter(|(series, curve)| !series.curve.complement && !curve.name.is_empty())
    {
        if !entries.contains(&curve.entry()) {
            entries.push(curve.entry());
        }
    }
    let others = all.iter().any(|(_, curve)| curve.name.is_empty());
    let chart = Chart::new("Methods side by side", file.label(STEM), file.titled(title))
        .note(found.results.base_line())
        .note(file.of_orders())
        .note(repairs(&ranking.repairs))
        .note("best other: by the area under the curve, of all but importance, the oracle, random orders and whole modules")
        .note((leaving > 0).then(|| {
            format!("the scale ends at the worst mean of random orders, or of what stands out; {leaving} curves leave it")
        }))
        .note(BANDS)
        .note(has(is_random).then_some("random: the mean of the orders, with the least and the greatest score"))
        .note(has_complement.then(|| format!("dashed, complement of importance: {COMPLEMENT}")))
        .note((!found.others.is_empty()).then_some("curves of the first training that has them"))
        .entries(entries)
        .entries(others.then(|| Entry::line("other methods", Style::line(SILVER, FAINT))))
        .entries(complement_entry(has_complement))
        .entries([base_entry("base", &metric, base)])
        .beside(&ranking.repairs, panel);
    if ranking.repairs.len() > 1 { chart.wide() } else { chart }
}

/// The worst height to draw: that of curves with marks, with their intervals, and of the means of random orders; of all curves where no
/// orders are random.
fn worst_height(all: &[(&Series, Curve)], base: f64, direction: Direction) -> f64 {
    let has_random = all.iter().any(|(series, _)| is_random(series));
    let heights = |(series, curve): &(&Series, Curve)| match curve.mark.is_some() || !has_random {
        true => curve.heights().collect::<Vec<_>>(),
        false if is_random(series) => curve.points().map(|point| point.y).collect(),
        false => Vec::new(),
    };
    let worse = |one: f64, other: f64| if direction.is_better(one, other) { other } else { one };
    all.iter().flat_map(heights).fold(base, worse)
}

/// A curve from the base on that stands out, or a faint one without a name.
fn drawn_curve(series: &Series, base: f64, is_best: bool, criterion: Criterion) -> Curve {
    const MODULES: [(&str, Color, Shape); 2] =
        [("modules", PURPLE, Shape::Diamond), ("modules-by-similarity", ORANGE, Shape::Square)];
    let order = series.curve.order;
    let modules = MODULES.iter().find(|(name, ..)| *name == order.name());
    let look = match (order, modules) {
        (Order::Importance | Order::Oracle, _) => look(series),
        (_, Some(&(_, color, shape))) => Curve::look(name(series.curve), color, 0.8, Some((shape, 1.3))),
        _ if is_best => Curve::look("best other", GREEN, 1.1, Some((Shape::Triangle, 1.4))),
        _ => Curve::look("", SILVER, FAINT, None),
    };
    let is_faint = look.name.is_empty() && order != Order::Random;
    let mut drawn = if order == Order::Random { of_draws(series) } else { curve(series, look, criterion) };
    for piece in &mut drawn.pieces {
        for point in piece.iter_mut() {
            point.is_worse = false; // nearly all are
            point.ends = point.ends.filter(|_| !is_faint);
        }
        let intact =
            Point { x: 0.0, y: base, ends: Some((base, base)).filter(|_| !is_faint), is_worse: false };
        if piece.first().is_some_and(|first| first.x > 0.0) {
            piece.insert(0, intact);
        }
    }
    drawn
}

/// The mean of random orders at each step, with the least and the greatest score.
fn of_draws(series: &Series) -> Curve {
    let mut steps = BTreeMap::<usize, Vec<&PruningRow>>::new();
    series.runs.iter().flatten().for_each(|row| steps.entry(row.step).or_default().push(row));
    let point = |rows: &Vec<&PruningRow>| {
        let Draws { mean, range, .. } = Draws::of(rows.iter().map(|row| row.score))?;
        Some(Point { x: share(rows[0]), y: mean, ends: Some(range), is_worse: false })
    };
    let pieces = vec![steps.values().filter_map(point).collect()];
    Curve { pieces, ..Curve::look(format!("random ({})", series.runs.len()), SILVER, 0.8, None) }
}

/// Meaning of the repairs that are there.
fn repairs(all: &[Repair]) -> String {
    let about = |repair: &Repair| match repair {
        Repair::None => "none",
        Repair::Mean => "mean: mean contexts folded into biases",
        Repair::LeastSquares => {
            "least-squares: kept heads multiplied, so that each module writes what is closest to what it wrote"
        }
        Repair::Training => {
            "training: all weights trained further, beside the same with all heads (the base there)"
        }
    };
    format!("repairs of what is left: {}", all.iter().map(about).collect::<Vec<_>>().join("; "))
}
