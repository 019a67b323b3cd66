//! The command `headcount`.
use std::process::ExitCode;

fn main() -> ExitCode {
    headcount::main()
}
