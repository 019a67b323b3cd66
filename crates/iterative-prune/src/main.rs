//! The command `iterative-prune`.
use std::process::ExitCode;

fn main() -> ExitCode {
    iterative_prune::main()
}
