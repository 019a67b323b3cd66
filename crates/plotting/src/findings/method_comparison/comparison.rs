//! Compares methods on stored segments: areas under their curves, and the recommended method.
use std::collections::BTreeMap;
use std::ops::Range;

use records::verdicts::margin;
use records::{CurveId, CurveRow, Order, Repair, Scope, TestedRow, Verdict};
use stats::Segments;
use stats::adjust::holm;
use stats::areas::{Area, Areas, Curve, Side};
use stats::bootstrap::Interval;
use stats::family::ALPHA;
use stats::swaps::smallest_p_value;

use super::{
    CurveOfMethod, Kind, Masked, MethodArea, Methods, OverRandom, Recommended, Repaired, SmallestModuleSet,
    is_of_modules,
};
use crate::findings::contrasts::Draws;
use crate::findings::error::{Result, no_segments, within};
use crate::findings::pruning::share;
use crate::findings::results::Results;
use crate::findings::segments::stored;

impl Methods {
    /// Applies `of` to the comparison of each kind of models that was measured.
    pub(super) fn compare<T>(&self, scope: Scope, of: impl Fn(&Comparison<'_>) -> T) -> Result<Vec<T>> {
        let is_measured = |kind: &Kind| {
            let rows = self.runs(*kind).into_iter().flat_map(|results| &results.rows);
            rows.into_iter().any(|row| row.attention == scope && Kind::of(row.repair()) == *kind)
        };
        let measured = Kind::ALL.into_iter().filter(is_measured);
        measured.map(|kind| self.compare_kind(scope, kind, &of)).collect()
    }

    fn compare_kind<T>(&self, scope: Scope, kind: Kind, of: impl Fn(&Comparison<'_>) -> T) -> Result<T> {
        let none = || no_segments(&self.results.file);
        let testing = self.results.file.testing().ok_or_else(none)?.of_segments();
        let all = self.runs(kind);
        let segments = all.iter().map(|results| stored(results, none)).collect::<Result<Vec<_>>>()?;
        let runs = all.iter().zip(&segments);
        let runs: Vec<BTreeMap<CurveOfMethod, Curve<'_>>> =
            runs.map(|(results, (_, segments))| curves(results, segments, (scope, kind))).collect();
        let steps = runs[0].values().map(|curve| curve.steps.len()).max().unwrap_or_default();
        let whole = runs[0].iter().filter(|(_, curve)| curve.steps.len() == steps);
        let keys: Vec<CurveOfMethod> = whole.map(|(key, _)| *key).collect();
        let what = || format!("the segments of `{}` cannot be compared", self.results.file.path.display());
        let own = runs.iter().map(|curves| keys.iter().map(|key| curves[key].clone()).collect());
        let bases = segments.iter().map(|(base, _)| base);
        let areas = Areas::new(bases.zip(own).collect(), testing);
        let areas = areas.map_err(within(what))?;
        let mut places = BTreeMap::<Repaired, Vec<usize>>::new();
        for (place, key) in keys.iter().enumerate() {
            places.entry(key.method).or_default().push(place);
        }
        let (runs, swaps) = (all.len(), testing.resamples);
        Ok(of(&Comparison { methods: self, kind, runs, areas, places, steps, swaps }))
    }
}

/// Returns the segments at all steps of each curve, and of its baseline.
fn curves<'a>(
    results: &Results<CurveRow>,
    segments: &'a [Segments],
    (scope, kind): (Scope, Kind),
) -> BTreeMap<CurveOfMethod, Curve<'a>> {
    let mut rows: Vec<(&CurveRow, &Segments)> = results.rows.iter().zip(segments).collect();
    rows.sort_by_key(|(row, _)| row.step);
    let mut found = BTreeMap::new();
    let is_meant = |row: &CurveRow| row.attention == scope && Kind::of(row.repair()) == kind;
    for (row, own) in rows.into_iter().filter(|(row, _)| is_meant(row)) {
        let curve = found.entry(CurveOfMethod::of(row)).or_insert(Curve { control: None, steps: Vec::new() });
        if row.masked == 0 { curve.control = Some(own) } else { curve.steps.push(own) }
    }
    found
}

pub(super) struct Comparison<'a> {
    methods: &'a Methods,
    kind: Kind,
    /// Number of runs.
    runs: usize,
    areas: Areas<'a>,
    /// Indices of the curves of each method.
    places: BTreeMap<Repaired, Vec<usize>>,
    steps: usize,
    swaps: usize,
}

impl Comparison<'_> {
    /// Returns a method's area minus another ranking's, if that was measured and, if random, drawn often enough.
    fn over(&self, method: Repaired, order: Order, steps: Range<usize>) -> Option<Area> {
        let curve = CurveId { order, complement: false, ..method.curve };
        let others = self.places.get(&Repaired { curve, ..method }).filter(|_| curve != method.curve)?;
        let is_enough = order != Order::Random || others.len() >= Draws::ENOUGH;
        is_enough.then(|| self.areas.difference(&self.places[&method], others, steps))
    }

    pub(super) fn areas(&self) -> Vec<MethodArea> {
        let of = |(&method, places): (&Repaired, &Vec<usize>)| MethodArea {
            method,
            area: self.areas.difference(places, &[], 0..self.steps),
            over_importance: self.over(method, Order::Importance, 0..self.steps),
            over_random: self.over(method, Order::Random, 0..self.steps),
            cost: self.methods.cost(method, None),
        };
        let mut all: Vec<MethodArea> = self.places.iter().map(of).collect();
        for alike in all.chunk_by_mut(|one, next| one.method.repair == next.method.repair) {
            adjust(alike.iter_mut().filter_map(|one| one.over_importance.as_mut()));
            adjust(alike.iter_mut().filter_map(|one| one.over_random.as_mut()));
        }
        all
    }

    pub(super) fn recommended(&self) -> Vec<Recommended> {
        (0..self.steps).filter_map(|place| self.recommend(place)).collect()
    }

    fn recommend(&self, place: usize) -> Option<Recommended> {
        let (steps, direction) = (place..place + 1, self.methods.results.metric().direction());
        let is_asked = |method: &&Repaired| !method.curve.complement && method.curve.order != Order::Random;
        let all: Vec<Repaired> = self.places.keys().filter(is_asked).copied().collect();
        let score = |method: &Repaired| -> f64 {
            let rows = self.methods.rows(*method, place).map(|row| row.score);
            Draws::of(rows).map_or(f64::NAN, |scores| scores.mean)
        };
        let row = |method: &Repaired| {
            let series = self.methods.find(method.repair, method.curve)?;
            series.runs[0].iter().filter(|row| row.masked > 0).nth(place).cloned()
        };
        let cost = |method: &Repaired, step| self.methods.cost(*method, Some(step)).key();
        let best = all.iter().max_by(|one, other| {
            let by_score = direction.gain(score(one)).total_cmp(&direction.gain(score(other)));
            let step = row(one).map_or(0, |row| row.step);
            by_score.then_with(|| (cost(other, step), other).cmp(&(cost(one, step), one)))
        })?;
        let row = row(best)?;
        let places = |method: &Repaired| &self.places[method][..];
        let others: Vec<Repaired> = all.iter().filter(|other| *other != best).copied().collect();
        let p_value = |other: &Repaired| {
            self.areas.difference(places(best), places(other), steps.clone()).p_value.unwrap_or(1.0)
        };
        let can_tell = self.swaps > 0 && (others.len() as f64) * smallest_p_value(self.swaps) < ALPHA;
        let alike = can_tell.then(|| {
            let adjusted = holm(&others.iter().map(p_value).collect::<Vec<_>>());
            let alike = others.iter().zip(adjusted).filter(|(_, p_value)| *p_value >= ALPHA);
            let mut alike: Vec<Repaired> = alike.map(|(other, _)| *other).collect();
            alike.sort_by_key(|other| (cost(other, row.step), *other));
            alike
        });
        let is_cheaper = |other: &&Repaired| cost(other, row.step) < cost(best, row.step);
        let cheapest = alike.as_ref().and_then(|alike| alike.first()).filter(is_cheaper).copied();
        let change = self.areas.difference(places(best), &[], steps.clone());
        let own = row.delta_interval().map(|(low, high)| Interval { low, high });
        let interval = if self.runs == 1 { own } else { change.interval };
        let chosen: Vec<usize> = all.iter().flat_map(places).copied().collect();
        let score = score(best);
        Some(Recommended {
            percent: share(&row),
            kind: self.kind,
            best: *best,
            score,
            change: change.value,
            of_runs: change.of_runs,
            interval,
            verdict: interval.and_then(|interval| self.verdict(&row, interval, score - change.value)),
            compared: others.len(),
            alike,
            cheapest,
            random: self.over_random(*best, &steps),
            optimism: self.areas.optimism(&chosen, steps, direction),
        })
    }

    /// Compares a method with random rankings after equal repair; this is a single contrast without adjustment.
    fn over_random(&self, method: Repaired, steps: &Range<usize>) -> Option<OverRandom> {
        let direction = self.methods.results.metric().direction();
        let area = self.over(method, Order::Random, steps.clone())?;
        let curve = CurveId { order: Order::Random, ..method.curve };
        let orders = &self.places[&Repaired { curve, ..method }];
        let own = self.areas.measured(self.places[&method][0], steps);
        let is_worse = |order: &&usize| direction.is_better(own, self.areas.measured(**order, steps));
        Some(OverRandom {
            orders: orders.len(),
            worse: orders.iter().filter(is_worse).count(),
            is_sure: direction.gain(area.value) > 0.0 && area.p_value? < ALPHA,
        })
    }

    fn verdict(&self, row: &CurveRow, change: Interval, base: f64) -> Option<Verdict> {
        let percent = self.methods.results.file.testing()?.margin_percent;
        if self.runs == 1 {
            return row.verdict(percent);
        }
        let metric = self.methods.results.metric();
        let ends = [change.low, change.high].map(|end| -metric.direction().gain(end));
        let loss = Interval { low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) };
        Some(Verdict::of(loss, margin(metric.name(), base, percent)))
    }

    pub(super) fn modules(&self) -> Vec<Masked> {
        let is_meant = |method: &&Repaired| {
            let is_heads = method.curve.order == Order::Importance && !method.curve.complement;
            method.repair == Repair::None && (is_heads || is_of_modules(method.curve))
        };
        let meant: Vec<Repaired> = self.places.keys().filter(is_meant).copied().collect();
        if !meant.iter().any(|method| is_of_modules(method.curve)) {
            return Vec::new();
        }
        let one = |place: usize, method: &Repaired| {
            let row = self.methods.rows(*method, place).next()?.clone();
            let over_importance = self.over(*method, Order::Importance, place..place + 1);
            let [projections, cache] = self.methods.saved(&row);
            let (at_its_projections, at_its_cache) = (None, None);
            let masked =
                Masked { row, projections, cache, over_importance, at_its_projections, at_its_cache };
            Some((place, *method, masked))
        };
        let each = (0..self.steps).flat_map(|place| meant.iter().map(move |method| (place, method)));
        let all: Vec<(usize, Repaired, Masked)> =
            each.filter_map(|(place, method)| one(place, method)).collect();
        let with_modules = |own: &(usize, Repaired, Masked)| Masked {
            at_its_projections: self.smallest_modules(own, &all, |masked| masked.projections),
            at_its_cache: self.smallest_modules(own, &all, |masked| masked.cache),
            ..own.2.clone()
        };
        let mut found: Vec<Masked> = all.iter().map(with_modules).collect();
        adjust(found.iter_mut().flat_map(|own| {
            let smallest = [&mut own.at_its_projections, &mut own.at_its_cache].into_iter().flatten();
            own.over_importance.as_mut().into_iter().chain(smallest.map(|modules| &mut modules.over_heads))
        }));
        found
    }

    /// Returns the fewest whole modules that save at least as much as heads by importance; `None` if they have equally many heads.
    fn smallest_modules(
        &self,
        (place, method, own): &(usize, Repaired, Masked),
        all: &[(usize, Repaired, Masked)],
        saved: fn(&Masked) -> Option<f64>,
    ) -> Option<SmallestModuleSet> {
        let least = saved(own).filter(|saved| *saved > 0.0 && !is_of_modules(method.curve))?;
        let is_meant = |other: &&(usize, Repaired, Masked)| {
            is_of_modules(other.1.curve) && saved(&other.2).is_some_and(|saved| saved >= least)
        };
        let (smallest, other, modules) =
            all.iter().filter(is_meant).min_by_key(|other| other.2.row.masked)?;
        let side = |method, place: usize| Side { curves: &self.places[method][..], steps: place..place + 1 };
        (smallest != place).then(|| {
            let over_heads = self.areas.between(side(other, *smallest), side(method, *place));
            SmallestModuleSet { percent: share(&modules.row), over_heads }
        })
    }
}

fn adjust<'a>(areas: impl Iterator<Item = &'a mut Area>) {
    let areas: Vec<&mut Area> = areas.filter(|area| area.p_value.is_some()).collect();
    let adjusted = holm(&areas.iter().filter_map(|area| area.p_value).collect::<Vec<_>>());
    areas.into_iter().zip(adjusted).for_each(|(area, adjusted)| area.p_value = Some(adjusted));
}
