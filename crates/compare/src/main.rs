//! The command `compare`.
use std::process::ExitCode;

fn main() -> ExitCode {
    compare::main()
}
