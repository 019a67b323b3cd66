//! Output of a model for a text, with all heads and with some masked: a translation, a class, or a continuation.
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use core_masking::HeadSet;
use experiment::{AblationArgs, MachineArgs, SubjectArgs};
use significance::SEED;

/// Shows the output of a model for a text, with all its heads and with some masked.
///
/// A translator translates the text, a classifier names its class, and a language model continues it greedily.
#[derive(Debug, Parser)]
#[command(name = "say", version, args_override_self = true)]
struct Args {
    #[command(flatten)]
    subject: SubjectArgs,

    /// The text; for an image classifier, the path of an image
    #[arg(value_name = "TEXT")]
    text: String,

    /// Heads to mask together, such as self:2:1+self:2:4; repeat the option for more sets
    #[arg(long, value_name = "HEADS")]
    mask: Vec<HeadSet>,

    /// Maximum number of tokens that a language model generates
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tokens: u64,

    #[command(flatten)]
    ablation: AblationArgs,

    /// Results folder; if the model must be trained first, its training curve is written there
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
