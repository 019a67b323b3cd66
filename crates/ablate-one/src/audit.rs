//! Tests whether a list of heads is better than random sets with equal numbers of heads per layer.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::Parser;
use core_masking::{HeadId, HeadLayout, HeadScores, HeadSet};
use experiment::{
    Estimate, EstimateArgs, MaskingArgs, MeasuredRows, Oracle, RowPlan, RowSet, Sampling, SharedArgs,
    random_order,
};
use heads::experiment::AUDIT;
use records::{AuditRow, BASE, Order, Row};
use significance::TestArgs;
use stats::overlap;
use subject::{Description, Scored, Subject};
use training::Machine;

/// Masks a list of heads and random sets with equal numbers of heads per layer, and ranks the list among them.
///
/// --split takes several splits, separated by commas, and each gets its own file. If the setup has a split for importance, also counts how
/// many heads of the list are among those that --by ranks first, with equal numbers per layer. Writes a row for each set soon after it is
/// scored, and resumes a killed run. Existing results are used and missing ones are measured; --again measures everything again.
#[derive(Debug, Parser)]
#[command(name = "audit", version, args_override_self = true)]
struct Args {
    /// The list: a file with heads, or heads such as self:2:5 or, in a model with one attention type, L2H5 or 2:5; layers and heads count
    /// from 1
    #[arg(value_name = "HEADS", index = 2, required = true, num_args = 1..)]
    heads: Vec<String>,

    /// Number of random sets, with seeds counting up from --seed
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(200..=100_000))]
    draws: u64,

    /// Criterion that ranks heads on other data: importance, another measured criterion, or oracle, which masks each head
    #[arg(long, value_enum, value_name = "ORDER", hide_possible_values = true, default_value_t = Order::Importance)]
    by: Order,

    #[command(flatten)]
    estimate: EstimateArgs,

    #[command(flatten)]
    masking: MaskingArgs,

    #[command(flatten)]
    test: TestArgs,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    let list = read(&args.heads, &description.layout(&machine)?)?;
    let splits = args.plan(&description, &machine)?;
    let subject = description.open(&machine, &args.shared.results)?;
    let audit = Audit { args, machine: &machine, description: &description, subject: &subject, list };
    let sets = audit.sets();
    for split in splits {
        words::print_line(audit.measure(split, &sets)?.display())?;
    }
    Ok(())
}

/// A split to score, with its settings.
struct Planned {
    scored: Scored,
    /// Ranks heads on another split; `None` without such a split.
    estimate: Option<Estimate>,
    path: PathBuf,
}

impl Args {
    /// Checks everything that can be checked before the model is opened, since opening may train it for an hour.
    fn plan(&self, description: &Description, machine: &Machine) -> anyhow::Result<Vec<Planned>> {
        let Self { by, shared, masking, .. } = self;
        ensure!(
            *by == Order::Oracle || by.is_measured(),
            "--by {by} does not rank single heads: expected a measured criterion or oracle"
        );
        let named = shared.split.as_deref().map_or(vec![None], |named| named.split(',').map(Some).collect());
        ensure!(
            named.len() == 1 || shared.output.is_none(),
            "--output allows only one split, since each split has its own file"
        );
        let sampling = Sampling { seed: shared.seed(), rescale: masking.rescale };
        let estimate = self.estimate.estimate_if(false, description, sampling, machine)?;
        let planned = |split| {
            let scored = masking.scored(description.split(split, machine)?, shared, description, machine)?;
            let estimate = estimate.clone().filter(|estimate| estimate.on.split != scored.split);
            if let Some(on) = self.estimate.estimate_on.as_ref().filter(|_| estimate.is_none()) {
                bail!("--estimate-on {on} is a split that is scored: name another split");
            }
            let path = shared.output_path(AUDIT.name, description, &scored);
            shared.check_writable(&path)?;
            let estimate = estimate.map(|estimate| estimate.under(&scored.ablation));
            Ok(Planned { scored, estimate, path })
        };
        named.into_iter().map(planned).collect()
    }
}

/// Reads the list from a file or from arguments.
fn read(heads: &[String], layout: &HeadLayout) -> anyhow::Result<HeadSet> {
    let text = match heads {
        [file] if Path::new(file).is_file() => {
            fs::read_to_string(file).with_context(|| format!("cannot read `{file}`"))?
        }
        _ => heads.join(" "),
    };
    let what = || format!("invalid list of heads `{}` (a file or heads)", words::excerpt(&heads.join(" ")));
    let list = layout.list(&text).with_context(what)?;
    let is_all_or_none =
        |module: &Vec<HeadId>| module.iter().all(|id| list.contains(*id) == list.contains(module[0]));
    ensure!(
        !layout.heads_by_module().iter().all(is_all_or_none),
        "the list contains all heads of its layers, so no other set has equally many heads in each layer"
    );
    Ok(list)
}

/// State shared by all splits.
struct Audit<'a> {
    args: &'a Args,
    machine: &'a Machine,
    description: &'a Description,
    subject: &'a Subject,
    list: HeadSet,
}

impl Audit<'_> {
    /// Measures the missing rows of a split; returns their file.
    fn measure(&self, planned: Planned, sets: &[RowSet<AuditRow>]) -> anyhow::Result<PathBuf> {
        let Planned { scored, estimate, path } = planned;
        let Self { args, machine, subject, .. } = *self;
        let mut identity = subject.identity(AUDIT.name, &scored)?;
        identity.seed = Some(args.shared.seed());
        identity.arguments.insert("list".to_owned(), self.list.names().into());
        if let Some(estimate) = &estimate {
            identity.arguments.insert("by".to_owned(), args.by.name().into());
            estimate.describe(subject, &mut identity)?;
        }
        let places = sets.iter().enumerate().map(|(place, set)| (set.rows[0].name(), place)).collect();
        let families = BTreeMap::from([("list".to_owned(), 1), ("draws".to_owned(), 0)]);
        let plan = RowPlan { families, places };
        let mut rows: MeasuredRows<AuditRow> =
            MeasuredRows::open(&path, identity, subject, plan, (&args.shared, machine, &args.test))?;
        let mut due = Vec::new();
        for RowSet { masked, rows: own } in sets {
            for row in own.iter().filter(|row| rows.is_due(row)) {
                let mut row = AuditRow { metric: subject.metric(&scored.split).name(), ..row.clone() };
                if let Some(estimate) = estimate.as_ref().filter(|_| row.draw.is_none()) {
                    self.find_again(estimate, &mut row)?;
                }
                // a small layer has few sets, each drawn several times but measured once
                RowSet::add(&mut due, masked.clone(), row);
            }
        }
        rows.measure(subject, &scored, BASE, due)?;
        Ok(rows.finish()?.path)
    }

    /// Returns the list and the random sets, each with its row.
    fn sets(&self) -> Vec<RowSet<AuditRow>> {
        let set = |draw: Option<u64>, masked: HeadSet| {
            let row = AuditRow { draw, masked_heads: masked.names(), ..AuditRow::default() };
            RowSet { masked, rows: vec![row] }
        };
        let (heads, first) = (self.subject.layout().heads(), self.args.shared.seed());
        let draw = |n| {
            let seed = first.wrapping_add(n);
            set(Some(seed), matched(&self.list, &random_order(&heads, self.description.name(), seed)))
        };
        [set(None, self.list.clone())].into_iter().chain((0..self.args.draws).map(draw)).collect()
    }

    /// Counts the heads of the list among those that the estimate ranks first.
    fn find_again(&self, estimate: &Estimate, row: &mut AuditRow) -> anyhow::Result<()> {
        let mut order = self.scores(estimate)?.ascending();
        order.reverse();
        let first = matched(&self.list, &order);
        let modules = self.subject.layout().heads_by_module();
        let held = |module: &Vec<HeadId>| module.iter().filter(|id| self.list.contains(**id)).count();
        let groups: Vec<(usize, usize)> = modules.iter().map(|module| (module.len(), held(module))).collect();
        let found = first.iter().filter(|id| self.list.contains(*id)).count();
        let (expected, p) = overlap::by_chance(&groups, found);
        row.found_again = Some(found);
        (row.found_again_by_chance, row.p_found_again) = (Some(expected), Some(p));
        Ok(())
    }

    /// Returns scores that are higher for more important heads.
    fn scores(&self, estimate: &Estimate) -> anyhow::Result<HeadScores> {
        let Self { args, machine, description, subject, .. } = *self;
        if args.by != Order::Oracle {
            return Ok(estimate.scores(args.by, subject, &HeadSet::none())?);
        }
        let heads = subject.layout().heads();
        let oracle = Oracle::measured(&estimate.on, &heads, (description, subject), (&args.shared, machine))?;
        oracle.scores(&heads).context("a head has no row in the results of ablate-one")
    }
}

/// Returns the first heads of an order, with the list's number of heads per layer.
fn matched(list: &HeadSet, order: &[HeadId]) -> HeadSet {
    let mut left: BTreeMap<_, usize> = BTreeMap::new();
    list.iter().for_each(|id| *left.entry(id.module()).or_default() += 1);
    let is_first =
        |id: &HeadId| left.get_mut(&id.module()).filter(|more| **more > 0).map(|more| *more -= 1).is_some();
    order.iter().copied().filter(is_first).collect()
}
