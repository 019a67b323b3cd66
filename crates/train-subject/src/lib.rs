//! Trains the model of a setup as its TOML file describes, and writes the training curve.
pub mod init;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use experiment::{MachineArgs, SubjectArgs};

/// Trains the model of a setup.
///
/// Does nothing if the model exists, and resumes a killed run. The finished model is kept as a Hugging Face folder in
/// `<data>/models/<setup>/`, with the epochs that `[dynamics]` names in `epochs/` below it (all of them without that section), and the
/// training curve in `<results>/<setup>/training.csv`.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    #[command(flatten)]
    subject: SubjectArgs,

    /// Train again; the finished model stays until the new one is complete
    #[arg(long)]
    again: bool,

    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,

    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    let description = args.subject.read()?;
    let folder = description.train(&args.machine.build()?, &args.results, args.again)?;
    words::print_line(folder.display())?;
    Ok(())
}
