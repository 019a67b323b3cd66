//! The command `speed-bench`.
use std::process::ExitCode;

fn main() -> ExitCode {
    speed_bench::main()
}
