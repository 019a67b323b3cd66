//! The command `retest`.
use std::process::ExitCode;

fn main() -> ExitCode {
    significance::commands::retest::main()
}
