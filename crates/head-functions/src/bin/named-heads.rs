//! The command `named-heads`.
use std::process::ExitCode;

fn main() -> ExitCode {
    head_functions::named_heads::main()
}
