//! The command `cross-domain`.
use std::process::ExitCode;

fn main() -> ExitCode {
    cross_domain::main()
}
