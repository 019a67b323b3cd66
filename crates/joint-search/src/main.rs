//! The command `joint-search`.
use std::process::ExitCode;

fn main() -> ExitCode {
    joint_search::main()
}
