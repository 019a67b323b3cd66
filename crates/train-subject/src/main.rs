//! The command `train-subject`.
use std::process::ExitCode;

fn main() -> ExitCode {
    train_subject::main()
}
