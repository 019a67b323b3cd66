//! The command `say`.
use std::process::ExitCode;

fn main() -> ExitCode {
    ablate_one::say::main()
}
