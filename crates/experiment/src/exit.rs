//! Exit codes.
use std::fmt::Display;
use std::process::ExitCode;

use training::stop;

/// Exit code where SIGUSR1 or SIGTERM has ended the measuring of rows between two groups: the same command goes on.
/// `EX_TEMPFAIL` of sysexits.h.
const STOPPED: u8 = 75;

/// Ends a binary: an error goes to stderr in one line and makes the exit code 1, or 75 where a signal has ended it
/// between two groups of rows.
pub fn exit_code(outcome: Result<(), impl Display>) -> ExitCode {
    let is_stopped = outcome.is_err() && stop::has_stopped();
    let code = words::exit_code(outcome);
    if is_stopped { ExitCode::from(STOPPED) } else { code }
}
