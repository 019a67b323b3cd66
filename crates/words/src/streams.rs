//! What a command prints, and how it ends.
use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

use crate::one_line;

/// Prints to a terminal with styles, to anything else without; `NO_COLOR` is honoured. A reader that stops early, such as
/// `head`, is no error.
///
/// # Errors
/// If standard output cannot be written, for example because a disk is full.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line, as [`print`] does.
///
/// # Errors
/// As [`print`].
pub fn print_line(line: impl Display) -> io::Result<()> {
    print(&format!("{line}\n"))
}

/// Says an error with all its causes in one line on standard error.
pub fn print_error(error: &impl Display) {
    anstream::eprintln!("{}", error_line(error));
}

/// The error with all its causes, whatever line breaks and control characters they took over from files.
fn error_line(error: &impl Display) -> String {
    format!("error: {}", one_line(&format!("{error:#}")))
}

/// What a command ends with: an error is said by [`print_error`] and makes the exit code 1.
pub fn exit_code(outcome: Result<(), impl Display>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
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
