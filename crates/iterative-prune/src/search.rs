//! Head sets that are better than any order gives, searched for by measuring them.
//!
//! Beyond the paper, whose greedy pruning by importance may miss the best set. Sets are chosen on one split and reported
//! on another, so that one sees how far the importance order is from what can be attained.
use std::collections::BTreeMap;

use clap::ValueEnum;
use core_masking::{HeadId, HeadSet};
use experiment::{Ingredient, MeasuredRows, Pool, RowSet};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use records::{BASE, CurveId, Identity, Order, PruningRow, Row};
use stats::Direction;
use subject::{Description, Scored, Subject};
use training::Machine;

use crate::Pruning;
use crate::curve::row;
use crate::split::Split;

/// Exchanges that are tried together, of which the best is made.
const EXCHANGES_TOGETHER: usize = 16;

/// How sets are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Mask, one by one, the head whose masking costs least beside those masked already
    GreedyForward,
    /// Exchange a masked head for another as long as that helps, starting from the importance order
    Swap,
}

impl Method {
    fn order(self) -> Order {
        match self {
            Self::GreedyForward => Order::GreedyForward,
            Self::Swap => Order::Swap,
        }
    }
}

/// Arguments of the search.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Joint search")]
pub struct SearchArgs {
    /// Search for the best sets instead of following an order, and write joint-search.csv
    #[arg(long, value_enum, conflicts_with_all = ["order", "random_orders"])]
    pub search: Option<Method>,

    /// Split that sets are chosen on [default: the development split, or the training split if the former is scored]
    #[arg(long, value_name = "SPLIT", requires = "search")]
    search_on: Option<String>,

    /// Segments of that split to choose on, drawn at random with --seed
    #[arg(long, value_name = "N", default_value_t = 300, requires = "search", value_parser = clap::value_parser!(u64).range(1..))]
    search_limit: u64,

    /// Share of heads to search up to (greedy-forward), or at (swap), in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, requires = "search", value_parser = clap::value_parser!(u64).range(1..=100))]
    search_percent: u64,

    /// Sets that swap tries at most
    #[arg(long, value_name = "N", default_value_t = 500, requires = "search", value_parser = clap::value_parser!(u64).range(1..))]
    search_evaluations: u64,
}

impl SearchArgs {
    /// The search, if there is to be one, on a split that can be scored and is not the one that is reported.
    ///
    /// # Errors
    /// If the split is at fault, or is the reported one.
    pub fn checked(
        &self,
        description: &Description,
        machine: &Machine,
        (reported, seed): (&Scored, u64),
    ) -> anyhow::Result<Option<Search>> {
        let Some(method) = self.search else { return Ok(None) };
        let default = match description.dev_split() {
            dev if dev == reported.split => description.train_split(),
            dev => dev,
        };
        let split = description.split(Some(self.search_on.as_deref().unwrap_or(default)), machine)?;
        if split == reported.split {
            anyhow::bail!("--search-on {split} is the split that is scored: name another");
        }
        let on = Scored::sample(split, self.search_limit as usize, seed, reported.rescale);
        Ok(Some(Search { method, on, percent: self.search_percent, evaluations: self.search_evaluations }))
    }
}

/// A search on a split that is not the reported one.
#[derive(Debug)]
pub struct Search {
    method: Method,
    on: Scored,
    percent: u64,
    evaluations: u64,
}

impl Search {
    /// Refuses to search on a split that is scored otherwise than the one that is reported.
    ///
    /// # Errors
    /// If the two have different metrics.
    pub fn check_metric(&self, pruning: &Pruning<'_>) -> anyhow::Result<()> {
        let (on, reported) = (pruning.subject.metric(&self.on.split), pruning.metric());
        anyhow::ensure!(
            on == reported,
            "the search would be on split `{}`, which is scored by {}, but `{}` is scored by {}: --search-on names another",
            self.on.split,
            on.name(),
            pruning.scored.split,
            reported.name()
        );
        Ok(())
    }

    /// Adds what found sets depend on.
    ///
    /// # Errors
    /// If the split is at fault.
    pub fn describe(&self, subject: &dyn Subject, identity: &mut Identity) -> anyhow::Result<()> {
        Ingredient::describe(subject, &self.on, "search", identity)?;
        identity.arguments.extend([
            ("search_on".to_owned(), self.on.split.clone().into()),
            ("search_limit".to_owned(), self.on.limit.into()),
            ("search_evaluations".to_owned(), self.evaluations.into()),
        ]);
        Ok(())
    }

    /// What the families of tests are called; they are of as many rows as were asked for.
    pub fn families(&self, pools: &[Pool]) -> BTreeMap<String, usize> {
        pools.iter().map(|pool| (self.curve(pool).to_string(), 0)).collect()
    }

    /// What rows of a search over a pool belong to.
    pub fn curve(&self, pool: &Pool) -> CurveId {
        CurveId { attention: pool.scope, order: self.method.order(), order_seed: None, complement: false }
    }

    /// Searches over each pool, and writes a row for the intact model and one for each set that is reported.
    ///
    /// # Errors
    /// If heads cannot be ordered, a split is at fault, or the file cannot be written.
    pub fn run(
        &self,
        pruning: &Pruning<'_>,
        pools: &[Pool],
        rows: &mut MeasuredRows<PruningRow>,
    ) -> anyhow::Result<()> {
        let name = self.name();
        rows.renew(|row| row.order == name && pools.iter().any(|pool| row.attention == pool.scope));
        let ascending = pruning.scores(Order::Importance, &HeadSet::none())?.ascending();
        let [mut chosen, mut reported] =
            [&self.on, &pruning.scored].map(|scored| Split::new(pruning.subject, scored));
        for pool in pools {
            let order: Vec<HeadId> = ascending.iter().copied().filter(|id| pool.heads.contains(id)).collect();
            let steps = self.steps(pool)?;
            let mut reporter =
                Reporter { pruning, pool, method: self.method, rows: &mut *rows, reported: &mut reported };
            match self.method {
                Method::GreedyForward => self.greedy_forward(&steps, &order, (&mut chosen, &mut reporter))?,
                Method::Swap => self.swap(&steps, &order, (&mut chosen, &mut reporter))?,
            }
        }
        Ok(())
    }

    /// Its name in result files.
    pub fn name(&self) -> &'static str {
        self.method.order().name()
    }

    /// The steps of the curve that get a row: the intact model, and all up to the share that is asked for, or the last of
    /// these.
    ///
    /// # Errors
    /// If there is no step to search at.
    pub fn steps(&self, pool: &Pool) -> anyhow::Result<Vec<usize>> {
        let limit = (pool.heads.len() as u64 * self.percent).div_ceil(100) as usize;
        let steps: Vec<usize> =
            (0..).zip(pool.counts()).filter(|&(_, count)| count <= limit).map(|(step, _)| step).collect();
        match (self.method, steps.last()) {
            (Method::GreedyForward, _) => Ok(steps),
            (Method::Swap, Some(&last)) if last > 0 => Ok(vec![0, last]),
            _ => anyhow::bail!(
                "up to {} % of {} heads there is no step to search at",
                self.percent,
                pool.heads.len()
            ),
        }
    }

    /// At each step the head whose masking leaves the best score; of heads that tie, the least important.
    fn greedy_forward(
        &self,
        steps: &[usize],
        order: &[HeadId],
        (on, reporter): (&mut Split<'_>, &mut Reporter<'_, '_>),
    ) -> anyhow::Result<()> {
        let (pool, counts) = (reporter.pool, reporter.pool.counts());
        let direction = reporter.pruning.metric().name().direction();
        let mut masked = HeadSet::none();
        for &step in steps {
            if let Some(found) = reporter.masked(step)? {
                masked = found;
                continue;
            }
            let mut score = None;
            while masked.len() < counts[step] {
                let candidates = order.iter().filter(|&&id| pool.may_mask(id, &masked));
                let sets: Vec<HeadSet> = candidates.map(|&id| masked.with(id)).collect();
                let best = best(&on.scores(&sets)?, direction);
                (masked, score) = (sets[best.0].clone(), Some(best.1));
            }
            reporter.report(step, &masked, score)?;
        }
        Ok(())
    }

    /// Exchanges masked heads for others while the score gets better, at a fixed number of heads.
    fn swap(
        &self,
        steps: &[usize],
        order: &[HeadId],
        (on, reporter): (&mut Split<'_>, &mut Reporter<'_, '_>),
    ) -> anyhow::Result<()> {
        let (pool, counts) = (reporter.pool, reporter.pool.counts());
        for &step in steps {
            if reporter.has(step) {
                continue;
            }
            let start = pool.extend(&HeadSet::none(), order, counts[step]);
            match step {
                0 => reporter.report(step, &start, None)?,
                _ => {
                    let (masked, score) = self.exchange(start, order, (&mut *on, reporter))?;
                    reporter.report(step, &masked, Some(score))?;
                }
            }
        }
        Ok(())
    }

    /// The best set that exchanges lead to, and its score on the split of the search.
    fn exchange(
        &self,
        start: HeadSet,
        order: &[HeadId],
        (on, reporter): (&mut Split<'_>, &Reporter<'_, '_>),
    ) -> anyhow::Result<(HeadSet, f64)> {
        let direction = reporter.pruning.metric().name().direction();
        let mut score = on.scores(std::slice::from_ref(&start))?[0];
        let mut masked = start;
        let mut left = self.evaluations as usize - 1;
        let mut rng = ChaCha8Rng::seed_from_u64(reporter.pruning.args.shared.seed());
        let mut untried = exchanges(reporter.pool, order, &masked, &mut rng);
        while left > 0 && !untried.is_empty() {
            let together = EXCHANGES_TOGETHER.min(left).min(untried.len());
            let tried = untried.split_off(untried.len() - together);
            let sets: Vec<HeadSet> = tried.iter().map(|exchange| exchange.of(&masked)).collect();
            left -= together;
            let best = best(&on.scores(&sets)?, direction);
            if direction.is_better(best.1, score) {
                (masked, score) = (sets[best.0].clone(), best.1);
                untried = exchanges(reporter.pool, order, &masked, &mut rng);
            }
        }
        Ok((masked, score))
    }
}

/// A masked head, and the one that is masked instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Exchange {
    out: HeadId,
    into: HeadId,
}

impl Exchange {
    fn of(self, masked: &HeadSet) -> HeadSet {
        masked.without(self.out).with(self.into)
    }
}

/// All exchanges of one head of `masked`, in an order that `rng` draws.
fn exchanges(pool: &Pool, order: &[HeadId], masked: &HeadSet, rng: &mut ChaCha8Rng) -> Vec<Exchange> {
    let mut exchanges = Vec::new();
    for out in masked.iter() {
        let rest = masked.without(out);
        let others = order.iter().filter(|&&id| !masked.contains(id) && pool.may_mask(id, &rest));
        exchanges.extend(others.map(|&into| Exchange { out, into }));
    }
    exchanges.shuffle(rng);
    exchanges
}

/// Place and value of the best score; of those that tie, the first.
///
/// # Panics
/// If there are none.
fn best(scores: &[f64], direction: Direction) -> (usize, f64) {
    let mut best = (0, scores[0]);
    for (place, &score) in scores.iter().enumerate() {
        if direction.is_better(score, best.1) {
            best = (place, score);
        }
    }
    best
}

/// Scores found sets on the reported split and writes their rows.
struct Reporter<'a, 'p> {
    pruning: &'p Pruning<'p>,
    pool: &'a Pool,
    method: Method,
    rows: &'a mut MeasuredRows<PruningRow>,
    reported: &'a mut Split<'p>,
}

impl Reporter<'_, '_> {
    /// The row of a step, without scores.
    fn row(&self, step: usize, masked: &HeadSet) -> PruningRow {
        let metric = self.pruning.metric().name();
        row(self.pool, self.method.order(), step, (masked, metric))
    }

    /// Whether a step has its row.
    fn has(&self, step: usize) -> bool {
        self.rows.contains(&self.row(step, &HeadSet::none()).key())
    }

    /// The masked heads of a step that has its row.
    fn masked(&self, step: usize) -> anyhow::Result<Option<HeadSet>> {
        let key = self.row(step, &HeadSet::none()).key();
        let Some(row) = self.rows.rows().find(|row| row.key() == key) else { return Ok(None) };
        Ok(Some(row.masked_heads.parse()?))
    }

    fn report(&mut self, step: usize, masked: &HeadSet, search_score: Option<f64>) -> anyhow::Result<()> {
        let row = PruningRow { search_score, ..self.row(step, masked) };
        let set = RowSet { masked: masked.clone(), rows: vec![row] };
        Ok(self.rows.measure_on(self.reported.evaluator()?, BASE, vec![set])?)
    }
}

#[cfg(test)]
mod tests {
    use records::Scope;

    use super::*;
    use core_masking::Attention;
    use experiment::Together;

    #[test]
    fn of_equal_scores_the_first_is_best() {
        let scores = [2.0, 3.0, 1.0, 3.0, 1.0];
        assert_eq!(best(&scores, Direction::HigherIsBetter), (1, 3.0));
        assert_eq!(best(&scores, Direction::LowerIsBetter), (2, 1.0));
    }

    /// 2 masked heads of 6 and 4 others: 8 exchanges, or fewer where a layer must keep its heads.
    #[test]
    fn every_exchange_is_tried_once() {
        let id = |layer, head| HeadId::from_index(Attention::SelfAttention, layer, head);
        let heads: Vec<HeadId> = (0..2).flat_map(|layer| (0..3).map(move |head| id(layer, head))).collect();
        let pool = |keep_at_least| Pool {
            together: Together::ONE_BY_ONE,
            scope: Scope::All,
            heads: heads.clone(),
            keep_at_least,
            step_percent: 10,
        };
        let masked = HeadSet::from_iter([id(0, 0), id(0, 1)]);
        let found = |keep| {
            let exchanges = exchanges(&pool(keep), &heads, &masked, &mut ChaCha8Rng::seed_from_u64(3));
            let mut sets: Vec<HeadSet> = exchanges.iter().map(|exchange| exchange.of(&masked)).collect();
            sets.sort();
            sets.dedup();
            assert!(sets.iter().all(|set| set.len() == 2 && *set != masked));
            sets.len()
        };
        assert_eq!(found(0), 8);
        // where each layer keeps two, a head of the first goes back only for one of the three of the second
        assert_eq!(found(2), 2 * 3);
    }
}
