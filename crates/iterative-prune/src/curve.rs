//! The score along an order of heads.
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use core_masking::{HeadId, HeadScores, HeadSet};
use records::{PruningRow, Row, RowWriter};
use stats::Comparison;
use stats::adjust::adjusted;
use subject::{Evaluation, Order, Pool, random_order};

use crate::{Pruning, search};

/// One line of Figure 3.
#[derive(Debug, Clone)]
pub struct Curve<'a> {
    /// The heads that are ordered.
    pub pool: &'a Pool,
    /// What they are ordered by.
    pub order: Order,
    /// Seed of a random order.
    pub seed: Option<u64>,
}

impl Curve<'_> {
    fn place(&self, step: usize) -> Place<'_> {
        Place { attention: &self.pool.attention, order: self.order.name(), seed: self.seed, step }
    }

    fn key(&self, step: usize) -> <PruningRow as Row>::Key {
        self.place(step).key()
    }

    /// Whether a row belongs to this curve.
    pub fn holds(&self, row: &PruningRow) -> bool {
        row.key() == self.key(row.step)
    }

    /// Whether all its rows are there, with adjusted p-values if they were tested: what a run that finished leaves.
    pub fn is_finished(&self, rows: &[&PruningRow]) -> bool {
        let mut own = rows.iter().filter(|row| self.holds(row));
        own.clone().count() == self.pool.counts().len()
            && own.all(|row| row.p_value.is_some() == row.p_holm.is_some())
    }

    /// The masked heads at each step; `intact`: scores on the intact model, by order, as far as they are known.
    fn steps(&self, pruning: &Pruning<'_>, intact: &mut IntactScores) -> anyhow::Result<Vec<HeadSet>> {
        let mut masked = HeadSet::none();
        let mut order = self.order(pruning, &masked, intact)?;
        let mut steps = Vec::new();
        for count in self.pool.counts() {
            if pruning.args.recompute && !masked.is_empty() {
                order = self.order(pruning, &masked, intact)?;
            }
            masked = self.pool.extend(&masked, &order, count);
            steps.push(masked.clone());
        }
        Ok(steps)
    }

    /// The pool's heads, those to be masked first in front.
    fn order(
        &self,
        pruning: &Pruning<'_>,
        masked: &HeadSet,
        intact: &mut IntactScores,
    ) -> anyhow::Result<Vec<HeadId>> {
        let heads = &self.pool.heads;
        let scores = match self.order {
            Order::Random => return Ok(random_order(heads, self.seed.unwrap_or_default())),
            Order::Oracle => pruning.oracle.scores(pruning.subject, &pruning.scored, heads)?,
            order if masked.is_empty() => match intact.entry(order) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(place) => place.insert(pruning.scores(order, masked)?).clone(),
            },
            order => pruning.scores(order, masked)?,
        };
        Ok(scores.ascending().into_iter().filter(|id| heads.contains(id)).collect())
    }
}

/// Scores on the intact model, which serve the curves of an order over all pools.
type IntactScores = BTreeMap<Order, HeadScores>;

/// Scores all steps of `curves` that have no row yet; head sets that several curves share are scored once.
///
/// # Errors
/// If heads cannot be ordered, the split is at fault, or the file cannot be written.
pub fn draw(
    pruning: &Pruning<'_>,
    curves: &[Curve<'_>],
    rows: &mut RowWriter<PruningRow>,
) -> anyhow::Result<()> {
    let mut sets = vec![HeadSet::none()];
    let mut users: Vec<Vec<(&Curve<'_>, usize)>> = vec![Vec::new()];
    let mut intact = IntactScores::new();
    for curve in curves {
        if (0..curve.pool.counts().len()).all(|step| rows.contains(&curve.key(step))) {
            continue;
        }
        for (step, set) in curve.steps(pruning, &mut intact)?.into_iter().enumerate() {
            if let Some(stored) = rows.rows().find(|row| row.key() == curve.key(step)) {
                check_heads(stored, &set)?;
                continue;
            }
            let place = sets.iter().position(|known| *known == set).unwrap_or_else(|| {
                sets.push(set);
                users.push(Vec::new());
                sets.len() - 1
            });
            users[place].push((curve, step));
        }
    }
    if users.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let mut base: Option<Evaluation> = None;
    pruning.subject.evaluate(&pruning.scored, &sets, &mut |index, evaluation| {
        let base = base.get_or_insert_with(|| evaluation.clone());
        subject::check_base(rows.rows().map(|row| row.base_score), base.score)?;
        let comparison = pruning.compare(&evaluation, base, &sets[index])?;
        for (curve, step) in &users[index] {
            rows.push(row(
                &curve.place(*step),
                curve.pool.heads.len(),
                &sets[index],
                evaluation.metric(),
                &comparison,
            ))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Refuses to go on with a curve that came from another order of heads, such as that of an oracle measured since.
fn check_heads(stored: &PruningRow, now: &HeadSet) -> anyhow::Result<()> {
    if stored.masked_heads != now.names() {
        let PruningRow { order, step, .. } = stored;
        anyhow::bail!(
            "step {step} of order {order} masked other heads than now: compute it again with --overwrite"
        );
    }
    Ok(())
}

impl Pruning<'_> {
    /// Compares a model with heads masked with the intact one; the intact one is not tested against itself.
    pub fn compare(
        &self,
        variant: &Evaluation,
        base: &Evaluation,
        masked: &HeadSet,
    ) -> Result<Comparison, subject::Error> {
        let resamples = self.args.resamples as usize;
        let comparison = variant.compare_with(base, resamples, self.args.shared.seed)?;
        Ok(if masked.is_empty() { comparison.untested() } else { comparison })
    }
}

/// Where a row stands.
pub struct Place<'a> {
    /// An attention type, or `all`.
    pub attention: &'a str,
    /// Name of the order or search.
    pub order: &'a str,
    /// Seed of a random order.
    pub seed: Option<u64>,
    /// Step of the curve.
    pub step: usize,
}

impl Place<'_> {
    /// The key of its row.
    pub fn key(&self) -> <PruningRow as Row>::Key {
        (self.attention.to_owned(), self.order.to_owned(), self.seed, self.step)
    }
}

/// A row without adjusted p-values, which follow when the whole curve is there.
pub fn row(
    place: &Place<'_>,
    heads: usize,
    masked: &HeadSet,
    metric: &str,
    comparison: &Comparison,
) -> PruningRow {
    PruningRow {
        attention: place.attention.to_owned(),
        order: place.order.to_owned(),
        order_seed: place.seed,
        step: place.step,
        masked: masked.len(),
        heads,
        metric: metric.to_owned(),
        base_score: comparison.base,
        score: comparison.variant,
        score_delta: comparison.delta,
        delta_low: comparison.interval.map(|(low, _)| low),
        delta_high: comparison.interval.map(|(_, high)| high),
        p_value: comparison.p_value,
        p_holm: None,
        p_benjamini_hochberg: None,
        p_unpaired_t: comparison.p_unpaired_t,
        p_mcnemar: comparison.p_mcnemar,
        search_score: None,
        masked_heads: masked.names(),
    }
}

/// Fills in the adjusted p-values: the steps of a curve are a family of tests.
///
/// `steps`: by attention type, the number of tests of a whole curve; curves that are not whole have none. A search has
/// those steps that were asked for. Curves over other types stay as they are.
pub fn adjust(rows: &mut [PruningRow], steps: &BTreeMap<&str, usize>) {
    let mut families: BTreeMap<_, Vec<&mut PruningRow>> = BTreeMap::new();
    for row in rows.iter_mut().filter(|row| row.p_value.is_some()) {
        let curve = (row.attention.clone(), row.order.clone(), row.order_seed);
        families.entry(curve).or_default().push(row);
    }
    for ((attention, order, _), mut family) in families {
        let Some(&steps) = steps.get(attention.as_str()) else { continue };
        let is_whole = family.len() == steps || search::is_name(&order);
        let p_values: Vec<f64> = family.iter().filter_map(|row| row.p_value).collect();
        for (row, (holm, benjamini_hochberg)) in family.iter_mut().zip(adjusted(&p_values)) {
            row.p_holm = is_whole.then_some(holm);
            row.p_benjamini_hochberg = is_whole.then_some(benjamini_hochberg);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(entries: &[(&str, usize, Option<f64>)]) -> Vec<PruningRow> {
        let comparison = |p_value| Comparison {
            base: 30.0,
            variant: 29.0,
            delta: -1.0,
            p_value,
            interval: None,
            p_unpaired_t: None,
            p_mcnemar: None,
        };
        let row = |&(order, step, p): &(&str, usize, Option<f64>)| {
            let place = Place { attention: "all", order, seed: None, step };
            row(&place, 5, &HeadSet::none(), "bleu", &comparison(p))
        };
        entries.iter().map(row).collect()
    }

    /// Holm within a curve: 2 * 0.01, and 1 * 0.5; step 0 is no test. The oracle's second step is missing.
    #[test]
    fn each_whole_curve_is_a_family_of_tests() {
        let mut rows = rows(&[
            ("importance", 0, None),
            ("importance", 1, Some(0.5)),
            ("importance", 2, Some(0.01)),
            ("oracle", 1, Some(0.03)),
            ("swap", 1, Some(0.04)),
        ]);
        adjust(&mut rows, &BTreeMap::from([("all", 2)]));
        let holm: Vec<_> = rows.iter().map(|row| row.p_holm).collect();
        assert_eq!(holm, [None, Some(0.5), Some(0.02), None, Some(0.04)]);
        let before = rows.clone();
        adjust(&mut rows, &BTreeMap::from([("enc-enc", 7)]));
        assert_eq!(rows, before, "other types stay as they are");
    }
}
