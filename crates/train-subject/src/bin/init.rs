//! The command `init`.
use std::process::ExitCode;

fn main() -> ExitCode {
    train_subject::init::main()
}
