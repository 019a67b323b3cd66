//! The command `import-model`.
use std::process::ExitCode;

fn main() -> ExitCode {
    gguf::import_model::main()
}
