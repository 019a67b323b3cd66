//! The command `ablate-one`.
use std::process::ExitCode;

fn main() -> ExitCode {
    ablate_one::main()
}
