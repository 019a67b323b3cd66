//! Output, messages and exit codes of commands. A reader that stops early, such as `head`, is no error.
use std::fmt::{Arguments, Display};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use crate::{one_line, visible};

/// Prints a text of this project's own to a terminal with its styles, to anything else without; `NO_COLOR` is honoured.
///
/// # Errors
/// If standard output cannot be written, for example because a disk is full.
pub fn print(text: &str) -> io::Result<()> {
    write(anstream::stdout(), text)
}

/// Prints a line as it is, such as the path of a file.
///
/// # Errors
/// As [`print`].
pub fn print_line(line: impl Display) -> io::Result<()> {
    write(io::stdout(), &format!("{line}\n"))
}

fn write(mut out: impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Says something on standard error, as `eprintln!` does, but shows control characters instead of obeying them, and does not mind
/// that nothing can be said there.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say_line(format_args!($($text)*)) };
}

#[doc(hidden)]
pub fn say_line(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", visible(&line.to_string()));
}

/// Warnings of this process in one line each, oldest first.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says a warning on standard error in one line, once in a run however often it is given.
pub fn warn(warning: &str) {
    let warning = one_line(warning);
    let mut known = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.contains(&warning) {
        say!("warning: {warning}");
        known.push(warning);
    }
}

/// Returns what this process has warned of, oldest first, for the signature of its results.
pub fn warnings() -> Vec<String> {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Says an error on standard error, in one line whatever line breaks and control characters it took over from files; that of
/// `anyhow` with all its causes.
pub fn print_error(error: &impl Display) {
    say!("error: {}", one_line(&format!("{error:#}")));
}

/// Exit code of a command: an error is said by [`print_error`] and makes it 1.
pub fn exit_code(outcome: Result<(), impl Display>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}
