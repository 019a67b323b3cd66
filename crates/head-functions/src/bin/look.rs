//! The command `look`.
use std::process::ExitCode;

fn main() -> ExitCode {
    head_functions::look::main()
}
