//! Agreement of effects on two test sets: Michel et al. (2019), Section 3.4, Figure 2.
//!
//! Runs `ablate-one` on both and measures how well the effects of masking single heads agree.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use experiment::{HeadSweep, MaskingArgs, OpenRows, SharedArgs};
use heads::experiment::CROSS_DOMAIN;
use records::Signature;
use significance::TestArgs;
use significance::{AGAINST_ARGUMENTS, Sweep, agreement};
use subject::{Scored, Subject};
use training::Machine;

/// Masks one head at a time on two splits and compares the effects (Figure 2).
///
/// The scores are read from the result files of ablate-one; missing ones are measured. The file of this experiment has a row for each
/// attention type and one for all heads.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    #[command(flatten)]
    masking: MaskingArgs,

    #[command(flatten)]
    test: TestArgs,

    /// Split to compare --split with [default: `data.shifted`]
    #[arg(long, value_name = "SPLIT")]
    against: Option<String>,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard(
        "this command compares two sweeps of ablate-one: run and merge these in shards, then compare them",
    )?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    let first = description.split(args.shared.split.as_deref(), &machine)?;
    let against = args.against.as_deref().or(description.shifted_split());
    let against = against.context("no split to compare with: name one with --against")?;
    let second = description.split(Some(against), &machine)?;
    if first == second {
        bail!("split `{first}` is given twice: --against must name another split");
    }
    let layout = description.layout(&machine)?;
    let ablation = args.masking.ablation.build(args.shared.seed(), &description, &machine)?;
    let limit = args.shared.scored(first.clone(), false).limit_suffix();
    let file = format!("cross-domain{}-{first}-{second}{limit}.csv", ablation.suffix());
    let path = args.shared.results.join(description.name()).join(file);
    let path = args.shared.output.clone().unwrap_or(path);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let metrics = [&first, &second].map(|split| subject.metric(split));
    if metrics[0] != metrics[1] {
        let names = metrics.map(stats::Metric::name);
        bail!(
            "split `{first}` is scored by {} and `{second}` by {}: different metrics cannot be compared",
            names[0],
            names[1]
        );
    }
    let scored = |split| args.shared.scored(split, args.masking.rescale).under(ablation.clone());
    let scored = [first, second].map(scored);
    let (heads, model) = (layout.heads(), (&description, &subject));
    let measured = |scored| HeadSweep::measured(scored, &heads, model, (&args.shared, &machine));
    let files = [measured(&scored[0])?.path, measured(&scored[1])?.path];

    let signature = signature(args, &subject, (&scored, &files), &machine)?;
    let OpenRows { path, mut writer } = args.shared.open_rows(&path, &signature)?;
    let testing = args.test.testing(writer.tested(), args.shared.seed);
    writer.signature_mut().testing = Some(testing);
    let [first, second] = files.each_ref().map(|path| Sweep::read(path));
    let rows = agreement(&first?, &second?, testing)?;
    // Stored rows may come from other tests.
    writer.leave_out(|row| !rows.contains(row));
    rows.into_iter().try_for_each(|row| writer.append(row, None))?;
    writer.finish()?;
    words::print_line(path.display())?;
    Ok(())
}

/// Describes everything that the rows depend on.
fn signature(
    args: &Args,
    subject: &Subject,
    ([first, second], files): (&[Scored; 2], &[PathBuf; 2]),
    machine: &Machine,
) -> anyhow::Result<Signature> {
    let mut identity = subject.identity(CROSS_DOMAIN.name, first)?;
    let arguments = identity.arguments.clone();
    identity.arguments.insert("against".to_owned(), second.split.clone().into());
    let other = subject.identity(CROSS_DOMAIN.name, second)?;
    identity.data.extend(other.data);
    // Another split may group its questions differently.
    if other.arguments != arguments {
        identity.arguments.insert(AGAINST_ARGUMENTS.to_owned(), serde_json::to_value(other.arguments)?);
    }
    for (argument, file) in ["first_file", "second_file"].into_iter().zip(files) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        identity.arguments.insert(argument.to_owned(), name.into());
    }
    let run = machine.provenance();
    let testing = Some(args.test.testing(None, args.shared.seed));
    Ok(Signature { testing, ..Signature::new(identity, run) })
}
