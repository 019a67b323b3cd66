//! Methods that choose heads to mask, side by side at equal numbers of heads: the rows of `compare-methods`.
use std::collections::BTreeMap;

use records::{CurveId, Order, PruningRow, Repair, RepairedRow, Row, Scope};
use stats::Segments;
use stats::adjust::holm;
use stats::areas::{Area, Areas};

use crate::contrasts::{Draws, RESAMPLES};
use crate::error::{Result, no_segments, within};
use crate::pruning::{Pruning, Series};
use crate::results::{Results, distinct};
use crate::segments::stored;
use crate::source::ResultFile;

/// Everything that was measured of one subject.
#[derive(Debug)]
pub struct Methods {
    /// All rows.
    pub results: Results<RepairedRow>,
    /// Curves of the models after each repair.
    pub repairs: BTreeMap<Repair, Pruning>,
}

/// The area under the curve of a method, which is the mean change of the score over the numbers of heads, beside those of others that
/// were repaired alike.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodArea {
    /// The repair.
    pub repair: Repair,
    /// The method: a curve, without the seed of a random order.
    pub curve: CurveId,
    /// The area; of random orders the mean.
    pub area: Area,
    /// The same less that of importance, with p adjusted by Holm (1979) over the methods; absent of importance itself.
    pub over_importance: Option<Area>,
    /// Less that of random orders, likewise; absent with fewer than [`Draws::ENOUGH`].
    pub over_random: Option<Area>,
    /// Segments that the model read forward and backward to order the heads.
    pub passes: [usize; 2],
}

impl Methods {
    /// Reads a file of `compare-methods`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(file: ResultFile) -> Result<Self> {
        let results = Results::<RepairedRow>::read(file)?;
        let mut rows = BTreeMap::<Repair, Vec<PruningRow>>::new();
        for row in &results.rows {
            rows.entry(row.repair).or_default().push(PruningRow::from(row));
        }
        let of = |rows| Pruning::of(Results { file: results.file.clone(), rows });
        Ok(Self { repairs: rows.into_iter().map(|(repair, rows)| (repair, of(rows))).collect(), results })
    }

    /// Sets of heads that are chosen from.
    pub fn scopes(&self) -> Vec<Scope> {
        distinct(self.results.rows.iter().map(|row| row.attention))
    }

    /// The methods over these heads, in the order of legends.
    pub fn methods(&self, scope: Scope) -> Vec<CurveId> {
        let series = self.repairs.values().flat_map(|repaired| &repaired.series);
        let mut found = distinct(series.map(|series| series.curve).filter(|curve| curve.attention == scope));
        found.sort();
        found
    }

    /// The curve of a method after a repair.
    pub fn find(&self, repair: Repair, method: CurveId) -> Option<&Series> {
        self.repairs.get(&repair)?.series.iter().find(|series| series.curve == method)
    }

    /// Areas under the curves of all methods over these heads. Curves that lack a step of others are left out.
    ///
    /// # Errors
    /// If no statistics of segments are stored, or they are damaged.
    pub fn areas(&self, scope: Scope) -> Result<Vec<MethodArea>> {
        let none = || no_segments(&self.results.file);
        let testing = self.results.file.testing().ok_or_else(none)?.of_segments();
        let testing = stats::family::Testing { resamples: testing.resamples.min(RESAMPLES), ..testing };
        let (base, segments) = stored(&self.results, none)?;
        let of_row: BTreeMap<String, &Segments> =
            self.results.rows.iter().map(Row::name).zip(&segments).collect();
        let runs = self.repairs.iter().flat_map(|(&repair, repaired)| {
            let own = repaired.series.iter().filter(|series| series.curve.attention == scope);
            own.flat_map(move |series| series.runs.iter().map(move |run| ((repair, series.curve), run)))
        });
        let runs: Vec<_> = runs.collect();
        let steps = runs.iter().map(|(_, run)| run.len()).max().unwrap_or_default();
        let runs: Vec<_> = runs.into_iter().filter(|(_, run)| run.len() == steps).collect();
        let curve = |((repair, _), run): &((Repair, CurveId), &Vec<PruningRow>)| -> Vec<&Segments> {
            let name =
                |row| RepairedRow { repair: *repair, ..RepairedRow::from(PruningRow::clone(row)) }.name();
            run.iter().map(|row| of_row[&name(row)]).collect()
        };
        let what = || format!("the segments of `{}` cannot be compared", self.results.file.path.display());
        let curves: Vec<Vec<&Segments>> = runs.iter().map(curve).collect();
        let areas = Areas::new(&base, &curves, testing).map_err(within(what))?;
        let mut places = BTreeMap::<(Repair, CurveId), Vec<usize>>::new();
        for (place, (key, _)) in runs.iter().enumerate() {
            places.entry(*key).or_default().push(place);
        }
        let mut found = Vec::new();
        for &repair in self.repairs.keys() {
            let of_order = |order| {
                places
                    .get(&(repair, CurveId { attention: scope, order, order_seed: None, complement: false }))
            };
            let over = |order: Order, own: &Vec<usize>| {
                let others = of_order(order).filter(|others| *others != own)?;
                let is_enough = order != Order::Random || others.len() >= Draws::ENOUGH;
                is_enough.then(|| areas.difference(own, others))
            };
            let own = places.iter().filter(|((of, _), _)| *of == repair);
            let mut all: Vec<MethodArea> = own
                .map(|(&(repair, curve), own)| MethodArea {
                    repair,
                    curve,
                    area: areas.difference(own, &[]),
                    over_importance: over(Order::Importance, own),
                    over_random: over(Order::Random, own),
                    passes: self.passes(repair, curve),
                })
                .collect();
            adjust(all.iter_mut().filter_map(|area| area.over_importance.as_mut()));
            adjust(all.iter_mut().filter_map(|area| area.over_random.as_mut()));
            found.extend(all);
        }
        Ok(found)
    }

    fn passes(&self, repair: Repair, curve: CurveId) -> [usize; 2] {
        let is_own = |row: &&RepairedRow| {
            row.repair == repair && CurveId { order_seed: None, ..PruningRow::from(*row).curve() } == curve
        };
        let greatest = |of: fn(&RepairedRow) -> usize| self.results.rows.iter().filter(is_own).map(of).max();
        [greatest(|row| row.forward), greatest(|row| row.backward)].map(Option::unwrap_or_default)
    }
}

fn adjust<'a>(areas: impl Iterator<Item = &'a mut Area>) {
    let areas: Vec<&mut Area> = areas.collect();
    let adjusted = holm(&areas.iter().map(|area| area.p_value).collect::<Vec<_>>());
    areas.into_iter().zip(adjusted).for_each(|(area, adjusted)| area.p_value = adjusted);
}
