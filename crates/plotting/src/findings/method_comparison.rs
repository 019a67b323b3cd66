//! Rankings and searches compared at equal numbers of masked heads: the rows of `compare-methods`.
mod comparison;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use heads::{HeadLayout, LayerShape};
use records::{Attention, Cost, CurveId, CurveRow, HeadSet, Order, Repair, Scope, Verdict};
use stats::areas::Area;
use stats::bootstrap::Interval;

use crate::findings::error::{LeftOut, Result, faulty};
use crate::findings::pruning::{Pruning, Series};
use crate::findings::replicates::{check, other_runs};
use crate::findings::results::{Results, distinct, extent};
use crate::findings::source::{ResultFile, experiment};

/// Results of `compare-methods` for one setup.
#[derive(Debug)]
pub struct Methods {
    /// All rows of the first run.
    pub results: Results<CurveRow>,
    /// Curves after each repair, from the first run that has it. Fine-tuned models are compared with the fine-tuned baseline.
    pub repairs: BTreeMap<Repair, Pruning>,
    /// All rows of other runs.
    pub others: Vec<Results<CurveRow>>,
}

/// Models that are compared with each other, since they have similar costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Models without repair, or repaired without training
    Untrained,
    /// Fine-tuned models
    Trained,
}

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Untrained, Self::Trained];

    /// Returns the kind of models that a repair makes.
    pub fn of(repair: Repair) -> Self {
        if repair == Repair::Training { Self::Trained } else { Self::Untrained }
    }
}

/// Method: a ranking or search, and the repair of masked models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repaired {
    /// The repair.
    pub repair: Repair,
    /// Its curve, without the seed of a random ranking.
    pub curve: CurveId,
}

/// Area under a method's curve: the mean effect over its steps, compared with other methods after equal repair.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodArea {
    /// The method.
    pub method: Repaired,
    /// The area, averaged over random rankings; after training, relative to the fine-tuned baseline.
    pub area: Area,
    /// Difference from importance, with p adjusted by Holm (1979) over the methods; `None` for importance.
    pub over_importance: Option<Area>,
    /// Difference from random rankings, adjusted likewise; `None` with fewer than [`Draws::ENOUGH`].
    pub over_random: Option<Area>,
    /// Maximum cost of choosing the heads over all steps.
    pub cost: Cost,
}

/// The method recommended for one number of heads.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommended {
    /// Share of the heads that are masked, in percent.
    pub percent: f64,
    /// Kind of models that the best is selected from.
    pub kind: Kind,
    /// Method with the best score, excluding complements and random rankings.
    pub best: Repaired,
    /// Score of the best method, averaged over runs.
    pub score: f64,
    /// Effect relative to the full model or, after training, to the fine-tuned baseline, averaged over runs.
    pub change: f64,
    /// Effect in each run.
    pub of_runs: Vec<f64>,
    /// 95% interval of the effect.
    pub interval: Option<Interval>,
    /// Verdict on the effect.
    pub verdict: Option<Verdict>,
    /// Number of other methods that it is compared with; each repair counts separately.
    pub compared: usize,
    /// Methods not significantly worse than the best, cheapest first (Holm-adjusted randomisation tests). `None` with too few swaps.
    pub alike: Option<Vec<Repaired>>,
    /// Cheapest of `alike`, by passes, then by updates; `None` if not cheaper than the best.
    pub cheapest: Option<Repaired>,
    /// Comparison with random rankings after equal repair; `None` with fewer than [`Draws::ENOUGH`].
    pub random: Option<OverRandom>,
    /// Optimism of selecting the best on the segments that score it, averaged over resamples.
    pub optimism: f64,
}

/// A method compared with random rankings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverRandom {
    /// Number of random rankings.
    pub orders: usize,
    /// Number of random rankings with a worse score.
    pub worse: usize,
    /// True if the method is significantly better than their mean, without adjustment.
    pub is_sure: bool,
}

/// Whole modules, or heads by importance, masked without repair.
#[derive(Debug, Clone, PartialEq)]
pub struct Masked {
    /// The step in the first run.
    pub row: CurveRow,
    /// Share of projection multiply-adds saved, in percent: queries and outputs of each masked head, keys and values once all heads of a
    /// group are masked. QKᵀ and the weighted sums of values are not counted. `None` if some heads are masked in no row, so that the
    /// model's shape is unknown.
    pub projections: Option<f64>,
    /// Share of the key-value cache saved, in percent of bytes; `None` without a decoder or if the shape is unknown.
    pub cache: Option<f64>,
    /// Difference from importance at equal numbers of heads, with p adjusted by Holm (1979) over all rows; `None` for importance.
    pub over_importance: Option<Area>,
    /// For heads by importance: the smallest set of modules that saves at least as many projections; `None` if it has equally many heads.
    pub at_its_projections: Option<SmallestModuleSet>,
    /// Like `at_its_projections`, for the cache.
    pub at_its_cache: Option<SmallestModuleSet>,
}

/// Smallest set of whole modules that saves at least as much as heads.
#[derive(Debug, Clone, PartialEq)]
pub struct SmallestModuleSet {
    /// Share of the heads in these modules, in percent.
    pub percent: f64,
    /// Score with the modules masked minus score with the heads masked, with p adjusted as in [`Masked`].
    pub over_heads: Area,
}

/// Comparisons of all methods on a set of heads.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Areas under the curves after each repair.
    pub areas: Vec<MethodArea>,
    /// For each number of heads, without training and, if measured, with training.
    pub recommended: Vec<Recommended>,
    /// Heads by importance and whole modules at each step; empty if no whole modules were masked.
    pub modules: Vec<Masked>,
}

impl Methods {
    /// Reads a file of `compare-methods` and the corresponding files of other runs.
    pub fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Self> {
        let results = Results::<CurveRow>::read(file)?;
        let files = other_runs(&results.file, experiment::METHODS)?;
        let mut found = Self { results, repairs: BTreeMap::new(), others: Vec::new() };
        for file in files {
            let other = check(&found.results.file, &file).and_then(|()| Results::read(file));
            found.others.extend(left_out.keep(other.and_then(|other| found.with_all_steps(other))));
        }
        found.repairs = found.curves(left_out);
        Ok(found)
    }

    /// Returns the runs that have models of a kind, in order.
    pub fn runs(&self, kind: Kind) -> Vec<&Results<CurveRow>> {
        let all = std::iter::once(&self.results).chain(&self.others);
        all.filter(|results| results.rows.iter().any(|row| Kind::of(row.repair()) == kind)).collect()
    }

    /// Returns the curves of the first run that has models of each kind.
    fn curves(&self, left_out: &mut LeftOut) -> BTreeMap<Repair, Pruning> {
        let of_kind = |kind| {
            let first = self.runs(kind).into_iter().next();
            first.map(|first| Pruning::by_repair(first, |repair| Kind::of(repair) == kind, left_out))
        };
        Kind::ALL.into_iter().filter_map(of_kind).flatten().collect()
    }

    /// Refuses a run that lacks a curve or step of the first run with models of that kind.
    fn with_all_steps(&self, other: Results<CurveRow>) -> Result<Results<CurveRow>> {
        let is_whole = |kind| {
            let (own, first) = (steps(&other, kind), self.runs(kind));
            let first = first.first().map(|first| steps(first, kind)).unwrap_or_default();
            own.is_empty() || first.iter().all(|(curve, steps)| own.get(curve) == Some(steps))
        };
        let fault = "lacks curves or steps of the first run: run `compare-methods` to its end";
        let is_kept = Kind::ALL.into_iter().all(is_whole);
        if is_kept { Ok(other) } else { Err(faulty(&other.file.path, fault)) }
    }

    /// Returns the sets of heads to choose from.
    pub fn scopes(&self) -> Vec<Scope> {
        distinct(self.results.rows.iter().map(|row| row.attention))
    }

    /// Returns the methods on these heads, in legend order.
    pub fn methods(&self, scope: Scope) -> Vec<CurveId> {
        let series = self.repairs.values().flat_map(|repaired| &repaired.series);
        distinct(series.map(|series| series.curve).filter(|curve| curve.attention == scope))
    }

    /// Returns the curve of a method after a repair.
    pub fn find(&self, repair: Repair, method: CurveId) -> Option<&Series> {
        self.repairs.get(&repair)?.series.iter().find(|series| series.curve == method)
    }

    /// Returns the shares of projections and of the key-value cache saved, as in [`Masked`]; `None` unless rows mask every head.
    fn saved(&self, row: &CurveRow) -> [Option<f64>; 2] {
        let rows = self.results.rows.iter().filter_map(|row| row.masked_heads.parse::<HeadSet>().ok());
        let all: HeadSet = rows.flat_map(|heads| heads.iter().collect::<Vec<_>>()).collect();
        let shape = |attention: Attention| {
            let (layers, heads) = extent(all.iter().filter(|head| head.attention() == attention));
            let key_value_heads = self.results.file.key_value_heads(heads).unwrap_or(heads);
            (attention, LayerShape { layers, heads, key_value_heads, d_head: 1 })
        };
        let layout =
            HeadLayout::new(distinct(all.iter().map(|head| head.attention())).into_iter().map(shape));
        let is_own = |attention| row.attention == Scope::All || row.attention == Scope::One(attention);
        let own = layout.types().filter(|(attention, _)| is_own(*attention));
        let is_whole = own.map(|(_, shape)| shape.layers * shape.heads).sum::<usize>() == row.heads;
        let heads = row.masked_heads.parse::<HeadSet>().ok().filter(|_| is_whole);
        let Some(left) = heads.and_then(|heads| layout.lacking(&heads).ok()) else { return [None; 2] };
        let is_cached = |attention| match attention {
            Attention::EncEnc => false,
            Attention::SelfAttention => self.results.file.is_language(),
            Attention::EncDec | Attention::DecDec => true,
        };
        // query heads and key-value heads
        let count = |layout: &HeadLayout, is_meant: &dyn Fn(Attention) -> bool| -> [f64; 2] {
            let types = layout.types().filter(|(attention, _)| is_meant(*attention));
            let modules = types.flat_map(|(attention, shape)| {
                (0..shape.layers).map(move |layer| layout.module(attention, layer))
            });
            modules.fold([0.0; 2], |[queries, keys], module| {
                [queries + module.kept.len() as f64, keys + module.kept_key_values().len() as f64]
            })
        };
        let gone = |kept: f64, all: f64| (all > 0.0).then(|| 100.0 * (1.0 - kept / all));
        let [of_all, of_left] = [&layout, &left].map(|layout| count(layout, &|_| true));
        let [cached, cached_left] = [&layout, &left].map(|layout| count(layout, &is_cached));
        [gone(of_left[0] + of_left[1], of_all[0] + of_all[1]), gone(cached_left[1], cached[1])]
    }

    /// Returns the rows of all runs at one of the steps that mask heads, counted from 0.
    fn rows(&self, method: Repaired, place: usize) -> impl Iterator<Item = &CurveRow> {
        self.runs(Kind::of(method.repair)).into_iter().filter_map(move |results| {
            let is_own = |row: &&CurveRow| {
                row.masked > 0 && CurveOfMethod::of(row) == CurveOfMethod { method, seed: None }
            };
            let mut own: Vec<&CurveRow> = results.rows.iter().filter(is_own).collect();
            own.sort_by_key(|row| row.step);
            own.get(place).copied()
        })
    }

    /// Returns the seconds a ranking or search took to choose the heads, from the latest execution of the first run that recorded them.
    pub fn choosing_seconds(&self, order: Order) -> Option<f64> {
        let all = std::iter::once(&self.results).chain(&self.others);
        let mut runs =
            all.filter_map(|results| results.file.signature.as_ref()).flat_map(|own| own.runs.iter().rev());
        runs.find_map(|run| run.choosing_seconds.get(order.name()).copied())
    }

    /// Returns the cost of choosing the heads at one step, or the maximum over all steps.
    fn cost(&self, method: Repaired, step: Option<usize>) -> Cost {
        let is_own = |row: &&CurveRow| {
            CurveOfMethod::of(row).method == method
                && row.masked > 0
                && step.is_none_or(|step| row.step == step)
        };
        let first = self.runs(Kind::of(method.repair)).into_iter().next();
        let own: Vec<&CurveRow> = first.into_iter().flat_map(|first| &first.rows).filter(is_own).collect();
        let most = |of: fn(Cost) -> usize| own.iter().map(|row| of(row.cost())).max().unwrap_or_default();
        Cost {
            forward: most(|cost| cost.forward),
            backward: most(|cost| cost.backward),
            updates: most(|cost| cost.updates),
        }
    }

    /// Compares all methods on these heads and leaves out curves that lack a step. Fails if no statistics of segments are stored.
    pub fn compared(&self, scope: Scope) -> Result<Compared> {
        let kinds = self.compare(scope, |comparison| Compared {
            areas: comparison.areas(),
            recommended: comparison.recommended(),
            modules: comparison.modules(),
        })?;
        let mut all = Compared { areas: Vec::new(), recommended: Vec::new(), modules: Vec::new() };
        for of_kind in kinds {
            all.areas.extend(of_kind.areas);
            all.recommended.extend(of_kind.recommended);
            all.modules.extend(of_kind.modules);
        }
        all.recommended.sort_by(by_share);
        Ok(all)
    }

    /// Returns only the recommended methods for each number of heads.
    pub fn recommended(&self, scope: Scope) -> Result<Vec<Recommended>> {
        let mut found = self.compare(scope, |comparison| comparison.recommended())?.concat();
        found.sort_by(by_share);
        Ok(found)
    }
}

/// Orders by share of heads; a stable sort keeps models without training first.
fn by_share(one: &Recommended, other: &Recommended) -> Ordering {
    one.percent.total_cmp(&other.percent)
}

/// One curve of a method; random rankings have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CurveOfMethod {
    method: Repaired,
    seed: Option<u64>,
}

impl CurveOfMethod {
    fn of(row: &CurveRow) -> Self {
        let curve = CurveId { order_seed: None, ..row.curve() };
        Self { method: Repaired { repair: row.repair(), curve }, seed: row.order_seed }
    }
}

/// Returns the steps of each curve for models of a kind.
fn steps(results: &Results<CurveRow>, kind: Kind) -> BTreeMap<CurveOfMethod, BTreeSet<usize>> {
    let mut found = BTreeMap::<CurveOfMethod, BTreeSet<usize>>::new();
    for row in results.rows.iter().filter(|row| Kind::of(row.repair()) == kind) {
        found.entry(CurveOfMethod::of(row)).or_default().insert(row.step);
    }
    found
}

/// Returns true if a method masks whole modules.
pub fn is_of_modules(method: CurveId) -> bool {
    method.order.name().starts_with("modules") && !method.complement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Source;

    /// Synthetic results of runs 2 and 3 of a setup whose run 1 has none.
    fn synthetic() -> Methods {
        let source = Source::subject(&crate::findings::tiny(), "tiny-language");
        let file = source.of_a_run(experiment::METHODS).unwrap();
        assert!(file.path.ends_with("replicate-2/compare-methods.csv"));
        let mut left_out = LeftOut::default();
        let found = Methods::read(file, &mut left_out).unwrap();
        assert!(left_out.faults.is_empty(), "{:?}", left_out.faults);
        found
    }

    fn method(repair: Repair, order: Order) -> Repaired {
        let curve = CurveId { attention: Scope::All, order, order_seed: None, complement: false };
        Repaired { repair, curve }
    }

    /// Importance loses 0.25 and 0.75 nats in one run, 1/8 more in the other, and half of that after training: 2.375 and 2.625, minus 2.25
    /// for the fine-tuned baseline, are 0.25 on average. Five random rankings lose 1 on average.
    #[test]
    fn areas_are_means_over_steps_and_runs() {
        let compared = synthetic().compared(Scope::All).unwrap();
        let area =
            |repair, order| compared.areas.iter().find(|own| own.method == method(repair, order)).unwrap();
        let importance = area(Repair::None, Order::Importance);
        assert_eq!((importance.area.value, &importance.area.of_runs[..]), (0.5625, &[0.5, 0.625][..]));
        assert_eq!(importance.cost, Cost { forward: 2000, backward: 2000, updates: 0 });
        assert!(importance.over_importance.is_none() && importance.area.p_value.is_none());
        let over_random = importance.over_random.as_ref().unwrap();
        assert!((over_random.value + 0.5).abs() < 1e-9, "{over_random:?}");
        assert!(over_random.p_value.unwrap() < 0.1, "{over_random:?}");
        assert_eq!(area(Repair::Training, Order::Importance).area.of_runs, [0.25, 0.375]);
        let subset = area(Repair::Training, Order::Subset);
        assert_eq!(subset.area.of_runs, [0.15625, 0.28125], "(0.125 + 0.5) / 4, and 1/8 more");
        assert_eq!(subset.cost.updates, 125);
    }

    /// Two layers of four query heads and two key-value heads: 12 projections of queries and of keys and values. A module has half of all;
    /// with one group of the other, it is three quarters. Heads 1 and 3 of both layers share keys and values with kept heads.
    #[test]
    fn keys_and_values_are_saved_with_whole_groups_only() {
        let modules = synthetic().compared(Scope::All).unwrap().modules;
        let saved = |own: &Masked| {
            let smallest =
                own.at_its_cache.as_ref().map(|smallest| (smallest.percent, smallest.over_heads.value));
            let (projections, is_tested) = (own.projections.unwrap().round(), own.over_importance.is_some());
            (own.row.masked, own.row.order.name(), projections, own.cache.unwrap(), is_tested, smallest)
        };
        // six heads save half of the cache, like one module of four, which loses as many nats
        let expected = [
            (4, "importance", 33.0, 0.0, false, None),
            (4, "modules", 50.0, 50.0, true, None),
            (6, "importance", 67.0, 50.0, false, Some((50.0, 0.0))),
            (6, "modules", 75.0, 75.0, true, None),
        ];
        assert_eq!(modules.iter().map(saved).collect::<Vec<_>>(), expected);
        assert!(modules.iter().all(|own| own.at_its_projections.is_none()));
    }

    #[test]
    fn without_a_row_that_masks_a_layer_nothing_is_known_to_be_saved() {
        let mut larger = synthetic();
        let row = CurveRow { heads: 12, ..larger.results.rows[0].clone() };
        larger.results.rows.iter_mut().for_each(|row| row.heads = 12);
        assert_eq!(larger.saved(&row), [None; 2]);
    }

    #[test]
    fn a_run_that_lacks_a_curve_is_left_out_by_name() {
        let mut found = synthetic();
        let mut other = found.others.remove(0);
        other.rows.retain(|row| row.order != Order::Oracle || row.masked == 4);
        let fault = found.with_all_steps(other).unwrap_err().to_string();
        assert!(fault.contains("replicate-3/compare-methods.csv` lacks curves"), "{fault}");
    }

    /// The first run has no fine-tuned models: for these the other run is compared alone, by the intervals of its rows.
    #[test]
    fn a_repair_is_compared_in_the_runs_that_have_it() {
        let mut found = synthetic();
        found.results.rows.retain(|row| row.repair() != Repair::Training);
        found.repairs = found.curves(&mut LeftOut::default());
        let recommended = found.recommended(Scope::All).unwrap();
        let runs: Vec<usize> = recommended.iter().map(|own| own.of_runs.len()).collect();
        assert_eq!(runs, [2, 1, 2, 1]);
        let trained = &recommended[1];
        let row = found.others[0].rows.iter().find(|row| {
            (row.repair(), row.order, row.masked) == (Repair::Training, trained.best.curve.order, 4)
        });
        assert_eq!(Some(trained.score), row.map(|row| row.score));
        let area = found.compared(Scope::All).unwrap().areas;
        let of = |repair| area.iter().find(|own| own.method == method(repair, Order::Importance)).unwrap();
        assert_eq!(of(Repair::Training).area.of_runs, [0.375]);
        assert_eq!(of(Repair::None).area.of_runs.len(), 2);
    }
}
