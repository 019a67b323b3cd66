//! The command `train-gates`.
use std::process::ExitCode;

fn main() -> ExitCode {
    train_gates::main()
}
