//! The same heads on two test sets: Michel et al. (2019), Section 3.4, Figure 2.
//!
//! `ablate-one` on both, and how far the effects of masking single heads agree.
mod agreement;

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use records::{AblationRow, Provenance, RowWriter, Signature};
use subject::{Description, HeadSweep, Machine, Scored, SharedArgs, Subject, SweepArgs};

/// Masks one head at a time on two splits and compares the effects (Figure 2).
///
/// The scores are those of ablate-one, in its files, which are made or gone on with as needed; the file of this experiment
/// has a row for each attention type and one for all heads.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    #[command(flatten)]
    sweep: SweepArgs,

    /// Split to compare --split with; the subject's shifted domain if absent
    #[arg(long, value_name = "SPLIT")]
    against: Option<String>,

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
    // Opening the subject may train its model for an hour: whatever else can fail is tried first.
    let first = description.split(args.shared.split.as_deref(), &machine)?;
    let against = args.against.as_deref().or(description.shifted_split());
    let against = against.context("which split to compare with? name it by --against")?;
    let second = description.split(Some(against), &machine)?;
    if first == second {
        bail!("split `{first}` is given twice: the second must be another");
    }
    let layout = description.layout(&machine)?;
    let heads = layout.heads();
    let file = format!("cross-domain-{first}-{second}.csv");
    let path = args.shared.results.join(description.name()).join(file);
    let path = args.shared.output.clone().unwrap_or(path);
    records::check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let scored = [first, second].map(|split| Scored::first(split, args.shared.limit, args.sweep.rescale));
    let sweep = |scored: &Scored| -> anyhow::Result<Vec<AblationRow>> {
        let sweep = HeadSweep::one_at_a_time(scored.clone(), &layout, args.sweep.resamples);
        let path = description.result_path(&args.shared.results, "ablate-one", &scored.split);
        Ok(sweep.run(subject.as_ref(), &heads, &path, &args.shared.of_ingredients(), &machine)?)
    };
    let (first, second) = (sweep(&scored[0])?, sweep(&scored[1])?);

    let mut rows = RowWriter::open(
        &path,
        &signature(args, subject.as_ref(), &scored, &machine)?,
        args.shared.existing(),
    )?;
    // They take no time, and those that are there may be of fewer heads.
    rows.discard(|_| true)?;
    for row in agreement::rows(&first, &second, &heads)? {
        rows.push(row)?;
    }
    rows.finish(|_| ())?;
    println!("{}", path.display());
    Ok(())
}

/// All that the rows depend on.
fn signature(
    args: &Args,
    subject: &dyn Subject,
    [first, second]: &[Scored; 2],
    machine: &Machine,
) -> anyhow::Result<Signature> {
    let mut identity = subject.identity("cross-domain", first)?;
    identity.seed = args.shared.seed;
    identity.arguments.insert("against".to_owned(), second.split.clone().into());
    identity.data.extend(subject.identity("cross-domain", second)?.data);
    let run = Provenance::collect(&machine.device_name(), machine.threads, subject::libraries());
    Ok(Signature::new(identity, run))
}
