//! Methods that choose heads to mask, side by side at equal numbers of heads, each with repairs: no paper has them all on one model,
//! one budget and one test set.
//!
//! Heads are chosen on one split and scored on another. What is left of the model is scored as it is, with mean contexts folded in, with
//! its kept heads fitted, or trained further, beside a control with all heads.
mod method;
mod rearrange;
mod select;
mod selectors;

use std::process::ExitCode;

use anyhow::ensure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser};
use core_masking::HeadSet;
use experiment::{
    EstimateArgs, MeasuredRows, Pool, Retraining, RowPlan, RowSet, Sampling, SharedArgs, StepArgs, Together,
    check_heads, has_duplicates,
};
use records::{BASE, Cost, Identity, MetricName, Order, PruningRow, Repair, RepairedRow, Row, TestedRow};
use significance::TestArgs;
use subject::Scored;
use training::stop;

use method::{Method, Step};
use select::{Chosen, Selection};
use selectors::{SelectorArgs, is_dear};

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
    /// Methods that choose the heads, separated by commas [default: all for which the subject has what they need]
    #[arg(long, visible_alias = "order", action = ArgAction::Set, value_delimiter = ',', value_name = "METHODS", value_parser = PossibleValuesParser::new(Order::all().iter().map(|order| order.name())).try_map(|name| name.parse::<Order>()))]
    method: Vec<Order>,

    /// Repairs of the models that are left, separated by commas
    #[arg(
        long,
        value_enum,
        action = ArgAction::Set,
        value_delimiter = ',',
        value_name = "REPAIRS",
        default_value = "none,mean,least-squares"
    )]
    repair: Vec<Repair>,

    /// Number of random orders, with seeds counting up from --seed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    random_orders: u64,

    /// Segments to fit kept heads on, of those that heads are chosen on (Kwon et al. 2022 have 2,048): a module has no more unknowns than heads
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    fit_limit: u64,

    /// Passes over the training split in which --repair training trains a model further
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    epochs: u64,

    #[command(flatten)]
    steps: StepArgs,

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
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard("methods share what they measure, and models are repaired one after another")?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    SelectorArgs::check(&args.method, &description)?;
    // Opening the subject may train its model for an hour: whatever else can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let layout = description.layout(&machine)?;
    let pools = args.steps.pools(&layout, Together::ONE_BY_ONE)?;
    ensure!(
        pools.iter().all(|pool| !method::steps(pool).is_empty()),
        "no step masks some of the heads, but not all: --step-percent or --keep-at-least must leave one"
    );
    ensure!(!has_duplicates(&args.method), "a method is given twice in --method");
    ensure!(!has_duplicates(&args.repair), "a repair is given twice in --repair");
    ensure!(
        !layout.is_one_layer() || !args.repair.contains(&Repair::LeastSquares),
        "all layers of this model are one, so that none can be fitted by itself: name others than least-squares in --repair"
    );
    let retraining = args
        .repair
        .contains(&Repair::Training)
        .then(|| Retraining::new(&description, &machine, (args.epochs as usize, args.shared.seed())));
    let retraining = retraining.transpose()?;
    let sampling = Sampling { seed: args.shared.seed(), rescale: false };
    let estimate = args.estimate.estimate(&description, sampling, &machine)?;
    let scored = args.shared.scored(split, false);
    if estimate.on.split == scored.split {
        words::say!(
            "heads are chosen on the split that is scored, `{}`: scores are optimistic",
            scored.split
        );
    }
    let path = args.shared.output_path(EXPERIMENT, &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let arguments = (&args.shared, &args.selectors);
    let selection = Selection::new(arguments, &description, &machine, (subject.as_ref(), &estimate));
    let heads = pools.iter().map(|pool| pool.heads.len()).max().unwrap_or_default();
    let orders = if args.method.is_empty() { selection.possible(heads)? } else { args.method.clone() };
    let first = args.shared.seed();
    let seeds: Vec<u64> = (0..args.random_orders).map(|n| first.wrapping_add(n)).collect();
    let methods: Vec<Method<'_>> = pools.iter().flat_map(|pool| Method::all(pool, &orders, &seeds)).collect();
    let comparison = Comparison { args, selection: &selection, scored, retraining };
    let settings = (&args.shared, &machine, &args.test);
    let (identity, plan) = (comparison.identity(&pools)?, comparison.plan(&methods));
    let mut rows = MeasuredRows::<RepairedRow>::open(&path, identity, subject.as_ref(), plan, settings)?;
    rows.renew(|row| comparison.is_asked_for(&methods, row));
    for method in &methods {
        comparison.measure_method(method, &mut rows)?;
    }
    words::print_line(rows.finish()?.path.display())?;
    Ok(())
}

/// Parts that all methods share.
struct Comparison<'a> {
    args: &'a Args,
    selection: &'a Selection<'a>,
    scored: Scored,
    retraining: Option<Retraining<'a>>,
}

impl Comparison<'_> {
    fn identity(&self, pools: &[Pool]) -> anyhow::Result<Identity> {
        let mut identity = self.selection.subject.identity(EXPERIMENT, &self.scored)?;
        identity.seed = Some(self.args.shared.seed());
        self.selection.estimate.describe(self.selection.subject, &mut identity)?;
        pools[0].describe(&mut identity);
        identity.arguments.insert("epochs".to_owned(), self.args.epochs.into());
        identity.arguments.insert("fit_limit".to_owned(), self.args.fit_limit.into());
        self.args.selectors.describe(&mut identity);
        Ok(identity)
    }

    /// Each method with each repair is a family.
    fn plan(&self, methods: &[Method<'_>]) -> RowPlan {
        let none = HeadSet::none();
        let of = |method: &Method<'_>, repair| {
            let steps = method.steps_of(repair);
            (method.row(steps[0], &none, MetricName::default(), repair).family(), steps.len())
        };
        let of_method = |method| self.args.repair.iter().map(move |&repair| of(method, repair));
        RowPlan { families: methods.iter().flat_map(of_method).collect(), ..RowPlan::default() }
    }

    fn is_asked_for(&self, methods: &[Method<'_>], row: &RepairedRow) -> bool {
        let curve = PruningRow::from(row).curve();
        self.args.repair.contains(&row.repair) && methods.iter().any(|method| method.id() == curve)
    }

    /// Chooses the heads of a method, unless all its rows are there, and adds the rows that are missing after each repair.
    fn measure_method(
        &self,
        method: &Method<'_>,
        rows: &mut MeasuredRows<RepairedRow>,
    ) -> anyhow::Result<()> {
        let metric = self.selection.subject.metric(&self.scored.split).name();
        let none = HeadSet::none();
        let is_due = |repair: &Repair| {
            let steps = method.steps_of(*repair);
            steps.into_iter().any(|step| rows.is_due(&method.row(step, &none, metric, *repair)))
        };
        let repairs: Vec<Repair> = self.args.repair.iter().copied().filter(is_due).collect();
        if repairs.is_empty() {
            return Ok(());
        }
        let is_again = self.args.shared.again;
        let chosen = match if is_again { None } else { chosen_before(method, rows)? } {
            Some(chosen) => chosen,
            None => {
                let (chosen, seconds) = self.selection.choose_timed(method)?;
                if let Some(seconds) = seconds {
                    rows.note_choosing(method.order.name(), seconds);
                }
                chosen
            }
        };
        let control = Chosen { masked: none, cost: Cost::default() };
        for repair in repairs {
            let mut due = Vec::new();
            for step in method.steps_of(repair) {
                let place = method.steps().iter().position(|own| *own == step);
                let Chosen { masked, cost } = place.map_or(&control, |place| &chosen[place]);
                let row = method.row(step, masked, metric, repair);
                match rows.rows().find(|stored| stored.key() == row.key()) {
                    Some(stored) => check_heads(stored, &stored.masked_heads, Some(masked))?,
                    None => {
                        let &Cost { forward, backward, updates: selection_updates } = cost;
                        let row = RepairedRow { forward, backward, selection_updates, ..row };
                        due.push(RowSet { masked: masked.clone(), rows: vec![row] });
                    }
                }
            }
            self.measure(method, repair, due, rows)?;
        }
        Ok(())
    }

    /// Repairs the models without these heads and adds their rows.
    fn measure(
        &self,
        method: &Method<'_>,
        repair: Repair,
        sets: Vec<RowSet<RepairedRow>>,
        rows: &mut MeasuredRows<RepairedRow>,
    ) -> anyhow::Result<()> {
        let (subject, on) = (self.selection.subject, &self.selection.estimate.on);
        match repair {
            Repair::None => rows.measure(subject, &self.scored, BASE, sets)?,
            Repair::Mean => {
                let folded = self.scored.clone().under(self.selection.estimate.mean_ablation());
                rows.measure(subject, &folded, BASE, sets)?;
            }
            Repair::LeastSquares => {
                let limit = on.limit.map(|limit| limit.min(self.args.fit_limit as usize));
                let few = Scored { limit, ..on.clone() };
                for set in sets {
                    stop::check()?;
                    let fitted = subject.refitted(&set.masked, &few)?;
                    rows.measure_other(fitted.as_ref(), subject, &self.scored, set)?;
                }
            }
            Repair::Training => {
                let Some(retraining) = &self.retraining else { return Ok(()) };
                for set in sets {
                    retraining.measure((subject, &self.scored), method.pool.scope, set, rows)?;
                }
            }
        }
        Ok(())
    }
}

/// The heads that a dear method has chosen already, if rows of any repair hold them for all its steps.
fn chosen_before(
    method: &Method<'_>,
    rows: &MeasuredRows<RepairedRow>,
) -> anyhow::Result<Option<Vec<Chosen>>> {
    if !is_dear(method.order) {
        return Ok(None);
    }
    let is_own = |row: &&RepairedRow| PruningRow::from(*row).curve() == method.id();
    let of = |step: Step| rows.rows().filter(is_own).find(|row| row.step == step.place);
    let Some(stored) = method.steps().into_iter().map(of).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let chosen = |row: &RepairedRow| Ok(Chosen { masked: row.masked_heads.parse()?, cost: row.cost() });
    stored.into_iter().map(chosen).collect::<anyhow::Result<_>>().map(Some)
}
