//! The command `export-model`.
use std::process::ExitCode;

fn main() -> ExitCode {
    export_model::main()
}
