//! The command `report`.
use std::process::ExitCode;

fn main() -> ExitCode {
    plotting::report::main()
}
