//! Masking one head at a time: Michel et al. (2019), Section 3.2, Table 1 and Figure 1.
//!
//! Measures the effect of masking each head on the score of the test set, and tests whether it could be due to chance.
pub mod audit;
pub mod say;
use std::process::ExitCode;

use clap::Parser;
use experiment::{DecidingArgs, HeadSweep, MaskingArgs, Selection, SharedArgs};
use heads::experiment::ABLATE_ONE;
use significance::TestArgs;

/// Masks one head at a time and scores the test set (Table 1).
///
/// Writes a row for each head soon after it is scored, and resumes a killed run. Existing results are used and missing ones are measured;
/// --again measures everything again.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// Attention type to measure: enc-enc, enc-dec, dec-dec, self, all, or paper (enc-enc for translators, as in Table 1, otherwise self)
    #[arg(long, value_name = "TYPE", default_value = "all")]
    attention: Selection,

    #[command(flatten)]
    masking: MaskingArgs,

    #[command(flatten)]
    deciding: DecidingArgs,

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
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let layout = description.layout(&machine)?;
    let heads = args.attention.heads(&layout)?;
    let scored = args.masking.scored(split, &args.shared, &description, &machine)?;
    let path = args.shared.output_path(ABLATE_ONE.name, &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let metric = subject.metric(&scored.split).name();
    let deciding = args.deciding.build((&scored, metric), heads.len(), args.shared.seed())?;
    let sweep = HeadSweep { deciding, ..HeadSweep::one_at_a_time(scored, &layout, args.test.clone()) };
    let finished = sweep.run(&subject, &heads, &path, &args.shared, &machine)?;
    words::print_line(finished.path.display())?;
    Ok(())
}
