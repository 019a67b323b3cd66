//! The command `ablate-all-but-one`.
use std::process::ExitCode;

fn main() -> ExitCode {
    ablate_all_but_one::main()
}
