//! When heads become important: Michel et al. (2019), Section 6, Figure 5.
//!
//! The pruning curve of Section 4.2 on the checkpoints that training has left, with the importance of heads measured anew
//! on each.
use std::process::ExitCode;

use anyhow::ensure;
use clap::Parser;
use core_masking::{HeadLayout, HeadSet};
use records::{DynamicsRow, Provenance, Row, RowWriter, Signature, sha256_file};
use stats::adjust::adjusted;
use subject::{
    Description, Estimate, EstimateArgs, Evaluation, Machine, Order, Pool, Scored, SharedArgs,
    TrainingCheckpoint,
};

/// Masks more and more heads of each checkpoint of the training, the least important first (Figure 5).
///
/// The subject's file says in [dynamics] which epochs and steps training keeps; without that section all epochs are. Writes
/// a row for each step of a checkpoint's curve as soon as it is scored, and continues a file that a killed run has left.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// Heads masked at each step, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=99))]
    step_percent: u64,

    /// Paired bootstrap resamples for each step, up to a million; 0 skips the test
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    resamples: u64,

    /// Multiply the kept heads of a layer by heads / kept
    #[arg(long)]
    rescale: bool,

    #[command(flatten)]
    estimate: EstimateArgs,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

fn main() -> ExitCode {
    subject::exit_code(run(&Args::parse()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    let machine = args.shared.machine()?;
    let description = Description::read(&args.shared.subject)?;
    // Training may take an hour: whatever else can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let estimate = args.estimate.estimate(&description, (args.shared.seed, args.rescale), &machine)?;
    let path = args.shared.output_path("training-dynamics", &description, &split);
    records::check_writable(&path)?;
    description.train(&machine, &args.shared.results, false)?;
    let checkpoints = description.checkpoints(&machine)?;

    let scored = Scored::first(split, args.shared.limit, args.rescale);
    let dynamics = Dynamics { args, machine: &machine, description: &description, scored, estimate };
    let mut rows = RowWriter::open(&path, &dynamics.signature(&checkpoints)?, args.shared.existing())?;
    let expected = checkpoints.len() * dynamics.counts(&description.layout(&machine)?).len();
    if args.shared.restart && is_finished(&rows.rows().collect::<Vec<_>>(), expected) {
        rows.discard(|_| true)?;
    }
    for checkpoint in &checkpoints {
        dynamics.curve(checkpoint, &mut rows)?;
    }
    rows.finish(adjust)?;
    println!("{}", path.display());
    Ok(())
}

/// What the curves of all checkpoints have in common.
struct Dynamics<'a> {
    args: &'a Args,
    machine: &'a Machine,
    description: &'a Description,
    scored: Scored,
    estimate: Estimate,
}

impl Dynamics<'_> {
    /// All that the rows depend on: the weights of all checkpoints among them.
    fn signature(&self, checkpoints: &[TrainingCheckpoint]) -> anyhow::Result<Signature> {
        let Some(last) = checkpoints.last() else { anyhow::bail!("training has left no checkpoint") };
        let subject = self.description.open_at(last, self.machine)?;
        let mut identity = subject.identity("training-dynamics", &self.scored)?;
        identity.seed = self.args.shared.seed;
        identity.weights = None;
        for checkpoint in checkpoints {
            let name = format!("weights after {} updates", checkpoint.updates);
            identity.data.insert(name, sha256_file(&checkpoint.weights())?);
        }
        self.estimate.describe(subject.as_ref(), &mut identity)?;
        identity.arguments.extend([
            ("resamples".to_owned(), self.args.resamples.into()),
            ("step_percent".to_owned(), self.args.step_percent.into()),
        ]);
        let (device, threads) = (self.machine.device_name(), self.machine.threads);
        Ok(Signature::new(identity, Provenance::collect(&device, threads, subject::libraries())))
    }

    /// Number of masked heads at each step. Without any head there is nothing left to learn of a checkpoint.
    fn counts(&self, layout: &HeadLayout) -> Vec<usize> {
        let step_percent = self.args.step_percent;
        let pool =
            Pool { attention: "all".to_owned(), heads: layout.heads(), keep_at_least: 0, step_percent };
        let mut counts = pool.counts();
        counts.pop();
        counts
    }

    /// The steps of a checkpoint that have no row yet.
    fn curve(
        &self,
        checkpoint: &TrainingCheckpoint,
        rows: &mut RowWriter<DynamicsRow>,
    ) -> anyhow::Result<()> {
        let subject = self.description.open_at(checkpoint, self.machine)?;
        let layout = subject.layout();
        let (counts, heads) = (self.counts(&layout), layout.heads().len());
        let is_missing = |step: &usize| !rows.contains(&(checkpoint.updates, *step));
        let missing: Vec<usize> = (0..counts.len()).filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if !self.machine.quiet {
            eprintln!("{}", described(checkpoint));
        }
        let order = self.estimate.scores(Order::Importance, subject.as_ref(), &HeadSet::none())?.ascending();
        let set = |step: usize| order[..counts[step]].iter().copied().collect::<HeadSet>();
        for row in rows.rows().filter(|row| row.updates == checkpoint.updates) {
            let is_same = row.step < counts.len() && row.masked_heads == set(row.step).names();
            let DynamicsRow { step, updates, .. } = row;
            ensure!(
                is_same,
                "step {step} after {updates} updates masked other heads than now: compute it again with --overwrite"
            );
        }
        // Step 0 is the base of all others, whether it has its row or not.
        let others = missing.iter().copied().filter(|&step| step > 0);
        let steps: Vec<usize> = std::iter::once(0).chain(others).collect();
        let sets: Vec<HeadSet> = steps.iter().map(|&step| set(step)).collect();
        let mut base: Option<Evaluation> = None;
        subject.evaluate(&self.scored, &sets, &mut |index, evaluation| {
            let base = base.get_or_insert_with(|| evaluation.clone());
            let own = rows.rows().filter(|row| row.updates == checkpoint.updates);
            subject::check_base(own.map(|row| row.base_score), base.score)?;
            if !missing.contains(&steps[index]) {
                return Ok(());
            }
            Ok(rows.push(self.row((checkpoint, steps[index], heads), &sets[index], &evaluation, base)?)?)
        })?;
        Ok(())
    }

    /// A row without adjusted p-values, which follow when all curves are there.
    fn row(
        &self,
        (checkpoint, step, heads): (&TrainingCheckpoint, usize, usize),
        masked: &HeadSet,
        variant: &Evaluation,
        base: &Evaluation,
    ) -> Result<DynamicsRow, subject::Error> {
        let compared = variant.compare_with(base, self.args.resamples as usize, self.args.shared.seed)?;
        let compared = if masked.is_empty() { compared.untested() } else { compared };
        Ok(DynamicsRow {
            epoch: checkpoint.epoch,
            updates: checkpoint.updates,
            step,
            masked: masked.len(),
            heads,
            metric: variant.metric().to_owned(),
            base_score: compared.base,
            score: compared.variant,
            score_delta: compared.delta,
            delta_low: compared.interval.map(|(low, _)| low),
            delta_high: compared.interval.map(|(_, high)| high),
            p_value: compared.p_value,
            p_holm: None,
            p_benjamini_hochberg: None,
            p_unpaired_t: compared.p_unpaired_t,
            p_mcnemar: compared.p_mcnemar,
            masked_heads: masked.names(),
        })
    }
}

fn described(checkpoint: &TrainingCheckpoint) -> String {
    match checkpoint.epoch {
        Some(epoch) => format!("epoch {epoch}, after {} updates", checkpoint.updates),
        None => format!("after {} updates", checkpoint.updates),
    }
}

/// Whether all rows are there and all p-values adjusted: what a run that finished leaves, and one that was killed does not.
fn is_finished(rows: &[&DynamicsRow], expected: usize) -> bool {
    rows.len() == expected && rows.iter().all(|row| row.p_value.is_some() == row.p_holm.is_some())
}

/// Fills in the adjusted p-values: the steps of a checkpoint are a family of tests.
fn adjust(rows: &mut [DynamicsRow]) {
    rows.sort_by_key(Row::key);
    for curve in rows.chunk_by_mut(|left, right| left.updates == right.updates) {
        let mut tested: Vec<&mut DynamicsRow> =
            curve.iter_mut().filter(|row| row.p_value.is_some()).collect();
        let p_values: Vec<f64> = tested.iter().filter_map(|row| row.p_value).collect();
        for (row, (holm, benjamini_hochberg)) in tested.iter_mut().zip(adjusted(&p_values)) {
            row.p_holm = Some(holm);
            row.p_benjamini_hochberg = Some(benjamini_hochberg);
        }
    }
}
