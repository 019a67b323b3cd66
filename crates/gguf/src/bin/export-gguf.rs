//! The command `export-gguf`.
use std::process::ExitCode;

fn main() -> ExitCode {
    gguf::export_gguf::main()
}
