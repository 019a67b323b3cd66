//! Head sets that are better than any order gives, searched for by measuring them.
//!
//! Beyond Michel et al. (2019), whose greedy pruning by importance may miss the best set. Sets are chosen on one split and
//! reported on another, so that one sees how far the importance order is from what can be attained.
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Parser, ValueEnum};
use core_masking::{HeadId, HeadScores, HeadSet};
use experiment::{
    EstimateArgs, Finished, Ingredient, MeasuredRows, Pool, RowPlan, RowSet, Sampling, Search, SharedArgs,
    StepArgs, Together,
};
use records::{BASE, Order, PruningRow};
use significance::TestArgs;
use subject::{Description, Scored, Subject};

/// Searches for the heads that can best be masked together, by measuring sets of them.
///
/// Sets are chosen on one split; a row of each set that is found says what it scores on another. Figure 3 shows them
/// beside the curves of iterative-prune with the same steps. A killed run is resumed; existing results are used, and
/// --again measures everything again.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true, mut_arg("shard", |shard| shard.hide(true)))]
struct Args {
    /// Search
    #[arg(long, value_enum, default_value_t = Method::GreedyForward)]
    method: Method,

    /// Split that sets are chosen on [default: the development split, or the training split if the former is scored]
    #[arg(long, value_name = "SPLIT")]
    search_on: Option<String>,

    /// Segments of that split to choose on, drawn at random with --seed
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    search_limit: u64,

    /// Share of heads to search up to (greedy-forward), or at (swap), in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100))]
    percent: u64,

    /// Maximum number of sets that swap scores
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    evaluations: u64,

    /// Multiply the kept heads of a layer by heads / kept
    #[arg(long)]
    rescale: bool,

    #[command(flatten)]
    steps: StepArgs,

    #[command(flatten)]
    test: TestArgs,

    #[command(flatten)]
    estimate: EstimateArgs,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Ways to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Mask the head that costs least in addition to the masked ones, one by one
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

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard("a search measures each set of heads because of what it found before")?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Opening the subject may train its model for an hour: whatever else can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let pools = args.steps.pools(&description.layout(&machine)?, Together::ONE_BY_ONE)?;
    let steps = pools.iter().map(|pool| args.steps_of(pool)).collect::<anyhow::Result<Vec<_>>>()?;
    let sampling = Sampling { seed: args.shared.seed(), rescale: args.rescale };
    let estimate = args.estimate.estimate(&description, sampling, &machine)?;
    let reported = args.shared.scored(split, args.rescale);
    let on = description.split(Some(args.split_to_choose_on(&description, &reported.split)), &machine)?;
    ensure!(on != reported.split, "--search-on {on} is the split that is scored: name another");
    let chosen_on = Scored::sample(on, args.search_limit as usize, args.shared.seed(), args.rescale);
    let path = args.shared.output_path("joint-search", &description, &reported);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;
    check_metrics(subject.as_ref(), &chosen_on.split, &reported.split)?;

    let mut identity = subject.identity("joint-search", &reported)?;
    identity.seed = Some(args.shared.seed());
    estimate.describe(subject.as_ref(), &mut identity)?;
    pools[0].describe(&mut identity);
    Ingredient::describe(subject.as_ref(), &chosen_on, "search", &mut identity)?;
    identity.arguments.extend([
        ("recompute".to_owned(), false.into()), // searches once were part of `iterative-prune`
        ("search_on".to_owned(), chosen_on.split.clone().into()),
        ("search_limit".to_owned(), chosen_on.limit.into()),
        ("search_evaluations".to_owned(), args.evaluations.into()),
    ]);
    let (settings, order) = ((&args.shared, &machine, &args.test), args.method.order());
    // Each family is of as many rows as were asked for.
    let families = pools.iter().map(|pool| (pool.curve(order).to_string(), 0)).collect();
    let plan = RowPlan { families, ..RowPlan::default() };
    let mut rows = MeasuredRows::<PruningRow>::open(&path, identity, subject.as_ref(), plan, settings)?;
    rows.renew(|row| row.order == order && pools.iter().any(|pool| row.attention == pool.scope));
    let has_rows = |(pool, steps): (&Pool, &Vec<usize>)| {
        let is_stored =
            |&step: &usize| rows.rows().any(|row| row.curve() == pool.curve(order) && row.step == step);
        steps.iter().all(is_stored)
    };
    if !pools.iter().zip(&steps).all(has_rows) {
        let importance = estimate.scores(Order::Importance, subject.as_ref(), &HeadSet::none())?;
        for (pool, steps) in pools.iter().zip(&steps) {
            let splits = (subject.as_ref(), &chosen_on, &reported);
            args.search((pool, steps), &importance, splits, &mut rows)?;
        }
    }
    let Finished { path, .. } = rows.finish()?;
    words::print_line(path.display())?;
    Ok(())
}

/// Refuses to choose on a split that is scored otherwise than the one that is reported.
///
/// # Errors
/// If the two have different metrics.
fn check_metrics(subject: &dyn Subject, on: &str, reported: &str) -> anyhow::Result<()> {
    let [by, reported_by] = [on, reported].map(|split| subject.metric(split));
    ensure!(
        by == reported_by,
        "the search would be on split `{on}`, which is scored by {}, but `{reported}` is scored by {}: --search-on names another",
        by.name(),
        reported_by.name()
    );
    Ok(())
}

impl Args {
    fn split_to_choose_on<'a>(&'a self, description: &'a Description, reported: &str) -> &'a str {
        let default = match description.dev_split() {
            dev if dev == reported => description.train_split(),
            dev => dev,
        };
        self.search_on.as_deref().unwrap_or(default)
    }

    /// Steps of a pool that get a row: the intact model, and all up to the share that is asked for, or the last of these.
    ///
    /// # Errors
    /// If there is no step to search at.
    fn steps_of(&self, pool: &Pool) -> anyhow::Result<Vec<usize>> {
        let heads = pool.heads.len();
        let limit = (heads as u64 * self.percent).div_ceil(100) as usize;
        let last = pool.counts().iter().rposition(|&count| count <= limit).unwrap_or_default();
        match self.method {
            Method::GreedyForward => Ok((0..=last).collect()),
            Method::Swap => {
                ensure!(last > 0, "up to {} % of {heads} heads there is no step to search at", self.percent);
                Ok(vec![0, last])
            }
        }
    }

    /// Finds the sets of a pool that have no row yet, and writes their rows.
    ///
    /// # Errors
    /// If a split is at fault, or the file cannot be written.
    fn search(
        &self,
        (pool, steps): (&Pool, &[usize]),
        importance: &HeadScores,
        (subject, chosen_on, reported): (&dyn Subject, &Scored, &Scored),
        rows: &mut MeasuredRows<PruningRow>,
    ) -> anyhow::Result<()> {
        let order: Vec<HeadId> =
            importance.ascending().into_iter().filter(|id| pool.heads.contains(id)).collect();
        let metric = subject.metric(&reported.split).name();
        // Each of the two leaves memory for the other.
        let (mut chosen, mut reported) = (subject.evaluator(chosen_on, 1)?, subject.evaluator(reported, 1)?);
        let mut scores = |sets: &[HeadSet]| {
            let mut scores = Vec::with_capacity(sets.len());
            chosen.evaluate(sets, &mut |_, evaluation| {
                scores.push(evaluation.score);
                Ok(())
            })?;
            Ok(scores)
        };
        let mut search = Search { pool, order: &order, direction: metric.direction(), scores: &mut scores };
        let (counts, mut masked) = (pool.counts(), HeadSet::none());
        for &step in steps {
            let curve = pool.curve(self.method.order());
            if let Some(stored) = rows.rows().find(|row| row.curve() == curve && row.step == step) {
                masked = stored.masked_heads.parse()?;
                continue;
            }
            let search_score;
            (masked, search_score) = match self.method {
                _ if step == 0 => (masked, None),
                Method::GreedyForward => search.grow(masked, counts[step])?,
                Method::Swap => search.exchange(counts[step], self.evaluations, self.shared.seed())?,
            };
            let row = PruningRow { search_score, ..pool.row(curve.order, step, &masked, metric) };
            let set = RowSet { masked: masked.clone(), rows: vec![row] };
            rows.measure_on(reported.as_mut(), BASE, vec![set])?;
        }
        Ok(())
    }
}
