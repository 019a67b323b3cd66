//! Compares two runs of an evaluation by their scores per document: is one worse, no worse, or is it undecided?
//!
//! [`read`] reads scores from logs of lm-evaluation-harness and Inspect, tables and translations, [`align`] pairs the documents of all
//! runs, [`verdict`] tests the differences with the crate `stats`, and [`output`] prints the rows. No model is run.
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
