//! More and more heads: Michel et al. (2019), Section 4.2, Figures 3 and 6, and Section 5, Figure 4.
//!
//! Heads sorted by increasing score over the whole model, or over one attention type, and the test score with the first
//! 10, 20, .. 100 % of them masked. Beyond the paper, `--retrain` trains the model on without the heads of each step.
mod curve;
pub mod importance;
mod retrain;

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{ArgAction, Parser};
use core_masking::{HeadId, HeadScores, HeadSet};
use experiment::{
    Estimate, EstimateArgs, HeadSweep, MaskingArgs, MeasuredRows, Oracle, Pool, Retraining, Sampling,
    SharedArgs, StepArgs, Together, Unit, has_duplicates,
};
use records::{Identity, Order, PruningRow};
use significance::TestArgs;
use stats::Metric;
use subject::{Scored, Subject};

use curve::Curve;

/// Masks more and more heads, the least important first, and scores the test set (Figures 3, 4 and 6).
///
/// Writes a row for each step soon after it is scored, and resumes a killed run. Existing results are used and missing
/// ones are measured; --again measures everything again. Curves of several orders and attention types share a file,
/// with the floor of each type (all its heads masked) and, of orders other than random, the complement: the order
/// reversed. The oracle order is made of the results of ablate-one for the same model and data, which are measured where
/// they are missing. export-model writes the model without the heads of a step.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// Order of the heads; several, separated by commas
    #[arg(long, value_enum, action = ArgAction::Set, value_delimiter = ',', value_name = "ORDERS", default_value = "importance")]
    order: Vec<Order>,

    /// Number of random orders, with seeds counting up from --seed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    random_orders: u64,

    /// Rank the heads again after each step, on the model with the masked heads
    #[arg(long)]
    recompute: bool,

    #[command(flatten)]
    steps: StepArgs,

    /// Unit that is masked
    #[arg(long, value_enum, default_value_t = Unit::Head)]
    unit: Unit,

    /// Mask the same number of units in every layer, and of heads in every group, so that a smaller model of the same
    /// kind is left
    #[arg(long)]
    uniform: bool,

    /// Retrain the model without the heads of each step for this many epochs, restarting its recipe, and write
    /// prune-and-retrain.csv, a separate curve with the updates spent on each step. Each step starts from the intact
    /// model; with --attention enc-enc only its encoder is trained. Step 0 masks no head and is trained for as many
    /// updates
    #[arg(long, value_name = "EPOCHS", conflicts_with_all = ["recompute", "rescale", "ablation"], value_parser = clap::value_parser!(u64).range(1..=10_000))]
    retrain: Option<u64>,

    #[command(flatten)]
    masking: MaskingArgs,

    #[command(flatten)]
    test: TestArgs,

    #[command(flatten)]
    estimate: EstimateArgs,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    check(args)?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Opening the subject may train its model for an hour: whatever else can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let layout = description.layout(&machine)?;
    let pools = args.steps.pools(&layout, Together::of(&layout, args.unit, args.uniform)?)?;
    let is_needed = args.order.iter().any(|order| order.is_measured());
    let sampling = Sampling { seed: args.shared.seed(), rescale: args.masking.rescale };
    let estimate = args.estimate.estimate_if(is_needed, &description, sampling, &machine)?;
    let scored = args.masking.scored(split, &args.shared, &description, &machine)?;
    let estimate = estimate.map(|estimate| estimate.under(&scored.ablation));
    let retraining = args.retrain.map(|epochs| (epochs as usize, args.shared.seed()));
    let retraining =
        retraining.map(|settings| Retraining::new(&description, &machine, settings)).transpose()?;
    let experiment = if retraining.is_some() { retrain::EXPERIMENT } else { "iterative-prune" };
    let path = args.shared.output_path(experiment, &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let oracle = if args.order.contains(&Order::Oracle) {
        let sweep = HeadSweep::one_at_a_time(scored.clone(), &layout, TestArgs::default());
        let path = description.result_path(&args.shared.results, "ablate-one", &scored);
        let found = sweep.ingredient(subject.as_ref(), &layout.heads(), &path, &args.shared, &machine)?;
        Some(Oracle::of(found.rows))
    } else {
        None
    };
    let pruning =
        Pruning { args, name: description.name(), subject: subject.as_ref(), scored, estimate, oracle };
    let identity = pruning.identity(experiment, &pools)?;
    let curves = pruning.curves(&pools);
    let settings = (&args.shared, &machine, &args.test);
    let path = match &retraining {
        Some(retraining) => retrain::draw(retraining, &pruning, &curves, (&path, identity, settings))?,
        None => {
            let plan = curve::plan(&curves);
            let mut rows =
                MeasuredRows::<PruningRow>::open(&path, identity, pruning.subject, plan, settings)?;
            curve::draw(&pruning, &curves, &mut rows)?;
            rows.finish()?.path
        }
    };
    words::print_line(path.display())?;
    Ok(())
}

/// Refuses --shard where a step needs those before it, and orders that make no sense together.
///
/// # Errors
/// If that is so.
fn check(args: &Args) -> anyhow::Result<()> {
    if args.recompute {
        args.shared.refuse_shard(
            "with --recompute each step is scored on the model without the heads of those before it",
        )?;
    }
    if args.retrain.is_some() {
        args.shared.refuse_shard("with --retrain models are trained one after another")?;
    }
    if let Some(order) = args.order.iter().find(|order| args.recompute && !order.is_measured()) {
        bail!("--recompute scores heads again on the masked model, which order {} does not", order.name());
    }
    if has_duplicates(&args.order) {
        bail!("an order is given twice in --order");
    }
    Ok(())
}

/// Parts that all curves share.
struct Pruning<'a> {
    args: &'a Args,
    /// Of the subject.
    name: &'a str,
    subject: &'a dyn Subject,
    scored: Scored,
    estimate: Option<Estimate>,
    oracle: Option<Oracle>,
}

impl Pruning<'_> {
    /// Metric of the scored split.
    fn metric(&self) -> Metric {
        self.subject.metric(&self.scored.split)
    }

    /// Identity of the rows.
    fn identity(&self, experiment: &str, pools: &[Pool]) -> anyhow::Result<Identity> {
        let mut identity = self.subject.identity(experiment, &self.scored)?;
        identity.seed = Some(self.args.shared.seed());
        if let Some(estimate) = &self.estimate {
            estimate.describe(self.subject, &mut identity)?;
        }
        pools[0].describe(&mut identity);
        identity.arguments.insert("recompute".to_owned(), self.args.recompute.into());
        // Results that were made before these could be asked for do not tell them.
        if self.args.unit == Unit::Group {
            identity.arguments.insert("unit".to_owned(), "group".into());
        }
        if self.args.uniform {
            identity.arguments.insert("uniform".to_owned(), true.into());
        }
        if let Some(epochs) = self.args.retrain {
            identity.arguments.insert("retrain".to_owned(), epochs.into());
        }
        Ok(identity)
    }

    /// Scores for an order that is measured, of all heads but those of `masked`.
    fn scores(&self, order: Order, masked: &HeadSet) -> anyhow::Result<HeadScores> {
        let estimate = self.estimate.as_ref().context("heads cannot be scored without --estimate-on")?;
        Ok(estimate.scores(order, self.subject, masked)?)
    }

    /// The score that is lost without each of `heads`.
    fn oracle(&self, heads: &[HeadId]) -> anyhow::Result<HeadScores> {
        let scores = self.oracle.as_ref().and_then(|oracle| oracle.scores(heads));
        scores.context("ablate-one has no row for a head")
    }

    /// The curves of each order over each pool, and the pools' floors.
    fn curves<'a>(&self, pools: &'a [Pool]) -> Vec<Curve<'a>> {
        let seeds: Vec<u64> =
            (0..self.args.random_orders).map(|n| self.args.shared.seed().wrapping_add(n)).collect();
        let orders = &self.args.order;
        let of_pool = |pool| {
            let curves = orders.iter().flat_map(|&order| Curve::of(pool, order, &seeds));
            curves.chain([Curve::floor(pool)]).collect::<Vec<_>>()
        };
        pools.iter().flat_map(of_pool).collect()
    }
}
