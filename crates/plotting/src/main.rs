//! Tables and figures from the results of experiments.
use std::process::ExitCode;

fn main() -> ExitCode {
    plotting::main()
}
