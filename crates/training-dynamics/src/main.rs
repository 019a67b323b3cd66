//! The command `training-dynamics`.
use std::process::ExitCode;

fn main() -> ExitCode {
    training_dynamics::main()
}
