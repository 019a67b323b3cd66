//! The command `relevance`.
use std::process::ExitCode;

fn main() -> ExitCode {
    head_functions::relevance::main()
}
