//! Methods that choose heads side by side, with repairs. No paper has them all on one model.
use std::collections::BTreeMap;

use charts::chart::{Axis, Chart, Color, Entry, Layer, Panel, Shape, Style};
use charts::palette::{GREEN, ORANGE, PURPLE, SILVER};
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use findings::methods::{Compared, Cost, Masked, MethodArea, Recommended, Repaired, is_of_modules};
use findings::pruning::share;
use findings::{Criterion, Draws, LeftOut, Methods, Result, Series, Speed};
use records::{CurveId, HeadSet, Order, PruningRow, Repair, Scope, TestedRow};
use stats::areas::Area;
use stats::family::ALPHA;
use words::{percent_more, range, tenths};

use super::curve::{Curve, Point, base_entry, over_base, scores};
use super::pruning_curves::{complement_entry, curve, is_random, look};
use super::pruning_table::COMPLEMENT;
use super::{Asked, BANDS, judged};

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

/// Number of trainings, if there are several.
fn trainings(found: &Methods) -> Option<usize> {
    (!found.others.is_empty()).then_some(found.others.len() + 1)
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
    let y = scores(&metric, all.iter().flat_map(|(_, curve)| curve.heights()).chain([base]));
    let panel = |repair: &Repair| {
        let mut curves: Vec<Curve> = drawn(*repair).into_iter().map(|(_, curve)| curve).collect();
        curves.sort_by_key(|curve| curve.mark.is_none()); // those with marks in front
        let base = found.repairs[repair].results.base();
        let mut layers = over_base(base, &curves.iter().collect::<Vec<_>>());
        let best = ranking.best(*repair).map(|best| (50.0, format!("best: {}", name(best)), GREEN));
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
        .note("best: by the area under the curve, of all but importance, the oracle, random orders and whole modules")
        .note(BANDS)
        .note(has(is_random).then_some("random: the mean of the orders, with the least and the greatest score"))
        .note(has_complement.then(|| format!("dashed, complement of importance: {COMPLEMENT}")))
        .note((!found.others.is_empty()).then_some("curves of the first training"))
        .entries(entries)
        .entries(others.then(|| Entry::line("other methods", Style::line(SILVER, FAINT))))
        .entries(complement_entry(has_complement))
        .entries([base_entry("base", &metric, base)])
        .beside(&ranking.repairs, panel);
    if ranking.repairs.len() > 1 { chart.wide() } else { chart }
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
        _ if is_best => Curve::look("best", GREEN, 1.1, Some((Shape::Triangle, 1.4))),
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

/// The areas after a repair, best first; methods stand in the order of the first.
struct Ranking<'a> {
    found: &'a Methods,
    areas: &'a [MethodArea],
    repairs: Vec<Repair>,
}

impl Ranking<'_> {
    fn of(&self, repair: Repair, curve: CurveId) -> Option<&MethodArea> {
        self.areas.iter().find(|one| one.method == Repaired { repair, curve })
    }

    fn rank(&self, area: &MethodArea) -> usize {
        let direction = self.found.results.metric().direction();
        let is_better = |other: &&MethodArea| {
            other.method.repair == area.method.repair
                && direction.is_better(other.area.value, area.area.value)
        };
        1 + self.areas.iter().filter(is_better).count()
    }

    fn methods(&self) -> Vec<&MethodArea> {
        let is_first = |area: &&MethodArea| area.method.repair == self.repairs[0];
        let mut methods: Vec<_> = self.areas.iter().filter(is_first).collect();
        methods.sort_by_key(|area| self.rank(area));
        methods
    }

    /// The best method after a repair that does not stand out anyway.
    fn best(&self, repair: Repair) -> Option<CurveId> {
        let is_meant = |area: &&MethodArea| {
            let Repaired { repair: own, curve } = area.method;
            let stands_out = matches!(curve.order, Order::Importance | Order::Oracle | Order::Random);
            own == repair && !curve.complement && !stands_out && !is_of_modules(curve)
        };
        let best = self.areas.iter().filter(is_meant).min_by_key(|area| self.rank(area));
        best.map(|area| area.method.curve)
    }

    fn change(&self, area: &Area) -> String {
        let metric = self.found.results.metric();
        let ends = area.interval.map(|ends| (ends.low, ends.high));
        metric.change(area.value) + &metric.brackets(ends)
    }

    /// Area with interval and rank after each repair, and what the method costs.
    fn table(&self) -> Table {
        let (file, metric) = (&self.found.results.file, self.found.results.metric());
        let has_updates = self.areas.iter().any(|area| area.cost.updates > 0);
        let trainings = trainings(self.found);
        let row = |method: &MethodArea| {
            let cell = |own: &MethodArea| {
                let spread = Draws::of(own.area.of_trainings.iter().copied()).filter(|_| trainings.is_some());
                let spread =
                    spread.map(|found| format!(", {}", range(found.range, |area| metric.change(area))));
                let text = format!("{} ({})", self.change(&own.area), self.rank(own));
                Cell::number(text + &spread.unwrap_or_default(), own.area.value)
            };
            let of = |&repair: &Repair| Cell::from(self.of(repair, method.method.curve).map(cell));
            let Cost { forward, backward, updates } = method.cost;
            let costs = [forward, backward].into_iter().chain(has_updates.then_some(updates));
            Row::new(name(method.method.curve), self.repairs.iter().map(of).chain(costs.map(Cell::from)))
        };
        let over = if trainings.is_some() { "segments and trainings" } else { "segments" };
        let title = format!(
            "Area under the curve of each method: mean change of {} over the numbers of heads, with 95 % intervals over {over}, and \
             rank",
            metric.label()
        );
        let columns = self.repairs.iter().map(|repair| repair.name());
        let costs = ["read forward", "read backward"].into_iter().chain(has_updates.then_some("updates"));
        Table::new("Methods: areas", file.label("methods"), file.titled(title))
            .columns(["Method", "repair"], columns.chain(costs))
            .rows(self.methods().into_iter().map(row))
            .note(repairs(&self.repairs))
            .note(trainings.map(|number| {
                format!("means over {number} trainings, behind the rank the least and the greatest area")
            }))
            .note("random: the mean of its orders, which are drawn anew with the segments")
            .note("read: segments that the model reads to choose the heads, and of these those whose loss is followed backward")
            .note(has_updates.then_some("updates: of gates and other parameters that choose the heads, of all steps the most"))
            .note(file.of_orders())
    }

    /// Differences from importance and from random orders after each repair.
    fn contrasts(&self) -> Table {
        let (file, metric) = (&self.found.results.file, self.found.results.metric());
        let row = |method: &MethodArea| {
            let cell = |area: &Area| Cell::number(self.change(area), area.value).marked(is_sure(area));
            let of_repair = |&repair: &Repair| {
                let own = self.of(repair, method.method.curve);
                let contrasts = own
                    .map_or([None, None], |own| [&own.over_importance, &own.over_random].map(Option::as_ref));
                contrasts.map(|area| Cell::from(area.map(cell)))
            };
            Row::new(name(method.method.curve), self.repairs.iter().flat_map(of_repair))
        };
        let columns =
            |repair: &Repair| ["importance", "random"].map(|other| format!("{repair}: minus {other}"));
        let title =
            format!("Areas of methods compared with importance and with random orders: {}", metric.label());
        Table::new("Methods: contrasts", file.label("methods-contrasts"), file.titled(title))
            .columns(["Method", "repair"], self.repairs.iter().flat_map(columns))
            .rows(self.methods().into_iter().map(row))
            .mark(format!("p below {ALPHA}: {SWAPS}"))
    }
}

/// Tests of areas and scores.
const SWAPS: &str = "by swaps of segments, all steps of a method together; against random orders by Student's t, whose error is that of \
     swaps and of the draws; adjusted by Holm over the methods; for other test segments, not for other trainings";

fn is_sure(area: &Area) -> bool {
    area.p_value.is_some_and(|p_value| p_value < ALPHA)
}

/// The method to use at each number of heads.
fn recommendation(found: &Methods, compared: &Compared) -> Table {
    let (file, metric) = (&found.results.file, found.results.metric());
    let row = |own: &Recommended| {
        Row::new(format!("{} %, {}", tenths(own.percent), with_training(own)), recommended(found, own))
    };
    let optimism = compared.recommended.iter().map(|own| own.optimism).fold(0.0, f64::max);
    let title = format!("Method to use for each share of the heads: {}", metric.label());
    let has_training = compared.recommended.iter().any(|own| own.is_trained);
    Table::new("Methods: recommendation", file.label("methods-recommendation"), file.titled(title))
        .columns(
            ["Heads masked", "models"],
            ["best method", "score", "change", "verdict", "not told apart", "cheaper of these"],
        )
        .rows(compared.recommended.iter().map(row))
        .note(found.results.base_line())
        .note(
            has_training.then_some(
                "with training: changes are from the model that was trained as long with all heads",
            ),
        )
        .note(format!("not told apart: not significantly worse, p at least {ALPHA}: {SWAPS}"))
        .note("cheaper: the cheapest of these but random orders, by segments read, then by updates; none where the best is")
        .note(format!(
            "the best is chosen on the segments that score it, which flatters it by at most {} (bootstrap)",
            metric.change(optimism).trim_start_matches('+')
        ))
}

pub(crate) fn with_training(own: &Recommended) -> &'static str {
    if own.is_trained { "with training" } else { "without training" }
}

/// Cells of a recommendation: the method, its score, change and verdict, and others that are as good.
pub(crate) fn recommended(found: &Methods, own: &Recommended) -> [Cell; 6] {
    let metric = found.results.metric();
    let change = metric.change(own.change) + &metric.brackets(own.interval.map(|ends| (ends.low, ends.high)));
    let has_random = own.alike.iter().any(|other| other.curve.order == Order::Random);
    let random = if has_random { ", random too" } else { "" };
    [
        repaired(own.best).into(),
        Cell::number(metric.amount(own.score), own.score),
        Cell::number(change, own.change),
        own.verdict.map(|verdict| verdict.to_string()).into(),
        format!("{} of {}{random}", own.alike.len(), own.compared).into(),
        own.cheapest.map(repaired).into(),
    ]
}

/// Whole modules beside heads by importance, with what each saves; nothing where no modules were masked.
fn modules_table(found: &Methods, all: &[Masked], speeds: &[Speed]) -> Option<Table> {
    let (file, metric) = (&found.results.file, found.results.metric());
    let timed = all.iter().any(|own| speedup(own, speeds).is_some());
    let has_cache = all.iter().any(|own| own.cache.is_some());
    let percent = |share: f64| Cell::printed(share, tenths);
    let row = |own: &Masked| {
        let contrast = own.over_importance.as_ref().map(|area| {
            let ends = area.interval.map(|ends| (ends.low, ends.high));
            Cell::number(metric.change(area.value) + &metric.brackets(ends), area.value).marked(is_sure(area))
        });
        let shares = [own.row.masked.into(), percent(own.projections)];
        let cache = has_cache.then(|| own.cache.map(percent).into());
        let score = metric.amount(own.row.score) + &metric.brackets(own.row.delta_interval());
        let scores = [Cell::number(score, own.row.score), contrast.into()];
        let speed = timed.then(|| speedup(own, speeds).into());
        let label = format!("{} %: {}", tenths(share(&own.row)), name(own.row.curve()));
        Row::new(label, shares.into_iter().chain(cache).chain(scores).chain(speed))
    };
    let title = format!(
        "Whole attention modules compared with heads by importance, not repaired: {}",
        metric.label()
    );
    let columns =
        ["heads", "projections saved (%)"].into_iter().chain(has_cache.then_some("cache saved (%)"));
    let columns = columns.chain(["score", "minus importance"]).chain(timed.then_some("speedup (%)"));
    let table = Table::new("Methods: modules", file.label("methods-modules"), file.titled(title))
        .columns(["Masked, method", "saved"], columns)
        .rows(all.iter().map(row))
        .mark(format!("p below {ALPHA}, by swaps of segments, adjusted by Holm over all rows"))
        .note(
            "projections: multiply-adds of queries, keys, values and outputs; keys and values go with all heads that read them",
        )
        .note(has_cache.then_some("cache: bytes of the keys and values of decoders"))
        .note(timed.then_some("speedup: of the model without the heads, from the least to the greatest over batch sizes"));
    (!all.is_empty()).then_some(table)
}

/// `+12.6 to +38.5`: how much faster the model is without the same heads, where that was timed.
fn speedup(own: &Masked, speeds: &[Speed]) -> Option<String> {
    let heads = own.row.masked_heads.parse::<HeadSet>().ok()?;
    let rows = speeds.iter().flat_map(|speed| &speed.rows);
    let rows = rows.filter(|row| row.removed_heads.parse::<HeadSet>().is_ok_and(|removed| removed == heads));
    Draws::of(rows.map(|row| row.ratio)).map(|ratios| range(ratios.range, percent_more))
}

/// A row for each number of heads and method: the score after each repair, with verdicts.
fn steps_table(found: &Methods, scope: Scope, criterion: Criterion) -> Table {
    let (file, metric) = (&found.results.file, found.results.metric());
    let judge = found.results.judge(criterion);
    let methods = found.methods(scope);
    let of_step = |repair: Repair, method: CurveId, step: usize| -> Vec<&PruningRow> {
        let runs = found.find(repair, method).into_iter().flat_map(|series| &series.runs);
        runs.flatten().filter(|row| row.step == step).collect()
    };
    let cell = |rows: Vec<&PruningRow>| match rows[..] {
        [] => Cell::default(),
        [row] => judged(Cell::number(metric.amount(row.score), row.score), judge.verdict(row)),
        _ => {
            let mean = rows.iter().map(|row| row.score).sum::<f64>() / rows.len() as f64;
            Cell::number(metric.amount(mean), mean)
        }
    };
    let repairs: Vec<Repair> = found.repairs.keys().copied().collect();
    let shares: BTreeMap<usize, f64> = found
        .results
        .rows
        .iter()
        .filter(|row| row.attention == scope && row.masked > 0)
        .map(|row| (row.step, 100.0 * row.masked as f64 / row.heads as f64))
        .collect();
    let rows = shares.iter().flat_map(|(&step, &share)| {
        let (repairs, of_step, cell) = (&repairs, &of_step, &cell);
        methods.iter().map(move |&method| {
            let cells = repairs.iter().map(|&repair| cell(of_step(repair, method, step)));
            Row::new(format!("{} %: {}", tenths(share), name(method)), cells)
        })
    });
    let title = format!("{} with some heads masked, by method and repair", metric.label());
    Table::new("Methods: scores", file.label("methods-scores"), file.titled(title))
        .columns(["Masked, method", "repair"], repairs.iter().map(|repair| repair.name().to_owned()))
        .rows(rows)
        .note(found.results.base_line())
        .note(super::SIGNS)
        .note((!found.others.is_empty()).then_some("scores of the first training"))
        .note("random: the mean of its orders, without a verdict")
        .note(judge.of_verdicts())
}
