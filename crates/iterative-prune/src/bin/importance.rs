//! The command `importance`.
use std::process::ExitCode;

fn main() -> ExitCode {
    iterative_prune::importance::main()
}
