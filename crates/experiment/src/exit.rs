//! How a binary ends.
use std::fmt::Display;
use std::process::ExitCode;

use core_masking::one_line;
use training::stop;

/// Exit code where SIGUSR1 or SIGTERM has ended the measuring of rows between two groups: the same command goes on.
/// `EX_TEMPFAIL` of sysexits.h.
const STOPPED: u8 = 75;

/// What a binary ends with: an error goes to stderr in one line and makes the exit code 1, or 75 where a signal has ended it
/// between two groups of rows.
pub fn exit_code(outcome: Result<(), impl Display>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error_line(&error));
            if stop::has_stopped() { ExitCode::from(STOPPED) } else { ExitCode::FAILURE }
        }
    }
}

/// The error with all its causes, whatever line breaks and control characters they took over from files.
fn error_line(error: &impl Display) -> String {
    format!("error: {}", one_line(&format!("{error:#}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_files_put_into_it() {
        let error = "label `a\nb\u{1b}[31m`:\r\n  expected `c`";
        assert_eq!(error_line(&error), r"error: label `a b\u{1b}[31m`:   expected `c`");
    }
}
