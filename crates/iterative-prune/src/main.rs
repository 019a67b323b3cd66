//! More and more heads: Michel et al. (2019), Section 4.2, Figures 3 and 6, and Section 5, Figure 4.
//!
//! Heads sorted by increasing score over the whole model, or over one attention type, and the test score with the first
//! 10, 20, .. 100 % of them masked. Beyond the paper, `--search` looks for better sets than any order gives, and `--retrain` trains
//! the model on without the heads of each step.
mod curve;
mod export;
mod retrain;
mod search;
mod split;

use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::Parser;
use core_masking::{HeadId, HeadLayout, HeadScores, HeadSet};
use experiment::{
    Estimate, EstimateArgs, Finished, HeadSweep, MeasuredRows, Oracle, Pool, RowPlan, Sampling, Selection,
    SharedArgs, Together, Unit, has_duplicates,
};
use records::{Identity, Order, PruningRow, TestedRow};
use significance::TestArgs;
use stats::Metric;
use subject::{Description, Scored, Subject};

use curve::Curve;
use export::ExportArgs;
use retrain::Retraining;
use search::{Search, SearchArgs};

/// Masks more and more heads, the least important first, and scores the test set (Figures 3, 4 and 6).
///
/// Writes a row for each step soon after it is scored, and resumes a killed run. Existing results are used and missing
/// ones are measured; --again measures everything again. Curves of several orders and attention types share a file,
/// with the floor of each type (all its heads masked) and, of orders other than random, the complement: the order
/// reversed. The model without the heads of a step can be exported. The oracle order is made of the results of
/// ablate-one for the same model and data, which are measured where they are missing.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// What heads are ordered by; several, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ORDERS", default_value = "importance")]
    order: Vec<Order>,

    /// Heads that are ordered together: all, or those of an attention type (Figure 4); several, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "TYPES", default_value = "all")]
    attention: Vec<Selection>,

    /// Heads masked at each step, in percent [default: 10 for translators and 5 for other models, as in the paper for BERT]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=100))]
    step_percent: Option<u64>,

    /// Score the heads again after each step, on the model without those masked so far
    #[arg(long, conflicts_with = "search")]
    recompute: bool,

    /// Heads to keep in each layer, whatever their score
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep_at_least: usize,

    /// What is masked at once
    #[arg(long, value_enum, default_value_t = Unit::Head, conflicts_with = "search")]
    unit: Unit,

    /// Mask the same number of units in every layer, and of heads in every group, so that a smaller model of the same
    /// kind is left; see --export-uniform
    #[arg(long, conflicts_with = "search")]
    uniform: bool,

    /// Number of random orders, with seeds counting up from --seed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    random_orders: u64,

    /// Multiply the kept heads of a layer by heads / kept
    #[arg(long)]
    rescale: bool,

    /// Retrain the model without the heads of each step for this many epochs, restarting its recipe, and write
    /// prune-and-retrain.csv, a separate curve with the updates spent on each step. Each step starts from the intact
    /// model; with --attention enc-enc only its encoder is trained. Step 0 masks no head and is trained for as many
    /// updates
    #[arg(long, value_name = "EPOCHS", conflicts_with_all = ["search", "recompute", "rescale"], value_parser = clap::value_parser!(u64).range(1..=10_000))]
    retrain: Option<u64>,

    #[command(flatten)]
    test: TestArgs,

    #[command(flatten)]
    estimate: EstimateArgs,

    #[command(flatten)]
    search: SearchArgs,

    #[command(flatten)]
    export: ExportArgs,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

fn main() -> ExitCode {
    experiment::exit_code(run(&Args::parse()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    check_shard(args)?;
    let machine = args.shared.machine()?;
    let description = Description::read(&args.shared.subject)?;
    // Opening the subject may train its model for an hour: whatever else can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let layout = description.layout(&machine)?;
    let pools = pools(args, &layout)?;
    check_orders(args)?;
    let is_needed = args.search.search.is_some() || args.order.iter().any(|order| order.is_measured());
    let sampling = Sampling { seed: args.shared.seed(), rescale: args.rescale };
    let estimate = args.estimate.estimate_if(is_needed, &description, sampling, &machine)?;
    let scored = Scored::first(split, args.shared.limit, args.rescale);
    let needs_oracle = args.search.search.is_none() && args.order.contains(&Order::Oracle);
    let search = args.search.checked(&description, &machine, (&scored, args.shared.seed()))?;
    let is_of_scored = search.is_none() && order_is_of(args, estimate.as_ref(), &scored);
    let exports = args.export.checked(
        (&args.shared, args.rescale),
        (&layout, pools[0].heads.len(), &steps_of(&pools[0], search.as_ref())?),
        is_of_scored,
    )?;
    exports.check_tested(args.test.testing(None, args.shared.seed), None)?;
    let retraining = args.retrain.map(|epochs| (epochs as usize, args.shared.seed()));
    let retraining =
        retraining.map(|settings| Retraining::new(&description, &machine, settings)).transpose()?;
    let experiment = match (&search, &retraining) {
        (Some(_), _) => "joint-search",
        (None, Some(_)) => retrain::EXPERIMENT,
        (None, None) => "iterative-prune",
    };
    let path = args.shared.output_path(experiment, &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let oracle = if needs_oracle {
        let sweep = HeadSweep::one_at_a_time(scored.clone(), &layout, TestArgs::default());
        let path = description.result_path(&args.shared.results, "ablate-one", &scored);
        let found = sweep.ingredient(subject.as_ref(), &layout.heads(), &path, &args.shared, &machine)?;
        Some(Oracle::of(found.rows))
    } else {
        None
    };
    let pruning = Pruning { args, subject: subject.as_ref(), scored, estimate, oracle };
    if let Some(retraining) = &retraining {
        let Finished { path, .. } = retrain::run(retraining, &pruning, &pools, &path)?;
        words::print_line(path.display())?;
        return Ok(());
    }
    // What there is to refuse is refused before a file of rows is touched.
    if let Some(search) = &search {
        search.check_metric(&pruning)?;
        pools.iter().try_for_each(|pool| search.steps(pool).map(drop))?;
    }
    let identity = pruning.identity(experiment, (&pools, search.as_ref()))?;
    let curves = pruning.curves(&pools);
    let plan = match &search {
        Some(search) => RowPlan { families: search.families(&pools), ..RowPlan::default() },
        None => curve::plan(&curves),
    };
    let settings = (&args.shared, &machine, &args.test);
    let mut rows = MeasuredRows::open(&path, identity, pruning.subject, plan, settings)?;
    exports.check_tested(rows.testing(), Some(pruning.metric()))?;
    match &search {
        Some(search) => search.run(&pruning, &pools, &mut rows)?,
        None => curve::draw(&pruning, &curves, &mut rows)?,
    }
    let Finished { path, rows } = rows.finish()?;
    let first = first_curve(args, &pools[0], search.as_ref());
    let steps: Vec<&PruningRow> = rows.iter().filter(|row| row.family() == first).collect();
    exports.write(pruning.subject, &steps, &path, machine.quiet)?;
    words::print_line(path.display())?;
    Ok(())
}

/// Refuses --shard where a step needs those before it, or a whole curve is asked for, and exports where there is none
/// of them.
///
/// # Errors
/// If that is so.
fn check_shard(args: &Args) -> anyhow::Result<()> {
    if args.search.search.is_some() {
        args.shared.refuse_shard("a search measures each set of heads because of what it found before")?;
    }
    if args.recompute {
        args.shared.refuse_shard(
            "with --recompute each step is scored on the model without the heads of those before it",
        )?;
    }
    if args.retrain.is_some() {
        args.shared.refuse_shard("with --retrain models are trained one after another")?;
        ensure!(
            !args.export.is_asked_for(),
            "an export is of the model as it was trained: leave out --retrain"
        );
    }
    if args.export.is_asked_for() {
        args.shared.refuse_shard(
            "an export needs the whole curve and its tests: merge the shards, and export then",
        )?;
    }
    Ok(())
}

/// Whether the first order is made on the split that is scored, so that its steps do worse on another one.
fn order_is_of(args: &Args, estimate: Option<&Estimate>, scored: &Scored) -> bool {
    let estimated_on = estimate.map(|estimate| estimate.on.split.as_str());
    args.order.first().is_some_and(|order| order.is_made_on(Some(&scored.split), estimated_on))
}

/// Numbers of heads that a curve masks, or a search.
fn steps_of(pool: &Pool, search: Option<&Search>) -> anyhow::Result<Vec<usize>> {
    let counts = pool.counts();
    match search {
        Some(search) => Ok(search.steps(pool)?.into_iter().map(|step| counts[step]).collect()),
        None => Ok(counts),
    }
}

/// The curve that is exported from: the first order, or the search, over the first pool.
fn first_curve(args: &Args, pool: &Pool, search: Option<&Search>) -> String {
    match (search, args.order[0]) {
        (Some(search), _) => search.curve(pool).to_string(),
        (None, order) => Curve::of(pool, order, &[args.shared.seed()])[0].id().to_string(),
    }
}

/// Refuses orders that make no sense together.
///
/// # Errors
/// If an order or attention type is given twice, or one is to be measured again that is not measured.
fn check_orders(args: &Args) -> anyhow::Result<()> {
    if let Some(order) = args.order.iter().find(|order| args.recompute && !order.is_measured()) {
        bail!("--recompute scores heads again on the masked model, which order {} does not", order.name());
    }
    if has_duplicates(&args.order) {
        bail!("an order is given twice in --order");
    }
    if has_duplicates(&args.attention) {
        bail!("a type is given twice in --attention");
    }
    Ok(())
}

/// The heads that are ordered together.
///
/// # Errors
/// If the model has no such attention, or all heads of a layer are to be kept.
fn pools(args: &Args, layout: &HeadLayout) -> anyhow::Result<Vec<Pool>> {
    let most = layout.types().map(|(_, shape)| shape.heads).min().context("the model has no heads")?;
    if args.keep_at_least >= most {
        bail!("--keep-at-least {} leaves nothing to mask: layers have {most} heads", args.keep_at_least);
    }
    let together = Together::of(layout, args.unit, args.uniform)?;
    if !args.keep_at_least.is_multiple_of(together.unit()) {
        bail!(
            "--keep-at-least {} is no number of whole groups of {} heads",
            args.keep_at_least,
            together.unit()
        );
    }
    let has_one_type = layout.types().count() == 1;
    let step_percent = args.step_percent.unwrap_or(if has_one_type { 5 } else { 10 });
    let pool = |selection: &Selection| {
        let (scope, heads) = (selection.scope(layout), selection.heads(layout)?);
        Ok(Pool { scope, heads, keep_at_least: args.keep_at_least, step_percent, together })
    };
    args.attention.iter().map(pool).collect()
}

/// What all curves have in common.
struct Pruning<'a> {
    args: &'a Args,
    subject: &'a dyn Subject,
    scored: Scored,
    estimate: Option<Estimate>,
    oracle: Option<Oracle>,
}

impl Pruning<'_> {
    /// How the subject is scored.
    fn metric(&self) -> Metric {
        self.subject.metric(&self.scored.split)
    }

    /// All that the rows depend on.
    fn identity(
        &self,
        experiment: &str,
        (pools, search): (&[Pool], Option<&Search>),
    ) -> anyhow::Result<Identity> {
        let mut identity = self.subject.identity(experiment, &self.scored)?;
        identity.seed = Some(self.args.shared.seed());
        if let Some(estimate) = &self.estimate {
            estimate.describe(self.subject, &mut identity)?;
        }
        identity.arguments.extend([
            ("step_percent".to_owned(), pools.first().map(|pool| pool.step_percent).into()),
            ("keep_at_least".to_owned(), self.args.keep_at_least.into()),
            ("recompute".to_owned(), self.args.recompute.into()),
        ]);
        // Results that were made before these could be asked for do not tell them.
        if self.args.unit == Unit::Group {
            identity.arguments.insert("unit".to_owned(), "group".into());
        }
        if self.args.uniform {
            identity.arguments.insert("uniform".to_owned(), true.into());
        }
        if let Some(search) = search {
            search.describe(self.subject, &mut identity)?;
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
