//! A verdict on two runs of an evaluation, from the score of each document: worse, no worse, or undecided.
//!
//! [`read`] turns logs of lm-evaluation-harness and Inspect, tables and translations into scores of documents, [`align`] pairs the
//! documents of all runs, [`verdict`] tests them with the statistics of `stats`, and [`output`] prints rows. No model is run.
mod align;
mod args;
mod error;
mod output;
mod read;
mod verdict;

use std::process::ExitCode;

pub use error::Error;

use crate::args::Args;
use crate::verdict::{Report, Verdict};

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    run(&words::parse::<Args>()).unwrap_or_else(|error| words::exit_code(Err(error)))
}

fn run(args: &Args) -> Result<ExitCode, Error> {
    if let Some(page) = &args.html {
        durable::check_writable(page)?;
    }
    let tasks = align::aligned(read::runs(args)?, args)?;
    let report = Report::new(&tasks, args)?;
    if let Some(page) = &args.html {
        durable::write(page, output::page(&report)?)?;
    }
    let text = if args.json { output::json(&report)? } else { output::table(&report) };
    words::print(&text).map_err(Error::Print)?;
    Ok(match report.gate() {
        Verdict::Worse if args.gate => ExitCode::from(3),
        Verdict::Undecided if args.gate => ExitCode::from(4),
        _ => ExitCode::SUCCESS,
    })
}
