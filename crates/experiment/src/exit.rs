//! Exit codes.
use std::fmt::Display;
use std::process::ExitCode;

use training::stop;

/// Exit code after SIGUSR1 or SIGTERM stopped a run between two groups of rows (`EX_TEMPFAIL` of sysexits.h); running the command again
/// resumes it.
const STOPPED: u8 = 75;

/// Ends a binary: prints an error to stderr in one line and returns exit code 1, or 75 if a signal stopped the run between two groups of
/// rows.
pub fn exit_code(outcome: Result<(), impl Display>) -> ExitCode {
    let is_stopped = outcome.is_err() && stop::has_stopped();
    let code = words::exit_code(outcome);
    if is_stopped { ExitCode::from(STOPPED) } else { code }
}
