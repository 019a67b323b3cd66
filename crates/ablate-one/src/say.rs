//! Output of a model for a text, with all its heads and without some: a translation, a class, or the text that follows.
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use core_masking::HeadSet;
use experiment::{AblationArgs, MachineArgs, SubjectArgs};
use significance::SEED;

/// Shows what a model makes of a text, with all its heads and with some masked.
///
/// A translator translates it, a classifier names its class, a language model continues it by greedy search.
#[derive(Debug, Parser)]
#[command(name = "say", version, args_override_self = true)]
struct Args {
    #[command(flatten)]
    subject: SubjectArgs,

    /// The text; for a classifier of images, the path of one
    #[arg(value_name = "TEXT")]
    text: String,

    /// Heads that are masked together, such as self:2:1+self:2:4; may be given again
    #[arg(long, value_name = "HEADS")]
    mask: Vec<HeadSet>,

    /// Maximum number of tokens that a language model generates
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tokens: u64,

    #[command(flatten)]
    ablation: AblationArgs,

    /// Folder of the results, where the training curve goes if the model is yet to be trained
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,

    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::exit_code(run(&words::parse::<Args>()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    let machine = args.machine.build()?;
    let description = args.subject.read()?;
    let layout = description.layout(&machine)?;
    for id in args.mask.iter().flat_map(HeadSet::iter) {
        layout.check(id)?;
    }
    let ablation = args.ablation.build(SEED, &description, &machine)?;
    let subject = description.open(&machine, &args.results)?;
    for masked in std::iter::once(&HeadSet::none()).chain(&args.mask) {
        let name = if masked.is_empty() { "all heads".to_owned() } else { format!("without {masked}") };
        let text = subject.say(&args.text, args.tokens as usize, masked, &ablation)?;
        words::print_line(words::visible(&format!("{name}: {text}")))?;
    }
    Ok(())
}
