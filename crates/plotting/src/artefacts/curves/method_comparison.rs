//! Compares rankings and searches, with repairs. No paper has them all on one model.
mod tables;

use std::collections::BTreeMap;

use crate::findings::method_comparison::{Repaired, is_of_modules};
use crate::findings::pruning::share;
use crate::findings::{Criterion, Draws, LeftOut, Methods, Result, Series, Speed};
use charts::chart::{Axis, Chart, Color, Entry, Panel, Shape};
use charts::palette::{GREEN, PURPLE, SILVER};
use charts::write::Sheet;
use records::{CurveId, CurveRow, Order, Repair, Scope};

use super::figures::{curve, is_random, legend, look};
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::experiment;
use crate::view::curve::{BASE, Curve, Point, over_base, scores};
use crate::view::{BANDS, Request};
use tables::{Ranking, modules_table, recommendation, steps_table};

pub(crate) use tables::{recommended, with_training};

pub(crate) const STEM: &str = "compare-methods";

pub(in crate::artefacts) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "methods", chapter::MANY_HEADS],
    "Rankings and searches compared, with repairs: which to use, curves, areas under them, and scores at each number of heads",
    Reads::Files(|source, request| {
        let files = if request.is_all { source.all(experiment::METHODS)? } else { Vec::new() };
        if files.is_empty() { Ok(vec![source.of_a_run(experiment::METHODS)?]) } else { Ok(files) }
    }),
    |file, request, left_out| sheets(&Methods::read(file, left_out)?, request, left_out),
);

/// Draws a figure and tables for each set of heads to choose from.
pub fn sheets(found: &Methods, request: &Request<'_>, left_out: &mut LeftOut) -> Result<Vec<Sheet>> {
    let speeds = left_out.keep(Speed::all_of_model(&found.results.file)).unwrap_or_default();
    let sheet = |scope: Scope| {
        let stem = if scope == Scope::All { STEM.to_owned() } else { format!("{STEM}-{scope}") };
        let compared = found.compared(scope)?;
        let repairs: Vec<Repair> = found.repairs.keys().copied().collect();
        let ranking = Ranking { found, areas: &compared.areas, repairs };
        let first = [recommendation(found, &compared), ranking.table(), ranking.contrasts()];
        let last = steps_table(found, scope, request.criterion);
        let tables = first.into_iter().chain(modules_table(found, &compared.modules, &speeds)).chain([last]);
        let chart = figure(found, scope, &ranking, request.criterion);
        Ok(crate::view::sheet(&found.results.file, &stem, chart, tables))
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

fn repaired(method: Repaired) -> String {
    let Repaired { repair, curve } = method;
    let after = matches!(repair, Repair::Mean | Repair::LeastSquares).then(|| format!(", {repair}"));
    name(curve) + &after.unwrap_or_default()
}

/// Styles of the two best methods other than importance, the oracle and random rankings.
const BEST: [(Color, Shape); 2] = [(GREEN, Shape::Triangle), (PURPLE, Shape::Diamond)];

/// Draws a panel per repair with the curves of importance, the oracle, random rankings, and the two best of the other methods.
fn figure(found: &Methods, scope: Scope, ranking: &Ranking<'_>, criterion: Criterion) -> Chart {
    let (file, metric) = (&found.results.file, found.results.metric());
    let best = ranking.best_others();
    let drawn = |repair: Repair| -> Vec<(&Series, Curve)> {
        let own = found.repairs[&repair].series.iter().filter(|series| series.curve.attention == scope);
        let base = found.repairs[&repair].results.base();
        own.filter_map(|series| Some((series, drawn_curve(series, base, &best, criterion)?))).collect()
    };
    let all: Vec<(&Series, Curve)> = ranking.repairs.iter().flat_map(|&repair| drawn(repair)).collect();
    let y = scores(&metric, all.iter().flat_map(|(_, curve)| curve.heights()));
    let panel = |repair: &Repair| {
        let curves: Vec<Curve> = drawn(*repair).into_iter().map(|(_, curve)| curve).collect();
        let layers = over_base(found.repairs[repair].results.base(), &curves.iter().collect::<Vec<_>>());
        Panel::new([Axis::percent("heads masked (%)"), y.clone()], 150.0, layers)
    };
    let has_random = all.iter().any(|(series, _)| is_random(series));
    let title = format!("{} over the share of masked heads, by method and repair", metric.label());
    let chart = Chart::new("Methods side by side", file.label(STEM), file.titled(title))
        .note(found.results.base_line())
        .note(file.of_orders())
        .note(repairs(&ranking.repairs))
        .note(
            "shown: importance, the oracle and random orders if they were measured, and the two other methods with the best mean \
             rank over the panels, by the area under the curve; all others are in the tables",
        )
        .note(BANDS)
        .note(has_random.then_some("random: the mean over the orders; its band is the range over the orders, not an interval"))
        .note((!found.others.is_empty()).then_some("curves of the first run that has them"))
        .entries(legend(&all))
        .entries([Entry::line("full model", BASE)])
        .beside(&ranking.repairs, in_words, panel);
    if ranking.repairs.len() > 1 { chart.wide() } else { chart }
}

/// Returns a curve that starts at the full model; `None` for methods that are not shown.
fn drawn_curve(series: &Series, base: f64, best: &[CurveId], criterion: Criterion) -> Option<Curve> {
    let place = best.iter().position(|curve| *curve == series.curve);
    let mut drawn = match (series.curve.order, place) {
        _ if series.curve.complement => return None,
        (Order::Random, _) => of_draws(series),
        (Order::Importance | Order::Oracle, _) => curve(series, look(series), criterion),
        (_, Some(place)) => {
            let (color, shape) = BEST[place];
            curve(series, Curve::look(name(series.curve), color, 1.1, Some((shape, 1.4))), criterion)
        }
        _ => return None,
    };
    for piece in &mut drawn.pieces {
        piece.iter_mut().for_each(|point| point.is_worse = false); // nearly all are
        if piece.first().is_some_and(|first| first.x > 0.0) {
            piece.insert(0, Point { x: 0.0, y: base, ends: Some((base, base)), is_worse: false });
        }
    }
    Some(drawn)
}

fn in_words(repair: Repair) -> &'static str {
    match repair {
        Repair::None => "no repair",
        Repair::Mean => "means folded into biases",
        Repair::LeastSquares => "kept heads rescaled",
        Repair::Training => "trained further",
    }
}

/// Returns the mean of random rankings at each step, with the minimum and maximum.
fn of_draws(series: &Series) -> Curve {
    let mut steps = BTreeMap::<usize, Vec<&CurveRow>>::new();
    series.runs.iter().flatten().for_each(|row| steps.entry(row.step).or_default().push(row));
    let point = |rows: &Vec<&CurveRow>| {
        let Draws { mean, range, .. } = Draws::of(rows.iter().map(|row| row.score))?;
        Some(Point { x: share(rows[0]), y: mean, ends: Some(range), is_worse: false })
    };
    let pieces = vec![steps.values().filter_map(point).collect()];
    Curve {
        pieces,
        ..Curve::look(format!("random ({} orders, with range)", series.runs.len()), SILVER, 0.8, None)
    }
}

fn repairs(all: &[Repair]) -> String {
    let about = |repair: &Repair| match repair {
        Repair::None => "none",
        Repair::Mean => "mean: the means of the masked heads' outputs are folded into biases",
        Repair::LeastSquares => {
            "least-squares: kept heads are rescaled so that the output of each module is closest to its output with all heads"
        }
        Repair::Training => {
            "training: all weights are trained further, compared with the full model after the same training (grey there)"
        }
    };
    format!("repairs: {}", all.iter().map(about).collect::<Vec<_>>().join("; "))
}
