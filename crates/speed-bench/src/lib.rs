//! Speed of a pruned model: Michel et al. (2019), Section 4.3, Table 4.
//!
//! The least important heads are removed from the weights. The full and the pruned model alternately compute one set of segments, so that
//! anything that slows the machine affects both.
mod memory;
mod neighbours;
mod timing;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::{ArgAction, Parser};
use core_masking::{HeadId, HeadSet};
use experiment::{
    AblationArgs, AblationKind, Estimate, EstimateArgs, OpenRows, Sampling, SharedArgs, has_duplicates,
    random_order,
};
use heads::experiment::SPEED_BENCH;
use records::{Identity, Order, RowWriter, Signature, SpeedRow};
use subject::{Ablation, Description, Scored, Subject, Work};
use training::{Machine, Precision};

use memory::PeakOf;
use timing::{Settling, Timed};

/// Times the full model and one with the least important heads removed, in turn (Table 4).
///
/// Writes a row for each share of removed heads and each batch size: segments per second, the ratio with its 95% interval, the ratio
/// predicted from multiply-adds, parameters and peak memory. Translators use their beam search. A row is timed until the interval is narrow
/// enough or its time is up.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// Shares of heads to remove, in percent, separated by commas
    #[arg(long, action = ArgAction::Set, value_delimiter = ',', value_name = "PERCENT", default_value = "50", value_parser = clap::value_parser!(u64).range(1..=99))]
    percent: Vec<u64>,

    /// Batch sizes, in segments, separated by commas
    #[arg(long, action = ArgAction::Set, value_delimiter = ',', value_name = "N", default_value = "1,4,16,64", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    batch_size: Vec<u64>,

    /// Minimum number of timed passes of each model, after a warm-up pass
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=1_000))]
    repeats: u64,

    /// Time more passes until the 95% interval of the ratio is narrower than this, in percent of the ratio
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    width: f64,

    /// Maximum time for a row, in minutes; after that a wider interval is accepted
    #[arg(long, value_name = "MINUTES", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    minutes: u64,

    /// Instead of scoring segments, continue each by N tokens, greedily and with a key-value cache; for language models
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    continue_by: Option<u64>,

    /// Fold the mean outputs of the removed heads over 2,000 segments into the bias of the output projection
    #[arg(long)]
    fold: bool,

    /// Ranking of the heads; the first ones are removed
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Order::Importance)]
    order: Order,

    #[command(flatten)]
    estimate: EstimateArgs,

    /// Print the peak memory of one pass, in bytes, for the process that measures speed
    #[arg(long, hide = true, value_enum)]
    peak_of: Option<PeakOf>,

    /// Heads that `--peak-of pruned` removes
    #[arg(long, hide = true, value_delimiter = '+')]
    removed: Vec<HeadId>,

    /// Batch size for `--peak-of`
    #[arg(long, hide = true, default_value_t = 1)]
    peak_batch_size: u64,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

impl Args {
    /// Returns the rule for how long a row is timed.
    fn settling(&self) -> Settling {
        Settling {
            repeats: self.repeats as usize,
            width: self.width / 100.0,
            limit: Duration::from_secs(60 * self.minutes),
        }
    }

    /// Returns what replaces the output of removed heads.
    fn ablation(&self, description: &Description, machine: &Machine) -> Result<Ablation, experiment::Error> {
        // Measuring means would raise the peak memory of a process; the bias itself is too small to matter.
        let holds_means = self.fold && self.peak_of.is_none();
        let ablation = if holds_means { AblationKind::Mean } else { AblationKind::Zero };
        let choice = AblationArgs { ablation, reference_on: None, reference_limit: None, draw: None };
        choice.build(self.shared.seed(), description, machine)
    }

    /// Returns the work to time.
    fn work(&self) -> Work {
        self.continue_by.map_or(Work::Score, |tokens| Work::Continue(tokens as usize))
    }
}

/// Parses a number above 0.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err("must be a number above 0".to_owned()),
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard("a ratio of speeds must be measured on a single machine")?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let ablation = args.ablation(&description, &machine)?;
    let scored = args.shared.scored(split, false).under(ablation);
    if let Some(model) = args.peak_of {
        let subject = description.open(&machine, &args.shared.results)?;
        return memory::print_peak(
            model,
            subject,
            &args.removed,
            &scored,
            (args.peak_batch_size, args.work()),
        );
    }
    let removed = removed_counts(&args.percent, description.layout(&machine)?.heads().len())?;
    ensure!(
        args.order != Order::Oracle,
        "order oracle requires results on the split that is timed: choose another order"
    );
    let sampling = Sampling { seed: args.shared.seed(), rescale: false };
    let estimate = args.estimate.estimate_if(args.order.is_measured(), &description, sampling, &machine)?;
    ensure!(!has_duplicates(&args.batch_size), "a batch size is given twice in --batch-size");
    ensure!(!has_duplicates(&removed), "two of the shares in --percent remove the same number of heads");
    let stem = if args.continue_by.is_some() { "speed-bench-decoding" } else { "speed-bench" };
    let of_order = (args.order != Order::Importance).then(|| format!("{stem}-{}", args.order));
    let path = args.shared.output_path(of_order.as_deref().unwrap_or(stem), &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let identity = identity(args, &subject, &scored, estimate.as_ref(), &machine)?;
    let run = machine.provenance();
    let OpenRows { path, writer: mut rows, .. } =
        args.shared.open_rows::<SpeedRow>(&path, &Signature::new(identity, run))?;

    let order = match &estimate {
        Some(estimate) if args.order.is_measured() => {
            estimate.scores(args.order, &subject, &HeadSet::none())?.ascending()
        }
        _ => random_order(&subject.layout().heads(), description.name(), args.shared.seed()),
    };
    let bench = Bench { args, machine: &machine, subject: &subject, scored };
    for count in removed {
        bench.share(&order[..count].iter().copied().collect(), &mut rows)?;
    }
    rows.finish()?;
    words::print_line(path.display())?;
    Ok(())
}

/// Returns the identity of the times.
fn identity(
    args: &Args,
    subject: &Subject,
    scored: &Scored,
    estimate: Option<&Estimate>,
    machine: &Machine,
) -> anyhow::Result<Identity> {
    let mut identity = subject.identity(SPEED_BENCH.name, scored)?;
    identity.seed = Some(args.shared.seed());
    if let Some(estimate) = estimate {
        estimate.describe(subject, &mut identity)?;
    }
    identity.arguments.extend([
        ("order".to_owned(), args.order.name().into()),
        ("repeats".to_owned(), args.repeats.into()),
        ("width".to_owned(), args.width.into()),
        ("minutes".to_owned(), args.minutes.into()),
        // times from different machines do not belong in one file
        ("device".to_owned(), machine.device_name().into()),
        ("processor".to_owned(), machine.processor_name().into()),
        ("threads".to_owned(), machine.threads.into()),
    ]);
    if let Some(tokens) = args.continue_by {
        identity.arguments.insert("continue_by".to_owned(), tokens.into());
    }
    Ok(identity)
}

/// Returns the numbers of heads to remove: ⌈heads · percent / 100⌉.
fn removed_counts(percents: &[u64], heads: usize) -> anyhow::Result<Vec<usize>> {
    let count = |&percent: &u64| {
        let count = (heads as u64 * percent).div_ceil(100) as usize;
        ensure!(count < heads, "--percent {percent} would remove all {heads} heads");
        Ok(count)
    };
    percents.iter().map(count).collect()
}

/// Maximum difference between the outputs of the pruned and the masked model, in f32; relative for outputs beyond 1.
const TOLERANCE: f64 = 1e-5;

/// Number of segments for this check.
const CHECKED: usize = 64;

/// State shared by all rows.
struct Bench<'a> {
    args: &'a Args,
    machine: &'a Machine,
    subject: &'a Subject,
    scored: Scored,
}

impl Bench<'_> {
    /// Measures the rows of one set of removed heads.
    fn share(&self, removed: &HeadSet, rows: &mut RowWriter<SpeedRow>) -> anyhow::Result<()> {
        let is_missing = |size: &&u64| !rows.contains(&(removed.len(), **size as usize));
        let missing: Vec<u64> = self.args.batch_size.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            return Ok(());
        }
        let pruned = self.subject.without_heads(removed, &self.scored.ablation)?;
        self.check(&pruned, removed)?;
        for batch_size in missing {
            let timed = Timed::in_turn(
                &self.subject.pass(&self.scored, batch_size as usize, self.args.work())?,
                &pruned.pass(&self.scored, batch_size as usize, self.args.work())?,
                &self.args.settling(),
            )?;
            let row = self.row(&timed, &pruned, (removed, batch_size))?;
            if !self.machine.quiet {
                words::say!("{}", described(&row));
            }
            rows.append(row, None)?;
        }
        Ok(())
    }

    /// Refuses to time a pruned model whose outputs differ from the masked model's.
    fn check(&self, pruned: &Subject, removed: &HeadSet) -> anyhow::Result<()> {
        if self.machine.precision != Precision::F32 {
            return Ok(()); // bf16 rounds sums in another order too differently
        }
        let limit = self.scored.limit.unwrap_or(CHECKED).min(CHECKED);
        let some = Scored { limit: Some(limit), ..self.scored.clone() };
        let masked = self.subject.outputs(&some, removed)?;
        let found = pruned.outputs(&some, &HeadSet::none())?;
        for (masked, found) in masked.iter().zip(&found) {
            let gap = (masked - found).abs();
            // NaN is not within the tolerance either
            let is_close = gap <= TOLERANCE * masked.abs().max(1.0);
            ensure!(
                is_close,
                "an output is {found} with {removed} removed, but {masked} with them masked: they differ by {gap:e}, and \
                 {TOLERANCE:e} is allowed"
            );
        }
        Ok(())
    }

    fn row(
        &self,
        timed: &Timed,
        pruned: &Subject,
        (removed, batch_size): (&HeadSet, u64),
    ) -> anyhow::Result<SpeedRow> {
        let ratio = timed.ratio()?;
        let subject = &self.args.shared.subject;
        let replicate = subject.replicate.map(|_| subject.number());
        let peak = |model| memory::peak(self.machine, (model, replicate), removed, batch_size);
        let [original, without] = [&timed.original, &timed.pruned];
        Ok(SpeedRow {
            removed: removed.len(),
            heads: self.subject.layout().heads().len(),
            batch_size: batch_size as usize,
            segments: timed.segments,
            tokens: timed.tokens,
            repeats: timed.original.seconds.len(),
            original_per_second: original.mean(timed.segments),
            original_deviation: original.deviation(timed.segments),
            pruned_per_second: without.mean(timed.segments),
            pruned_deviation: without.deviation(timed.segments),
            ratio: ratio.mean,
            ratio_low: ratio.low,
            ratio_high: ratio.high,
            neighbours: timed.neighbours,
            predicted_ratio: original.multiply_adds as f64 / without.multiply_adds as f64,
            original_multiply_adds: original.multiply_adds,
            pruned_multiply_adds: without.multiply_adds,
            original_parameters: self.subject.parameters(),
            pruned_parameters: pruned.parameters(),
            original_peak_bytes: peak(PeakOf::Original)?,
            pruned_peak_bytes: peak(PeakOf::Pruned)?,
            removed_heads: removed.names(),
        })
    }
}

fn described(row: &SpeedRow) -> String {
    format!(
        "{} of {} heads removed, batch size {}: {:.1} and {:.1} segments/s, {:.3} times as fast ({:.3} to {:.3}), \
         predicted {:.3}",
        row.removed,
        row.heads,
        row.batch_size,
        row.original_per_second,
        row.pruned_per_second,
        row.ratio,
        row.ratio_low,
        row.ratio_high,
        row.predicted_ratio,
    )
}
