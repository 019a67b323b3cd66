//! The command `audit`.
use std::process::ExitCode;

fn main() -> ExitCode {
    ablate_one::audit::main()
}
