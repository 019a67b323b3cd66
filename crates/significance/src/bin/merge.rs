//! The command `merge`.
use std::process::ExitCode;

fn main() -> ExitCode {
    significance::commands::merge::main()
}
