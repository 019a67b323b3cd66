//! The command `report`.
use std::process::ExitCode;

fn main() -> ExitCode {
    report::main()
}
