//! When heads become important during training: Michel et al. (2019), Section 6, Figure 5.
//!
//! The pruning curve of Section 4.2 on every kept checkpoint, each with its own ranking by importance.
use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use core_masking::{HeadLayout, HeadSet};
use experiment::{
    Estimate, EstimateArgs, MaskingArgs, MaskingUnits, MeasuredRows, Pool, RowPlan, RowSet, Sampling,
    SharedArgs, check_heads,
};
use heads::experiment::TRAINING_DYNAMICS;
use records::{DynamicsRow, Identity, MetricName, Order, Scope, TestedRow};
use significance::TestArgs;
use subject::{Description, Scored, Subject, sha256_of_weights};
use training::{Machine, TrainingCheckpoint, stop};

/// Masks more and more heads of each checkpoint of the training, the least important first (Figure 5).
///
/// [dynamics] in the setup's file sets which epochs and steps training keeps; without that section it keeps all epochs. For a ready-made
/// checkpoint, `checkpoint.revisions` names the checkpoints. Writes a row for each step of a checkpoint's curve soon after it is scored,
/// and resumes a killed run. Existing results are used and missing ones are measured; --again measures everything again.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// Heads masked at each step, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=99))]
    step_percent: u64,

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
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Training may take an hour, so everything else that can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let sampling = Sampling { seed: args.shared.seed(), rescale: args.masking.rescale };
    let estimate = args.estimate.estimate(&description, sampling, &machine)?;
    let scored = args.masking.scored(split, &args.shared, &description, &machine)?;
    let path = args.shared.output_path(TRAINING_DYNAMICS.name, &description, &scored);
    args.shared.check_writable(&path)?;
    let checkpoints = description.checkpoints(&machine, &args.shared.results)?;

    let dynamics = Dynamics { args, machine: &machine, description: &description, scored, estimate };
    let Some(last) = checkpoints.last() else { bail!("training kept no checkpoint") };
    let subject = description.open_at(last, &machine)?;
    let plan = plan(&checkpoints, dynamics.counts(&subject.layout()).len());
    let identity = dynamics.identity(&subject, &checkpoints)?;
    let settings = (&args.shared, &machine, &args.test);
    let mut rows = MeasuredRows::open(&path, identity, &subject, plan, settings)?;
    drop(subject);
    for checkpoint in &checkpoints {
        dynamics.curve(checkpoint, &mut rows)?;
    }
    words::print_line(rows.finish()?.path.display())?;
    Ok(())
}

/// Settings shared by the curves of all checkpoints.
struct Dynamics<'a> {
    args: &'a Args,
    machine: &'a Machine,
    description: &'a Description,
    scored: Scored,
    estimate: Estimate,
}

impl Dynamics<'_> {
    /// Describes everything that the rows depend on, including the weights of all checkpoints.
    fn identity(&self, subject: &Subject, checkpoints: &[TrainingCheckpoint]) -> anyhow::Result<Identity> {
        let mut identity = subject.identity(TRAINING_DYNAMICS.name, &self.scored)?;
        identity.seed = Some(self.args.shared.seed());
        identity.weights = None;
        let mut known: BTreeMap<String, u64> = BTreeMap::new();
        for checkpoint in checkpoints {
            let updates = checkpoint.updates as u64;
            let weights = sha256_of_weights(&checkpoint.folder)?;
            if let Some(other) = known.insert(weights.clone(), updates) {
                // This has happened to public checkpoints: <https://github.com/EleutherAI/pythia/issues/205>
                words::warn(&format!(
                    "the checkpoints after {other} and {updates} updates have the same weights, so their curves are equal: one \
                     of their folders may contain a file of another checkpoint"
                ));
            }
            identity.data.insert(format!("weights after {updates} updates"), weights);
        }
        self.estimate.describe(subject, &mut identity)?;
        identity.arguments.insert("step_percent".to_owned(), self.args.step_percent.into());
        Ok(identity)
    }

    /// Returns the number of masked heads at each step. The last step, without heads, is left out: it shows little about a checkpoint.
    fn counts(&self, layout: &HeadLayout) -> Vec<usize> {
        let step_percent = self.args.step_percent;
        let pool = Pool {
            scope: Scope::All,
            heads: layout.heads(),
            keep_at_least: 0,
            step_percent,
            units: MaskingUnits::SINGLE_HEADS,
        };
        let mut counts = pool.counts();
        counts.pop();
        counts
    }

    /// Measures the steps of a checkpoint that have no row yet.
    fn curve(
        &self,
        checkpoint: &TrainingCheckpoint,
        rows: &mut MeasuredRows<DynamicsRow>,
    ) -> anyhow::Result<()> {
        let subject = self.description.open_at(checkpoint, self.machine)?;
        let layout = subject.layout();
        let (counts, heads) = (self.counts(&layout), layout.heads().len());
        let metric = subject.metric(&self.scored.split).name();
        let is_due = |&step: &usize| rows.is_due(&row(checkpoint, (step, heads), &HeadSet::none(), metric));
        let missing: Vec<usize> = (0..counts.len()).filter(is_due).collect();
        let Some(base) =
            missing.first().map(|&step| row(checkpoint, (step, heads), &HeadSet::none(), metric).base())
        else {
            return Ok(());
        };
        stop::check()?;
        if !self.machine.quiet {
            words::say!("{}", described(checkpoint));
        }
        let order = self.estimate.scores(Order::Importance, &subject, &HeadSet::none())?.ascending();
        let set = |step: usize| order[..counts[step]].iter().copied().collect::<HeadSet>();
        for row in rows.rows().filter(|row| row.updates == checkpoint.updates) {
            let now = (row.step < counts.len()).then(|| set(row.step));
            check_heads(row, &row.masked_heads, now.as_ref())?;
        }
        let row_set = |step: usize| {
            let masked = set(step);
            RowSet { rows: vec![row(checkpoint, (step, heads), &masked, metric)], masked }
        };
        let sets: Vec<RowSet<DynamicsRow>> = missing.into_iter().map(row_set).collect();
        Ok(rows.measure(&subject, &self.scored, &base, sets)?)
    }
}

/// Returns the rows of all checkpoints, each with a curve of `steps`.
fn plan(checkpoints: &[TrainingCheckpoint], steps: usize) -> RowPlan {
    let families = checkpoints.iter().map(|checkpoint| (checkpoint.updates.to_string(), steps)).collect();
    let names = checkpoints
        .iter()
        .flat_map(|checkpoint| (0..steps).map(|step| DynamicsRow::name_of(checkpoint.updates, step)));
    RowPlan { families, places: names.zip(0..).collect() }
}

/// Returns a row without scores, which are filled in when it is measured.
fn row(
    checkpoint: &TrainingCheckpoint,
    (step, heads): (usize, usize),
    masked: &HeadSet,
    metric: MetricName,
) -> DynamicsRow {
    DynamicsRow {
        epoch: checkpoint.epoch,
        updates: checkpoint.updates,
        step,
        masked: masked.len(),
        heads,
        metric,
        masked_heads: masked.names(),
        ..DynamicsRow::default()
    }
}

fn described(checkpoint: &TrainingCheckpoint) -> String {
    match checkpoint.epoch {
        Some(epoch) => format!("epoch {epoch}, after {} updates", checkpoint.updates),
        None => format!("after {} updates", checkpoint.updates),
    }
}
