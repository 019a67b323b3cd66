//! Methods that choose heads side by side, with repairs. No paper has them all on one model.
use std::collections::BTreeMap;

use charts::chart::{Axis, Chart, Panel};
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use findings::methods::MethodArea;
use findings::{Criterion, Methods, Result, Series};
use records::{CurveId, Order, PruningRow, Repair, Scope};
use stats::areas::Area;
use stats::family::ALPHA;
use words::tenths;

use super::curve::{Curve, base_entry, over_base, scores};
use super::pruning_curves::{complement_entry, curve, is_random, legend, look};
use super::pruning_table::COMPLEMENT;
use super::{Asked, BANDS, judged};

pub(crate) const STEM: &str = "compare-methods";

/// A figure and tables for each set of heads that methods choose from.
pub fn sheets(found: &Methods, asked: &Asked<'_>) -> Result<Vec<Sheet>> {
    let sheet = |scope: Scope| {
        let stem = if scope == Scope::All { STEM.to_owned() } else { format!("{STEM}-{scope}") };
        let areas = found.areas(scope)?;
        let ranking = Ranking { found, areas: &areas, repairs: found.repairs.keys().copied().collect() };
        let tables = [ranking.table(), ranking.contrasts(), steps_table(found, scope, asked.criterion)];
        Ok(super::sheet(&found.results.file, &stem, figure(found, scope, asked.criterion), tables))
    };
    found.scopes().into_iter().map(sheet).collect()
}

fn name(method: CurveId) -> String {
    let complement = if method.complement { "complement of " } else { "" };
    let order = match method.order {
        Order::By(measure) => measure.entry().label.unwrap_or(measure.name()),
        order => order.name(),
    };
    format!("{complement}{order}")
}

/// Small multiples by repair, with a line for each method.
fn figure(found: &Methods, scope: Scope, criterion: Criterion) -> Chart {
    let (file, metric, base) = (&found.results.file, found.results.metric(), found.results.base());
    let drawn = |repair: Repair| -> Vec<(&Series, Curve)> {
        let own = found.repairs[&repair].series.iter().filter(|series| series.curve.attention == scope);
        own.map(|series| (series, curve(series, look(series), criterion))).collect()
    };
    let repairs: Vec<Repair> = found.repairs.keys().copied().collect();
    let all: Vec<(&Series, Curve)> = repairs.iter().flat_map(|&repair| drawn(repair)).collect();
    let y = scores(&metric, all.iter().flat_map(|(_, curve)| curve.heights()).chain([base]));
    let panel = |repair: &Repair| {
        let curves: Vec<Curve> = drawn(*repair).into_iter().map(|(_, curve)| curve).collect();
        let layers = over_base(base, &curves.iter().collect::<Vec<_>>());
        Panel::new([Axis::percent("heads masked (%)"), y.clone()], 150.0, layers)
    };
    let has = |is: fn(&Series) -> bool| all.iter().any(|(series, _)| is(series));
    let title = format!("{} over the share of masked heads, by method and repair", metric.label());
    Chart::new("Methods side by side", file.label(STEM), file.titled(title))
        .note(found.results.base_line())
        .note(file.of_orders())
        .note(REPAIRS)
        .note(BANDS)
        .note(has(is_random).then_some("thin lines: single random orders"))
        .note(
            has(|series| series.curve.complement)
                .then(|| format!("dashed, complement of importance: {COMPLEMENT}")),
        )
        .entries(legend(&all))
        .entries(complement_entry(has(|series| series.curve.complement)))
        .entries([base_entry("base", &metric, base)])
        .beside(&repairs, panel)
}

const REPAIRS: &str = "repairs of what is left: none; mean: mean contexts folded into biases; least-squares: kept heads multiplied, so \
     that each module writes what is closest to what it wrote";

/// The areas after a repair, best first; methods stand in the order of the first.
struct Ranking<'a> {
    found: &'a Methods,
    areas: &'a [MethodArea],
    repairs: Vec<Repair>,
}

impl Ranking<'_> {
    fn of(&self, repair: Repair, method: CurveId) -> Option<&MethodArea> {
        self.areas.iter().find(|one| one.repair == repair && one.curve == method)
    }

    fn rank(&self, area: &MethodArea) -> usize {
        let direction = self.found.results.metric().direction();
        let is_better = |other: &&MethodArea| {
            other.repair == area.repair && direction.is_better(other.area.value, area.area.value)
        };
        1 + self.areas.iter().filter(is_better).count()
    }

    fn methods(&self) -> Vec<&MethodArea> {
        let mut methods: Vec<_> = self.areas.iter().filter(|area| area.repair == self.repairs[0]).collect();
        methods.sort_by_key(|area| self.rank(area));
        methods
    }

    fn change(&self, area: &Area) -> String {
        let metric = self.found.results.metric();
        let ends = area.interval.map(|ends| (ends.low, ends.high));
        metric.change(area.value) + &metric.brackets(ends)
    }

    /// Area with interval and rank after each repair, and what the method costs.
    fn table(&self) -> Table {
        let (file, metric) = (&self.found.results.file, self.found.results.metric());
        let row = |method: &MethodArea| {
            let cell = |own: &MethodArea| {
                let text = format!("{} ({})", self.change(&own.area), self.rank(own));
                Cell::number(text, own.area.value)
            };
            let areas =
                self.repairs.iter().map(|&repair| Cell::from(self.of(repair, method.curve).map(cell)));
            Row::new(name(method.curve), areas.chain(method.passes.map(Cell::from)))
        };
        let title = format!(
            "Area under the curve of each method: mean change of {} over the numbers of heads, with 95 % intervals over segments, \
             and rank",
            metric.label()
        );
        let columns = self.repairs.iter().map(|repair| repair.name());
        Table::new("Methods: areas", file.label("methods"), file.titled(title))
            .columns(["Method", "repair"], columns.chain(["read forward", "read backward"]))
            .rows(self.methods().into_iter().map(row))
            .note(REPAIRS)
            .note("random: the mean of its orders, which are drawn anew with the segments")
            .note("read: segments that the model reads to order the heads, and of these those whose loss is followed backward")
            .note(file.of_orders())
    }

    /// Differences from importance and from random orders after each repair.
    fn contrasts(&self) -> Table {
        let (file, metric) = (&self.found.results.file, self.found.results.metric());
        let row = |method: &MethodArea| {
            let cell = |area: Area| Cell::number(self.change(&area), area.value).marked(area.p_value < ALPHA);
            let of_repair = |&repair: &Repair| {
                let own = self.of(repair, method.curve);
                let contrasts = own.map_or([None, None], |own| [own.over_importance, own.over_random]);
                contrasts.map(|area| Cell::from(area.map(cell)))
            };
            Row::new(name(method.curve), self.repairs.iter().flat_map(of_repair))
        };
        let columns =
            |repair: &Repair| ["importance", "random"].map(|other| format!("{repair}: minus {other}"));
        let title =
            format!("Areas of methods compared with importance and with random orders: {}", metric.label());
        Table::new("Methods: contrasts", file.label("methods-contrasts"), file.titled(title))
            .columns(["Method", "repair"], self.repairs.iter().flat_map(columns))
            .rows(self.methods().into_iter().map(row))
            .mark(format!(
                "p of the bootstrap below {ALPHA}, adjusted by Holm over the methods, for other test segments and random orders, not for \
                 other trainings"
            ))
    }
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
        .filter(|row| row.attention == scope)
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
        .note("random: the mean of its orders, without a verdict")
        .note(judge.of_verdicts())
}
