//! The command `compare-methods`.
use std::process::ExitCode;

fn main() -> ExitCode {
    compare_methods::main()
}
