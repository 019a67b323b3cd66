//! The command `llama-cpp`.
use std::process::ExitCode;

fn main() -> ExitCode {
    gguf::llama_cpp::main()
}
