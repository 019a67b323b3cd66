//! Pruning curves: Michel et al. (2019), Section 4.2, Figures 3 and 6, and Section 5, Figure 4.
//!
//! Heads are sorted by increasing importance over the whole model or one attention type. The test set is scored with the first 10%, 20%,
//! .. 100% masked. Beyond the paper: searches for head sets, repairs of the masked models, and further training. Each preset
//! replaces an experiment that used to be separate.
pub mod importance;
mod preset;

use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::{ArgAction, Parser};
use experiment::{
    AblationKind, Chooser, Curve, Curves, Estimate, EstimateArgs, Ingredient, Known, MaskingArgs,
    MaskingUnits, MeasuredRows, Pool, Retraining, Sampling, SelectorArgs, SharedArgs, StepArgs, Steps, Unit,
    has_duplicates, possible_orders,
};
use records::{CurveRow, Identity, Order, Repair};
use serde_json::Value;
use significance::TestArgs;
use subject::{Description, Scored, Subject};
use training::Machine;

use preset::Preset;

/// Masks more and more heads, the least important first, and scores the test set (Figures 3, 4 and 6).
///
/// Writes a row for each step soon after it is scored, and resumes a killed run. Existing results are used and missing ones are measured;
/// --again measures everything again. Curves of several orders and attention types share a file. It also has the floor of each type (all
/// its heads masked) and the complement of each ranking (the ranking reversed). The oracle ranks by results of ablate-one for this model
/// and data, and measures missing ones. export-model writes the model without the heads of a step.
#[derive(Debug, Clone, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// Sets the defaults of an experiment, and the name of the result file
    #[arg(long, value_enum, default_value_t = Preset::Prune)]
    preset: Preset,

    /// Rankings and searches, separated by commas [default: importance; with --preset joint-search greedy-forward; with --preset
    /// compare-methods all that the setup allows]
    #[arg(long, visible_alias = "method", action = ArgAction::Set, value_delimiter = ',', value_enum, value_name = "ORDERS")]
    order: Vec<Order>,

    /// Number of random orders, with seeds counting up from --seed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    random_orders: u64,

    /// Rank the heads again after each step, with the heads chosen so far masked
    #[arg(long)]
    recompute: bool,

    #[command(flatten)]
    steps: StepArgs,

    /// Maximum share of heads to mask, in percent; for swap the only share [default: 50 with --preset joint-search, otherwise all]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=100))]
    percent: Option<u64>,

    /// Unit of masking
    #[arg(long, value_enum, default_value_t = Unit::Head)]
    unit: Unit,

    /// Mask equal numbers of units in all layers, and of heads in all groups, so that the pruned model keeps a regular shape
    #[arg(long)]
    uniform: bool,

    /// Repairs of the masked models, separated by commas [default: none,mean,least-squares with --preset compare-methods, training with
    /// --preset prune-and-retrain, otherwise no repair]
    #[arg(long, value_enum, action = ArgAction::Set, value_delimiter = ',', value_name = "REPAIRS", conflicts_with_all = ["rescale", "ablation"])]
    repair: Vec<Repair>,

    /// Maximum number of segments for the least-squares repair, out of those on which heads are ranked (Kwon et al. 2022 use 2,048)
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    fit_limit: u64,

    /// Epochs of further training with --repair training, restarting the recipe of the setup; each step starts from the full model
    #[arg(long, value_name = "EPOCHS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    epochs: u64,

    /// Short for --preset prune-and-retrain --epochs EPOCHS: train the model further with the heads of each step masked. With --attention
    /// enc-enc only the encoder is trained. Step 0 masks no head and is trained for an equal number of updates
    #[arg(long, value_name = "EPOCHS", conflicts_with_all = ["recompute", "rescale", "ablation", "repair", "preset"], value_parser = clap::value_parser!(u64).range(1..=10_000))]
    retrain: Option<u64>,

    #[command(flatten)]
    masking: MaskingArgs,

    #[command(flatten)]
    test: TestArgs,

    #[command(flatten)]
    estimate: EstimateArgs,

    #[command(flatten)]
    selectors: SelectorArgs,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(
        words::parse::<Args>(),
        |args| &mut args.shared.subject,
        |args| run(&args.completed()),
    )
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.check()?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    let Plan { pools, estimate, scored, search_on, retraining } = args.plan(&description, &machine)?;
    let path = args.shared.output_path(args.preset.experiment(), &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;
    check_metrics(args, &subject, &search_on.split, &scored.split)?;
    let orders = match &estimate {
        Some(estimate) if args.order.is_empty() => {
            let heads = pools.iter().map(|pool| pool.heads.len()).max().unwrap_or_default();
            possible_orders((&description, &subject, &machine), estimate, heads)?
        }
        _ => args.order.clone(),
    };
    let identity = args.identity(&subject, estimate.as_ref(), (&scored, &search_on), &pools)?;
    let curves = args.curves(&pools, &orders);
    let oracle_on = match &estimate {
        Some(estimate) if args.preset == Preset::Methods => estimate.on.clone(),
        _ => scored.clone(),
    };
    let chooser = Chooser {
        shared: &args.shared,
        selectors: &args.selectors,
        description: &description,
        machine: &machine,
        subject: &subject,
        estimate: estimate.as_ref(),
        oracle_on,
        search_on,
        orders,
        recompute: args.recompute,
        costs: args.preset == Preset::Methods,
        known: Known::default(),
    };
    let repairs = args.repair.iter().copied().map(Some);
    let all = Curves {
        chooser,
        scored,
        steps: args.preset.steps(args.percent),
        repairs: if args.repair.is_empty() { vec![None] } else { repairs.collect() },
        fit_limit: args.fit_limit as usize,
        retraining,
    };
    let settings = (&args.shared, &machine, &args.test);
    let mut rows = MeasuredRows::<CurveRow>::open(&path, identity, &subject, all.plan(&curves), settings)?;
    all.measure(&curves, &mut rows)?;
    words::print_line(rows.finish()?.path.display())?;
    Ok(())
}

/// Settings that are fixed before the subject is opened.
struct Plan<'a> {
    pools: Vec<Pool>,
    /// Segments on which heads are ranked; `None` if no order needs them.
    estimate: Option<Estimate>,
    scored: Scored,
    /// Segments on which searches score head sets.
    search_on: Scored,
    retraining: Option<Retraining<'a>>,
}

impl Args {
    /// Returns the arguments with the defaults of their preset filled in.
    fn completed(&self) -> Self {
        let mut args = self.clone();
        if let Some(epochs) = self.retrain {
            (args.preset, args.epochs) = (Preset::Retrain, epochs);
        }
        let entry = args.preset.entry();
        if args.order.is_empty() {
            args.order = entry.orders.to_vec();
        }
        if args.repair.is_empty() {
            args.repair = entry.repairs.to_vec();
        }
        args.percent = args.percent.or(entry.percent);
        args.steps = args.steps.with_default(entry.step_percent);
        args
    }

    /// Checks everything that can be checked without opening the subject.
    fn plan<'a>(&self, description: &'a Description, machine: &'a Machine) -> anyhow::Result<Plan<'a>> {
        SelectorArgs::check(&self.order, description)?;
        let split = description.split(self.shared.split.as_deref(), machine)?;
        let layout = description.layout(machine)?;
        let pools = self.steps.pools(&layout, MaskingUnits::of(&layout, self.unit, self.uniform)?)?;
        self.check_steps(&pools)?;
        ensure!(
            !(layout.is_one_layer() && self.repair.contains(&Repair::LeastSquares)),
            "all layers of this model share their weights, so no layer can be rescaled alone: omit least-squares from --repair"
        );
        let is_ranked = |order: &Order| !matches!(order, Order::Random | Order::Oracle);
        let is_fitted = |repair: &Repair| matches!(repair, Repair::Mean | Repair::LeastSquares);
        let is_needed = self.preset != Preset::Prune && self.preset != Preset::Retrain
            || self.order.iter().any(is_ranked)
            || self.repair.iter().any(is_fitted);
        let sampling = Sampling { seed: self.shared.seed(), rescale: self.masking.rescale };
        let estimate = self.estimate.estimate_if(is_needed, description, sampling, machine)?;
        let scored = self.masking.scored(split, &self.shared, description, machine)?;
        let estimate = estimate.map(|estimate| estimate.under(&scored.ablation));
        let search_on = self.search_on(description, estimate.as_ref(), &scored, machine)?;
        let training = (self.epochs as usize, self.shared.seed());
        let is_trained = self.repair.contains(&Repair::Training);
        let retraining = is_trained.then(|| Retraining::new(description, machine, training)).transpose()?;
        Ok(Plan { pools, estimate, scored, search_on, retraining })
    }

    /// Refuses contradictory orders and repairs, and --shard if rows depend on each other.
    fn check(&self) -> anyhow::Result<()> {
        let is_search = self.order.is_empty() || self.order.iter().any(|order| order.is_search());
        for (is_so, reason) in [
            (self.recompute, "with --recompute, the ranking at each step depends on the steps before it"),
            (self.repair == [Repair::Training], "retraining cannot be split into shards"),
            (!self.repair.is_empty(), "repairs cannot be split into shards"),
            (is_search, "a search chooses each set of heads by the results of the sets before it"),
            (
                self.order.contains(&Order::FisherRearranged),
                "fisher-rearranged chooses the heads of each step anew, so shards cannot be compared",
            ),
        ] {
            if is_so {
                self.shared.refuse_shard(reason)?;
            }
        }
        self.check_preset()?;
        let single =
            |order: &&Order| matches!(order, Order::GreedyForward | Order::Swap | Order::FisherRearranged);
        let is_single = self.order.is_empty() || self.order.iter().any(|order| single(&order));
        ensure!(
            !is_single || self.unit == Unit::Head && !self.uniform,
            "greedy-forward, swap and fisher-rearranged choose single heads: they cannot be combined with --unit group or --uniform"
        );
        if let Some(order) = self.order.iter().find(|order| self.recompute && !order.is_measured()) {
            bail!("--recompute ranks heads again on the masked model, which order {order} does not allow");
        }
        ensure!(!has_duplicates(&self.order), "an order is given twice in --order");
        ensure!(!has_duplicates(&self.repair), "a repair is given twice in --repair");
        Ok(())
    }

    /// Refuses options that do not apply to a preset or a repair.
    fn check_preset(&self) -> anyhow::Result<()> {
        let is_masked_otherwise =
            self.masking.rescale || self.masking.ablation.ablation != AblationKind::Zero;
        ensure!(
            self.repair.is_empty() || !is_masked_otherwise,
            "--rescale and --ablation cannot be combined with repairs"
        );
        let (is_retrained, is_methods) = (self.preset == Preset::Retrain, self.preset == Preset::Methods);
        ensure!(
            !is_retrained || self.repair == [Repair::Training] && !self.recompute,
            "--preset prune-and-retrain retrains the model of each step: it cannot be combined with another --repair or with --recompute"
        );
        ensure!(
            !is_methods || self.percent.is_none() && !self.recompute,
            "--preset compare-methods takes neither --percent nor --recompute; use the order importance-recomputed instead"
        );
        Ok(())
    }

    /// Refuses settings that leave no step to measure.
    fn check_steps(&self, pools: &[Pool]) -> anyhow::Result<()> {
        let steps = self.preset.steps(self.percent);
        let orders = if self.order.is_empty() { &[Order::Importance][..] } else { &self.order };
        for (pool, &order) in pools.iter().flat_map(|pool| orders.iter().map(move |order| (pool, order))) {
            let curve = Curve { pool, order, seed: None, complement: false };
            let is_some = curve.steps(steps, None).iter().any(|step| step.masked > 0);
            match steps {
                Steps::UpTo(percent) if order == Order::Swap => ensure!(
                    is_some,
                    "--percent {percent} allows masking none of {} heads: increase it or lower --keep-at-least",
                    pool.heads.len()
                ),
                Steps::Inner => ensure!(
                    is_some,
                    "no step masks some but not all of the heads: lower --step-percent or --keep-at-least"
                ),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the segments on which searches score head sets.
    fn search_on(
        &self,
        description: &Description,
        estimate: Option<&Estimate>,
        scored: &Scored,
        machine: &Machine,
    ) -> anyhow::Result<Scored> {
        let (limit, seed) = (self.selectors.search_limit as usize, self.shared.seed());
        let named = self.selectors.search_on.as_deref();
        if let (Preset::Methods, Some(Estimate { on, .. })) = (self.preset, estimate) {
            if on.split == scored.split {
                words::say!(
                    "heads are chosen on the split that is scored, `{}`: scores are optimistic",
                    on.split
                );
            }
            if named.is_none() {
                let limit = on.limit.unwrap_or(usize::MAX).min(limit);
                return Ok(Scored::sample(on.split.clone(), limit, seed, false));
            }
        }
        if !self.searches() {
            return Ok(scored.clone()); // unused
        }
        let dev = description.dev_split();
        let default = if dev == scored.split { description.train_split() } else { dev };
        let on = description.split(Some(named.unwrap_or(default)), machine)?;
        ensure!(on != scored.split, "--search-on {on} is the split that is scored: name another split");
        Ok(Scored::sample(on, limit, seed, self.masking.rescale).under(scored.ablation.clone()))
    }

    /// Returns true if head sets are scored to choose among them.
    fn searches(&self) -> bool {
        self.order.is_empty() || self.order.iter().any(|order| order.is_search() && !order.is_trained())
    }

    /// Returns the identity of the rows. Arguments keep the names from the experiments that presets replaced.
    fn identity(
        &self,
        subject: &Subject,
        estimate: Option<&Estimate>,
        (scored, search_on): (&Scored, &Scored),
        pools: &[Pool],
    ) -> anyhow::Result<Identity> {
        let mut identity = subject.identity(self.preset.experiment(), scored)?;
        identity.seed = Some(self.shared.seed());
        if let Some(estimate) = estimate {
            estimate.describe(subject, &mut identity)?;
        }
        pools[0].describe(&mut identity);
        let mut arguments: Vec<(&str, Value)> = Vec::new();
        let is_methods = self.preset == Preset::Methods;
        if is_methods {
            self.selectors.describe(&mut identity);
        } else {
            arguments.push(("recompute", self.recompute.into()));
            arguments.extend(self.selectors.of_orders(&self.order));
        }
        if is_methods || self.repair.contains(&Repair::LeastSquares) {
            arguments.push(("fit_limit", self.fit_limit.into()));
        }
        if is_methods || self.repair.contains(&Repair::Training) && self.preset != Preset::Retrain {
            arguments.push(("epochs", self.epochs.into()));
        }
        // Omitted if default, because earlier results do not contain them.
        if self.unit == Unit::Group {
            arguments.push(("unit", "group".into()));
        }
        if self.uniform {
            arguments.push(("uniform", true.into()));
        }
        if is_methods && self.recompute {
            arguments.push(("recompute", true.into()));
        }
        if self.preset == Preset::Retrain {
            arguments.push(("retrain", self.epochs.into()));
        }
        if self.searches() && (self.preset != Preset::Methods || self.selectors.search_on.is_some()) {
            Ingredient::describe(subject, search_on, "search", &mut identity)?;
            arguments.extend([
                ("search_on", search_on.split.clone().into()),
                ("search_limit", search_on.limit.into()),
                ("search_evaluations", self.selectors.evaluations.into()),
            ]);
        }
        identity.arguments.extend(arguments.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(identity)
    }

    /// Returns the curves of each order over each pool, and the floors of the pools.
    fn curves<'a>(&self, pools: &'a [Pool], orders: &[Order]) -> Vec<Curve<'a>> {
        let first = self.shared.seed();
        let seeds: Vec<u64> = (0..self.random_orders).map(|n| first.wrapping_add(n)).collect();
        let preset = self.preset;
        let of_pool = |pool| {
            let curves = Curve::all(pool, orders, &seeds, |order| preset.has_complement(order));
            curves.into_iter().chain(preset.entry().floor.then(|| Curve::floor(pool)))
        };
        pools.iter().flat_map(of_pool).collect()
    }
}

/// Refuses to search on a split whose metric is not the reported split's metric.
fn check_metrics(args: &Args, subject: &Subject, on: &str, reported: &str) -> anyhow::Result<()> {
    let [by, reported_by] = [on, reported].map(|split| subject.metric(split));
    ensure!(
        by == reported_by || args.preset == Preset::Methods && args.selectors.search_on.is_none(),
        "the search would use split `{on}`, scored by {}, but `{reported}` is scored by {}: name a split with the same metric \
         with --search-on",
        by.name(),
        reported_by.name()
    );
    Ok(())
}
