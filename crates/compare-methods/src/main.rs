//! Methods that choose heads to mask, side by side at equal numbers of heads, each with repairs: no paper has them all on one model,
//! one budget and one test set.
//!
//! Heads are chosen on one split and scored on another. Orders are those of the table of measures, with the oracle of the split that
//! they are chosen on; what is left of the model is scored as it is, with mean contexts folded in, or with its kept heads fitted. Training
//! further is left to `iterative-prune --retrain`, where each model is compared with a control.
mod method;

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};
use core_masking::{HeadId, HeadScores, HeadSet, Needs};
use experiment::{
    Estimate, EstimateArgs, HeadSweep, MeasuredRows, Oracle, Pool, RowPlan, RowSet, Sampling, SharedArgs,
    StepArgs, Together, check_heads, has_duplicates, random_order,
};
use records::{BASE, Identity, MetricName, Order, PruningRow, Repair, RepairedRow, Row, TestedRow};
use significance::TestArgs;
use subject::{Ablation, Description, Sample, Scored, Subject, Work};
use training::{Machine, stop};

use method::{Method, Passes};

/// Name of the experiment in files and signatures.
const EXPERIMENT: &str = "compare-methods";

/// Compares methods that choose heads to mask, at equal numbers of heads, each with repairs.
///
/// Writes a row for each method, number of heads and repair soon after it is scored, and resumes a killed run. Heads are chosen on the
/// split of --estimate-on, the oracle's too, and what is fitted or folded is fitted there. Importance has its complement beside it,
/// which masks the heads that importance keeps.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true, mut_arg("step_percent", |step| step.default_value("25")), mut_arg("shard", |shard| shard.hide(true)))]
struct Args {
    /// Orders of the heads, separated by commas [default: all for which the split has what they need]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ORDERS")]
    order: Vec<Order>,

    /// Repairs of the models that are left, separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "REPAIRS",
        default_value = "none,mean,least-squares"
    )]
    repair: Vec<Repair>,

    /// Number of random orders, with seeds counting up from --seed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    random_orders: u64,

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

fn main() -> ExitCode {
    experiment::run_each(Args::parse(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard("methods share what they measure, and models are repaired one after another")?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Opening the subject may train its model for an hour: whatever else can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let layout = description.layout(&machine)?;
    let pools = args.steps.pools(&layout, Together::ONE_BY_ONE)?;
    ensure!(!has_duplicates(&args.order), "an order is given twice in --order");
    ensure!(!has_duplicates(&args.repair), "a repair is given twice in --repair");
    ensure!(
        !layout.is_one_layer() || !args.repair.contains(&Repair::LeastSquares),
        "all layers of this model are one, so that none can be fitted by itself: name others than least-squares in --repair"
    );
    let sampling = Sampling { seed: args.shared.seed(), rescale: false };
    let estimate = args.estimate.estimate(&description, sampling, &machine)?;
    let scored = Scored::first(split, args.shared.limit, false);
    if estimate.on.split == scored.split {
        words::say!(
            "heads are chosen on the split that is scored, `{}`: scores are optimistic",
            scored.split
        );
    }
    let path = args.shared.output_path(EXPERIMENT, &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let comparison = Comparison {
        args,
        description: &description,
        machine: &machine,
        subject: subject.as_ref(),
        scored,
        estimate,
    };
    let methods = comparison.methods(&pools)?;
    let settings = (&args.shared, &machine, &args.test);
    let (identity, plan) = (comparison.identity(&pools)?, comparison.plan(&methods));
    let mut rows = MeasuredRows::<RepairedRow>::open(&path, identity, subject.as_ref(), plan, settings)?;
    rows.renew(|row| comparison.is_asked_for(&methods, row));
    for (repair, sets) in comparison.due(&methods, &rows)? {
        comparison.measure(repair, sets, &mut rows)?;
    }
    words::print_line(rows.finish()?.path.display())?;
    Ok(())
}

/// Parts that all methods share.
struct Comparison<'a> {
    args: &'a Args,
    description: &'a Description,
    machine: &'a Machine,
    subject: &'a dyn Subject,
    scored: Scored,
    estimate: Estimate,
}

impl Comparison<'_> {
    /// Methods that were asked for, or all for which the split that heads are chosen on has what they need.
    fn methods<'p>(&self, pools: &'p [Pool]) -> anyhow::Result<Vec<Method<'p>>> {
        let given = self.subject.measures(&self.estimate.on)?;
        let is_given = |order: &Order| match order {
            Order::By(measure) => given.contains(measure) || measure.entry().needs == Needs::Measures,
            _ => true,
        };
        let orders = match &self.args.order[..] {
            [] => Order::value_variants().iter().copied().filter(is_given).collect(),
            asked => asked.to_vec(),
        };
        let first = self.args.shared.seed();
        let seeds: Vec<u64> = (0..self.args.random_orders).map(|n| first.wrapping_add(n)).collect();
        Ok(pools.iter().flat_map(|pool| Method::all(pool, &orders, &seeds)).collect())
    }

    fn identity(&self, pools: &[Pool]) -> anyhow::Result<Identity> {
        let mut identity = self.subject.identity(EXPERIMENT, &self.scored)?;
        identity.seed = Some(self.args.shared.seed());
        self.estimate.describe(self.subject, &mut identity)?;
        pools[0].describe(&mut identity);
        Ok(identity)
    }

    /// Each method with each repair is a family.
    fn plan(&self, methods: &[Method<'_>]) -> RowPlan {
        let none = HeadSet::none();
        let of = |method: &Method<'_>, repair| {
            let family = method.row((0, &none), MetricName::default(), repair).family();
            (family, method.steps().count())
        };
        let of_method = |method| self.args.repair.iter().map(move |&repair| of(method, repair));
        RowPlan { families: methods.iter().flat_map(of_method).collect(), ..RowPlan::default() }
    }

    fn is_asked_for(&self, methods: &[Method<'_>], row: &RepairedRow) -> bool {
        let curve = PruningRow::from(row).curve();
        self.args.repair.contains(&row.repair) && methods.iter().any(|method| method.id() == curve)
    }

    /// The head sets whose rows are missing, by repair.
    fn due(
        &self,
        methods: &[Method<'_>],
        rows: &MeasuredRows<RepairedRow>,
    ) -> anyhow::Result<BTreeMap<Repair, Vec<RowSet<RepairedRow>>>> {
        let metric = self.subject.metric(&self.scored.split).name();
        let none = HeadSet::none();
        let mut due = BTreeMap::<Repair, Vec<RowSet<RepairedRow>>>::new();
        let mut segments = None;
        for method in methods {
            let row = |step: usize, masked: &HeadSet, repair| method.row((step, masked), metric, repair);
            let repairs = &self.args.repair;
            let is_due = |(step, _)| repairs.iter().any(|&repair| rows.is_due(&row(step, &none, repair)));
            if !method.steps().any(is_due) {
                continue;
            }
            let order = self.order(method)?;
            let chosen_on = match segments {
                Some(known) => known,
                None => *segments.insert(self.subject.pass(&self.estimate.on, 64, Work::Score)?.segments),
            };
            let passes = method.passes(chosen_on);
            for (step, count) in method.steps() {
                let masked = method.pool.extend(&none, &order, count);
                for &repair in repairs {
                    let own = row(step, &masked, repair);
                    match rows.rows().find(|stored| stored.key() == own.key()) {
                        Some(stored) => check_heads(stored, &stored.masked_heads, Some(&masked))?,
                        None => {
                            let Passes { forward, backward } = passes;
                            let own = RepairedRow { forward, backward, ..own };
                            RowSet::add(due.entry(repair).or_default(), masked.clone(), own);
                        }
                    }
                }
            }
        }
        Ok(due)
    }

    /// The heads, those to be masked first in front.
    fn order(&self, method: &Method<'_>) -> anyhow::Result<Vec<HeadId>> {
        let heads = &method.pool.heads;
        let mut order = match method.order {
            Order::Random => random_order(heads, self.description.name(), method.seed.unwrap_or_default()),
            Order::Oracle => method.pool.order(&self.oracle(heads)?),
            order => method.pool.order(&self.estimate.scores(order, self.subject, &HeadSet::none())?),
        };
        if method.complement {
            order.reverse();
        }
        Ok(order)
    }

    /// The score that is lost without each head on the split that heads are chosen on.
    fn oracle(&self, heads: &[HeadId]) -> anyhow::Result<HeadScores> {
        let (on, shared) = (&self.estimate.on, &self.args.shared);
        let sweep = HeadSweep::one_at_a_time(on.clone(), &self.subject.layout(), TestArgs::default());
        let path = self.description.result_path(&shared.results, "ablate-one", on);
        let found = sweep.ingredient(self.subject, heads, &path, shared, self.machine)?;
        Oracle::of(found.rows).scores(heads).context("ablate-one has no row for a head")
    }

    /// Repairs the models without these heads and adds their rows.
    fn measure(
        &self,
        repair: Repair,
        sets: Vec<RowSet<RepairedRow>>,
        rows: &mut MeasuredRows<RepairedRow>,
    ) -> anyhow::Result<()> {
        match repair {
            Repair::Mean => {
                let (size, seed) = (self.args.estimate.estimate_limit, self.args.shared.seed());
                let of = Sample { split: self.estimate.on.split.clone(), size, seed };
                let folded = self.scored.clone().under(Ablation::Mean(of));
                rows.measure(self.subject, &folded, BASE, sets)?;
            }
            Repair::LeastSquares => {
                for set in sets {
                    stop::check()?;
                    let fitted = self.subject.refitted(&set.masked, &self.estimate.on)?;
                    rows.measure_other(fitted.as_ref(), self.subject, &self.scored, set)?;
                }
            }
            _ => rows.measure(self.subject, &self.scored, BASE, sets)?,
        }
        Ok(())
    }
}
