//! The command `head-functions`.
use std::process::ExitCode;

fn main() -> ExitCode {
    head_functions::main()
}
