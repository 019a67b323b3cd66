//! HTML page with the attention of every head on one text.
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use core_masking::HeadSet;
use experiment::{MachineArgs, SubjectArgs};
use plotting::findings::Folders;
use plotting::report::look::Look;
use subject::Input;

/// Writes one HTML file with the attention of every head on a text, next to what is known about each head.
///
/// For a translator both sides are shown, with its own translation or a given one. The page needs no network.
#[derive(Debug, Parser)]
#[command(name = "look", version, args_override_self = true)]
struct Args {
    #[command(flatten)]
    subject: SubjectArgs,

    /// The text
    #[arg(value_name = "TEXT", value_parser = text)]
    text: String,

    /// The second text of a pair, or the translation to show instead of the translator's own
    #[arg(long, value_name = "TEXT", value_parser = text)]
    second: Option<String>,

    /// Heads to mask together, such as self:2:1+self:2:4
    #[arg(long, value_name = "HEADS")]
    mask: Option<HeadSet>,

    /// Page to write, ending in `.html` [default: `<results>/<setup>/look.html`]
    #[arg(long, value_name = "FILE.html", value_parser = plotting::report::html_file)]
    output: Option<PathBuf>,

    #[command(flatten)]
    folders: Folders,

    #[command(flatten)]
    machine: MachineArgs,
}

fn text(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("the text is empty") } else { Ok(text.to_owned()) }
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::exit_code(run(&words::parse::<Args>()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    let machine = args.machine.build()?;
    let description = args.subject.read()?;
    let layout = description.layout(&machine)?;
    args.mask.iter().flat_map(HeadSet::iter).try_for_each(|id| layout.check(id))?;
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    args.second.iter().try_for_each(|_| description.check_second_text())?;
    let results = &args.folders.results;
    let path = args.output.clone().unwrap_or_else(|| results.join(description.name()).join("look.html"));
    plotting::report::check_writable(&path)?;
    let subject = description.open(&machine, results)?;

    let input = Input { text: &args.text, second: args.second.as_deref() };
    let read = subject.read(&input, args.mask.as_ref().unwrap_or(&HeadSet::none()))?;
    let identity = subject.identity_of_model("look");
    let look = Look {
        subject: description.name(),
        text: input.text,
        second: input.second,
        answer: &read.answer,
        masked: &args.mask.as_ref().map(HeadSet::to_string).unwrap_or_default(),
        weights: identity.weights.as_deref(),
        heads: &subject.layout().heads(),
        maps: &read.maps,
    };
    look.write(&args.folders.beside(&args.subject.subject.to_string_lossy()), &path)?;
    words::print_line(path.display())?;
    Ok(())
}
