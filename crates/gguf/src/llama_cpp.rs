//! Speed, cache size, file size and perplexity of pruned models in llama.cpp, measured by a Python script.
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use words::exit_code;

const SCRIPT: &str = include_str!("llama_cpp.py");

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    exit_code(run())
}

/// Replaces this process with the script, run by the Python in the environment variable `PYTHON`.
fn run() -> Result<()> {
    let python = env::var_os("PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let own = env::current_exe().context("cannot find the folder of llama-cpp")?;
    let mut command = Command::new(&python);
    command.args(["-c", SCRIPT]).args(env::args_os().skip(1));
    command.env("HEADCOUNT", own.with_file_name("headcount"));
    command.env("HEADCOUNT_VERSION", env!("CARGO_PKG_VERSION"));
    if let Some(commit) = durable::installed_commit() {
        command.env("HEADCOUNT_COMMIT", commit);
    }
    let error = command.exec();
    Err(anyhow::Error::new(error)
        .context(format!("cannot run `{}` (set PYTHON to use another Python)", python.display())))
}
