//! Methods that choose heads side by side, with repairs. No paper has them all on one model.
use std::collections::BTreeMap;

use charts::chart::{Axis, Chart, Color, Entry, Layer, Panel, Shape, Style};
use charts::palette::{GREEN, ORANGE, PURPLE, SILVER};
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use findings::methods::{Compared, Masked, MethodArea, OverRandom, Recommended, Repaired, is_of_modules};
use findings::pruning::share;
use findings::{Criterion, Draws, LeftOut, Methods, Result, Series, Speed};
use records::{Cost, CurveId, HeadSet, Order, PruningRow, Repair, Scope, TestedRow};
use stats::Direction;
use stats::areas::{Area, ENOUGH_TRAININGS};
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
        .note((!found.others.is_empty()).then_some("curves of the first training"))
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
        let row = |method: &MethodArea| {
            let cell = |own: &MethodArea| {
                let spread = spread(self.found, &own.area.of_trainings);
                Cell::number(
                    format!("{} ({}){spread}", self.change(&own.area), self.rank(own)),
                    own.area.value,
                )
            };
            let of = |&repair: &Repair| Cell::from(self.of(repair, method.method.curve).map(cell));
            let Cost { forward, backward, updates } = method.cost;
            let costs = [forward, backward].into_iter().chain(has_updates.then_some(updates));
            Row::new(name(method.method.curve), self.repairs.iter().map(of).chain(costs.map(Cell::from)))
        };
        let title = format!(
            "Area under the curve of each method: mean change of {} over the numbers of heads, with 95 % intervals, and rank",
            metric.label()
        );
        let columns = self.repairs.iter().map(|repair| repair.name());
        let costs = ["read forward", "read backward"].into_iter().chain(has_updates.then_some("updates"));
        Table::new("Methods: areas", file.label("methods"), file.titled(title))
            .columns(["Method", "repair"], columns.chain(costs))
            .rows(self.methods().into_iter().map(row))
            .note(repairs(&self.repairs))
            .note(of_trainings(self.found))
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
            .note(ONLY_SEGMENTS)
    }
}

/// Test of areas.
const SWAPS: &str = "by swaps of test segments, where a segment changes sides at all steps together; against random orders by Student's t, \
     whose error comes from the swaps and from how much the orders differ; Holm over the methods";

const ONLY_SEGMENTS: &str = "p-values are about other test segments, not about other trainings";

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
    let optimism = metric.change(optimism);
    let title = format!("Method to use for each share of the heads: {}", metric.label());
    let has_training = compared.recommended.iter().any(|own| own.is_trained);
    Table::new("Methods: recommendation", file.label("methods-recommendation"), file.titled(title))
        .columns(
            ["Heads masked", "models"],
            ["best method", "score", "change", "verdict", "not told apart", "cheaper of these", "random orders"],
        )
        .rows(compared.recommended.iter().map(row))
        .note(of_trainings(found).unwrap_or_else(|| "one training".to_owned()))
        .note(found.results.base_line())
        .note(
            has_training.then_some(
                "with training: changes are from the model that was trained as long with all heads",
            ),
        )
        .note(format!(
            "not told apart: methods, each with each repair, whose score at this share is not significantly worse (p at least {ALPHA}, \
             swaps of test segments, Holm over all of them); empty where there are too few swaps for that"
        ))
        .note("cheaper: the cheapest of these, by segments read, then by updates; repairs are not counted; empty where none costs less")
        .note(format!(
            "random orders: with the same repair, at least {}; sure if p is below {ALPHA} by Student's t over orders and segments",
            Draws::ENOUGH
        ))
        .note(ONLY_SEGMENTS)
        .note(format!(
            "the best is chosen on the segments that score it, which flatters it on average by {} where it is most (bootstrap); the truly \
             best is probably among the best and those not told apart",
            optimism.trim_start_matches('+')
        ))
}

/// `means over 2 trainings, ...`: the sources of intervals, if there are several trainings.
fn of_trainings(found: &Methods) -> Option<String> {
    let number = trainings(found)?;
    let over = if number < ENOUGH_TRAININGS {
        "over segments alone, since trainings are few"
    } else {
        "over segments and trainings"
    };
    Some(format!(
        "means over {number} trainings, intervals {over}; behind them the least and the greatest training"
    ))
}

/// `, +0.12 to +0.19`, if there are several trainings.
fn spread(found: &Methods, changes: &[f64]) -> String {
    let metric = found.results.metric();
    let spread = Draws::of(changes.iter().copied()).filter(|changes| changes.count > 1);
    spread.map_or(String::new(), |found| format!(", {}", range(found.range, |change| metric.change(change))))
}

pub(crate) fn with_training(own: &Recommended) -> &'static str {
    if own.is_trained { "with training" } else { "without training" }
}

/// Cells of a recommendation: the method, its score, change and verdict, others that are as good, and random orders.
pub(crate) fn recommended(found: &Methods, own: &Recommended) -> [Cell; 7] {
    let metric = found.results.metric();
    let change = metric.change(own.change) + &metric.brackets(own.interval.map(|ends| (ends.low, ends.high)));
    let random = own.random.map(|OverRandom { orders, worse, is_sure }| {
        let sure = if is_sure { "" } else { ", not sure" };
        format!("better than {worse} of {orders}{sure}")
    });
    [
        repaired(own.best).into(),
        Cell::number(metric.amount(own.score), own.score),
        Cell::number(change + &spread(found, &own.of_trainings), own.change),
        own.verdict.map(|verdict| verdict.to_string()).into(),
        own.alike.as_ref().map(|alike| format!("{} of {}", alike.len(), own.compared)).into(),
        own.cheapest.map(repaired).into(),
        random.into(),
    ]
}

/// Whole modules beside heads by importance, with what each saves; nothing where no modules were masked.
fn modules_table(found: &Methods, all: &[Masked], speeds: &[Speed]) -> Option<Table> {
    let (file, metric) = (&found.results.file, found.results.metric());
    let timed = all.iter().any(|own| speedup(own, speeds).is_some());
    let has_cache = all.iter().any(|own| own.cache.is_some());
    let percent = |share: f64| Cell::printed(share, tenths);
    let as_light = |own: &Masked| {
        let is_light = |other: &&Masked| is_of_modules(other.row.curve()) && other.cache >= own.cache;
        let found = all.iter().filter(is_light).min_by_key(|other| other.row.masked)?;
        let text = |change: f64| format!("{} %: {}", tenths(share(&found.row)), metric.change(change));
        (!is_of_modules(own.row.curve())).then(|| Cell::printed(found.row.score - own.row.score, text))
    };
    let row = |own: &Masked| {
        let contrast = own.over_importance.as_ref().map(|area| {
            let ends = area.interval.map(|ends| (ends.low, ends.high));
            Cell::number(metric.change(area.value) + &metric.brackets(ends), area.value).marked(is_sure(area))
        });
        let shares = [own.row.masked.into(), own.projections.map(percent).into()];
        let cache = has_cache.then(|| own.cache.map(percent).into());
        let change = own.row.score_delta;
        let score = Cell::number(metric.amount(own.row.score), own.row.score);
        let change = Cell::number(metric.change(change) + &metric.brackets(own.row.delta_interval()), change);
        let scores = [score, change, contrast.into()].into_iter();
        let scores = scores.chain(has_cache.then(|| as_light(own).into()));
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
    let columns = columns.chain(["score", "change", "minus importance"]);
    let columns =
        columns.chain(has_cache.then_some("modules at its cache")).chain(timed.then_some("speedup (%)"));
    let table = Table::new("Methods: modules", file.label("methods-modules"), file.titled(title))
        .columns(["Masked, method", "saved"], columns)
        .rows(all.iter().map(row))
        .mark(format!("p below {ALPHA}, by swaps of segments, adjusted by Holm over all rows"))
        .note(trainings(found).map(|number| {
            format!("scores, changes and savings of the first training; minus importance: the mean over {number} trainings")
        }))
        .note(
            "projections: multiply-adds of queries, keys, values and outputs; keys and values go with all heads that read them",
        )
        .note(has_cache.then_some("cache: bytes of the keys and values of decoders; modules at its cache: the fewest that save at least as \
             much as importance does, and their score minus its score, not tested"))
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
