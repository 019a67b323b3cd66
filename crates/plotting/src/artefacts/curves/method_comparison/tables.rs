//! Tables that compare methods: which to use, areas, contrasts, whole modules, scores.
use std::collections::BTreeMap;

use crate::findings::method_comparison::{
    Compared, Kind, Masked, MethodArea, OverRandom, Recommended, Repaired, SmallestModuleSet,
};
use crate::findings::pruning::share;
use crate::findings::{Criterion, Draws, Methods, Speed};
use charts::table::{Cell, Row, Table};
use records::{Cost, CurveId, CurveRow, HeadSet, Order, Repair, Scope, TestedRow};
use stats::areas::{Area, ENOUGH_RUNS};
use stats::family::ALPHA;
use words::{percent_more, range, tenths};

use super::{name, repaired, repairs};
use crate::view::{SIGNS, judged};

/// Areas after each repair, best first by the first repair.
pub(super) struct Ranking<'a> {
    pub(super) found: &'a Methods,
    pub(super) areas: &'a [MethodArea],
    pub(super) repairs: Vec<Repair>,
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

    /// Returns the two methods with the best mean rank over repairs, except importance, the oracle and random rankings.
    pub(super) fn best_others(&self) -> Vec<CurveId> {
        let is_meant = |curve: &CurveId| {
            !curve.complement && !matches!(curve.order, Order::Importance | Order::Oracle | Order::Random)
        };
        let mut others: Vec<CurveId> =
            self.methods().into_iter().map(|area| area.method.curve).filter(is_meant).collect();
        // methods that were not measured come last
        let rank = |repair, curve| self.of(repair, curve).map_or(self.areas.len(), |area| self.rank(area));
        others.sort_by_key(|&curve| self.repairs.iter().map(|&repair| rank(repair, curve)).sum::<usize>());
        others.truncate(2);
        others
    }

    fn change(&self, area: &Area) -> String {
        let metric = self.found.results.metric();
        let ends = area.interval.map(|ends| (ends.low, ends.high));
        metric.change(area.value) + &metric.brackets(ends)
    }

    /// Tabulates area with interval and rank after each repair, and the cost of each method.
    pub(super) fn table(&self) -> Table {
        let (file, metric) = (&self.found.results.file, self.found.results.metric());
        let has_updates = self.areas.iter().any(|area| area.cost.updates > 0);
        let seconds = |curve: CurveId| self.found.choosing_seconds(curve.order);
        let is_timed = self.areas.iter().any(|area| seconds(area.method.curve).is_some());
        let row = |method: &MethodArea| {
            let cell = |own: &MethodArea| {
                let spread = spread(self.found, &own.area.of_runs);
                Cell::number(
                    format!("{} ({}){spread}", self.change(&own.area), self.rank(own)),
                    own.area.value,
                )
            };
            let of = |&repair: &Repair| Cell::from(self.of(repair, method.method.curve).map(cell));
            let Cost { forward, backward, updates } = method.cost;
            let costs = [forward, backward].into_iter().chain(has_updates.then_some(updates)).map(Cell::from);
            let curve = method.method.curve;
            let time =
                seconds(curve).map(|seconds| Cell::printed(seconds, |seconds| seconds.round().to_string()));
            let costs = costs.chain(is_timed.then(|| time.into()));
            Row::new(name(curve), self.repairs.iter().map(of).chain(costs))
        };
        let title = format!(
            "Area under the curve of each method: mean change in {} over the numbers of heads, with 95% intervals, and rank",
            metric.label()
        );
        let columns = self.repairs.iter().map(|repair| repair.name());
        let costs = ["forward passes", "backward passes"].into_iter().chain(has_updates.then_some("updates"));
        let costs = costs.chain(is_timed.then_some("seconds"));
        Table::new("Methods: areas", file.label("methods"), file.titled(title))
            .columns(["Method", "repair"], columns.chain(costs))
            .rows(self.methods().into_iter().map(row))
            .note(repairs(&self.repairs))
            .note(of_runs(self.found))
            .note("random: the mean over random orders, which are resampled together with the segments")
            .note("passes: over one segment each, to choose the heads")
            .note(is_timed.then_some("seconds: time to choose the heads of all steps, on the machine of that run, which may have been busy; empty if not recorded, such as for oracles, which use the sweep of ablate-one"))
            .note(has_updates.then_some("updates: of gates and other parameters that choose the heads, maximum over the steps"))
            .note(file.of_orders())
    }

    /// Tabulates differences from importance and from random rankings after each repair.
    pub(super) fn contrasts(&self) -> Table {
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

const SWAPS: &str = "by swaps of test segments, each segment at all steps at once; against random orders by Student's t, \
     whose error includes the swaps and the variation between orders; Holm over the methods";

const ONLY_SEGMENTS: &str = "p-values are about other test segments, not about other runs";

fn is_sure(area: &Area) -> bool {
    area.p_value.is_some_and(|p_value| p_value < ALPHA)
}

/// Tabulates the recommended method for each number of heads.
pub(super) fn recommendation(found: &Methods, compared: &Compared) -> Table {
    let (file, metric) = (&found.results.file, found.results.metric());
    let row = |own: &Recommended| {
        Row::new(format!("{}%, {}", tenths(own.percent), with_training(own)), recommended(found, own))
    };
    let optimism = compared.recommended.iter().map(|own| own.optimism).fold(0.0, f64::max);
    let optimism = metric.change(optimism);
    let title = format!("Method to use for each share of the heads: {}", metric.label());
    let has_training = compared.recommended.iter().any(|own| own.kind == Kind::Trained);
    Table::new("Methods: recommendation", file.label("methods-recommendation"), file.titled(title))
        .columns(
            ["Heads masked", "models"],
            ["best method", "score", "change", "verdict", "not told apart", "cheaper of these", "random orders"],
        )
        .rows(compared.recommended.iter().map(row))
        .note(of_runs(found).unwrap_or_else(|| "one run".to_owned()))
        .note(found.results.base_line())
        .note(
            has_training.then_some(
                "with training: changes are from the model with all heads after equally long training",
            ),
        )
        .note(format!(
            "not told apart: methods, with any repair, whose score at this share is not significantly worse (p at least {ALPHA}, \
             swaps of test segments, Holm over all methods and repairs); empty if there are too few swaps"
        ))
        .note("cheaper: the cheapest of these, by forward passes, then by updates; repairs are not counted; empty if none is cheaper")
        .note(format!(
            "random orders: with the same repair, at least {}; sure if p is below {ALPHA} by Student's t over orders and segments",
            Draws::ENOUGH
        ))
        .note(ONLY_SEGMENTS)
        .note(format!(
            "the best method is chosen on the segments that score it, which flatters it by up to {} on average (bootstrap); the truly \
             best method is probably the best one or among those not told apart",
            optimism.trim_start_matches('+')
        ))
}

/// Describes what means and intervals cover, `means over 2 runs, …`; `None` for a single run.
fn of_runs(found: &Methods) -> Option<String> {
    let [number, trained] = Kind::ALL.map(|kind| found.runs(kind).len());
    let most = number.max(trained);
    let over =
        if most < ENOUGH_RUNS { "over segments only, since runs are few" } else { "over segments and runs" };
    let further = format!(" (of models that were trained further, over {trained})");
    let further = if trained == 0 || trained == number { "" } else { &further };
    (most > 1).then(|| {
        format!("means over {number} runs{further}, intervals {over}; then the minimum and maximum over runs")
    })
}

/// Formats the range over several runs: `, +0.12 to +0.19`.
fn spread(found: &Methods, changes: &[f64]) -> String {
    let metric = found.results.metric();
    let spread = Draws::of(changes.iter().copied()).filter(|changes| changes.count > 1);
    spread.map_or(String::new(), |found| format!(", {}", range(found.range, |change| metric.change(change))))
}

pub(crate) fn with_training(own: &Recommended) -> &'static str {
    match own.kind {
        Kind::Trained => "with training",
        Kind::Untrained => "without training",
    }
}

/// Returns the cells of a recommendation: method, score, change, verdict, methods that are as good, cheapest of these, random rankings.
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
        Cell::number(change + &spread(found, &own.of_runs), own.change),
        own.verdict.map(|verdict| verdict.to_string()).into(),
        own.alike.as_ref().map(|alike| format!("{} of {}", alike.len(), own.compared)).into(),
        own.cheapest.map(repaired).into(),
        random.into(),
    ]
}

/// Compares whole modules with heads by importance, and what each saves; `None` if no modules were masked.
pub(super) fn modules_table(found: &Methods, all: &[Masked], speeds: &[Speed]) -> Option<Table> {
    let (file, metric) = (&found.results.file, found.results.metric());
    let number = found.runs(Kind::Untrained).len();
    let timed = all.iter().any(|own| speedup(own, speeds).is_some());
    let has_cache = all.iter().any(|own| own.cache.is_some());
    let percent = |share: f64| Cell::printed(share, tenths);
    let marked = |area: &Area, text: String| {
        let ends = area.interval.map(|ends| (ends.low, ends.high));
        let text = text + &metric.change(area.value) + &metric.brackets(ends);
        Cell::number(text, area.value).marked(is_sure(area))
    };
    let smallest = |modules: &Option<SmallestModuleSet>| {
        let modules = modules.as_ref()?;
        Some(marked(&modules.over_heads, format!("{}%: ", tenths(modules.percent))))
    };
    let has_smallest = all.iter().any(|own| own.at_its_projections.is_some());
    let has_smallest_cache = all.iter().any(|own| own.at_its_cache.is_some());
    let row = |own: &Masked| {
        let contrast = own.over_importance.as_ref().map(|area| marked(area, String::new()));
        let shares = [own.row.masked.into(), own.projections.map(percent).into()];
        let cache = has_cache.then(|| own.cache.map(percent).into());
        let change = own.row.score_delta;
        let score = Cell::number(metric.amount(own.row.score), own.row.score);
        let change = Cell::number(metric.change(change) + &metric.brackets(own.row.delta_interval()), change);
        let scores = [score, change, contrast.into()].into_iter();
        let scores = scores
            .chain(has_smallest.then(|| smallest(&own.at_its_projections).into()))
            .chain(has_smallest_cache.then(|| smallest(&own.at_its_cache).into()));
        let speed = timed.then(|| speedup(own, speeds).into());
        let label = format!("{}%: {}", tenths(share(&own.row)), name(own.row.curve()));
        Row::new(label, shares.into_iter().chain(cache).chain(scores).chain(speed))
    };
    let title = format!(
        "Whole attention modules compared with heads by importance, without repair: {}",
        metric.label()
    );
    let columns =
        ["heads", "projections saved (%)"].into_iter().chain(has_cache.then_some("cache saved (%)"));
    let columns = columns.chain(["score", "change", "minus importance"]);
    let columns = columns
        .chain(has_smallest.then_some("modules, same projections"))
        .chain(has_smallest_cache.then_some("modules, same cache"));
    let columns = columns.chain(timed.then_some("speedup (%)"));
    let table = Table::new("Methods: modules", file.label("methods-modules"), file.titled(title))
        .columns(["Masked, method", "saved"], columns)
        .rows(all.iter().map(row))
        .mark(format!("p below {ALPHA}, by swaps of segments, adjusted by Holm over all rows"))
        .note((number > 1).then(|| {
            format!("scores, changes and savings of the first run; minus importance: the mean over {number} runs")
        }))
        .note(
            "projections: multiply-adds of queries, keys, values and outputs; the cost of keys and values is avoided only if all heads that read them are masked",
        )
        .note(has_cache.then_some("cache: bytes of the keys and values of decoders"))
        .note((has_smallest || has_smallest_cache).then_some(
            "modules, same projections or cache: the fewest modules that save at least as much as importance, and their score minus the score of \
             importance; empty if both mask equally many heads, or if importance saves nothing",
        ))
        .note(timed.then_some("speedup: of the model without the heads, minimum to maximum over batch sizes"));
    (!all.is_empty()).then_some(table)
}

/// Formats the speedup of a model without these heads, `+12.6 to +38.5`; `None` if it was not timed.
fn speedup(own: &Masked, speeds: &[Speed]) -> Option<String> {
    let heads = own.row.masked_heads.parse::<HeadSet>().ok()?;
    let rows = speeds.iter().flat_map(|speed| &speed.rows);
    let rows = rows.filter(|row| row.removed_heads.parse::<HeadSet>().is_ok_and(|removed| removed == heads));
    Draws::of(rows.map(|row| row.ratio)).map(|ratios| range(ratios.range, percent_more))
}

/// Tabulates the score after each repair for each number of heads and method, with verdicts.
pub(super) fn steps_table(found: &Methods, scope: Scope, criterion: Criterion) -> Table {
    let (file, metric) = (&found.results.file, found.results.metric());
    let judge = found.results.judge(criterion);
    let methods = found.methods(scope);
    let of_step = |repair: Repair, method: CurveId, step: usize| -> Vec<&CurveRow> {
        let runs = found.find(repair, method).into_iter().flat_map(|series| &series.runs);
        runs.flatten().filter(|row| row.step == step).collect()
    };
    let cell = |rows: Vec<&CurveRow>| match rows[..] {
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
            Row::new(format!("{}%: {}", tenths(share), name(method)), cells)
        })
    });
    let title = format!("{} with some heads masked, by method and repair", metric.label());
    Table::new("Methods: scores", file.label("methods-scores"), file.titled(title))
        .columns(["Masked, method", "repair"], repairs.iter().map(|repair| repair.name().to_owned()))
        .rows(rows)
        .note(found.results.base_line())
        .note(SIGNS)
        .note((!found.others.is_empty()).then_some("scores of the first run that has them"))
        .note("random: the mean over random orders, without a verdict")
        .note(judge.of_verdicts())
}
