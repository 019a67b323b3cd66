//! The command `fetch`.
use std::process::ExitCode;

fn main() -> ExitCode {
    gguf::fetch::main()
}
