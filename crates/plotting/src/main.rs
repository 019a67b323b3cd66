//! Tables and figures from the results of experiments.
mod args;
mod commands;

use std::process::ExitCode;

use clap::Parser;
use records::visible::one_line;

fn main() -> ExitCode {
    match commands::run(&args::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {}", one_line(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}
