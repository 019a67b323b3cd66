//! Output, messages and exit codes of commands. A reader that stops early, such as `head`, is not an error.
use std::fmt::{Arguments, Display};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use crate::{one_line, visible};

/// Prints a text of this project, with its styles on a terminal and without them elsewhere; respects `NO_COLOR`.
pub fn print(text: &str) -> io::Result<()> {
    write(anstream::stdout(), text)
}

/// Prints a line unchanged, such as the path of a file.
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

/// Prints a line to standard error like `eprintln!`, but shows control characters as escapes and ignores write errors.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say_line(format_args!($($text)*)) };
}

#[doc(hidden)]
pub fn say_line(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", visible(&line.to_string()));
}

/// Warnings of this process, one line each, oldest first.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a warning to standard error in one line, only the first time in a run.
pub fn warn(warning: &str) {
    let warning = one_line(warning);
    let mut known = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.contains(&warning) {
        say!("warning: {warning}");
        known.push(warning);
    }
}

/// Returns the warnings of this process, oldest first, for the signature of its results.
pub fn warnings() -> Vec<String> {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Prints an error to standard error in one line, without the line breaks and control characters of files; an `anyhow` error with all its
/// causes.
pub fn print_error(error: &impl Display) {
    say!("error: {}", one_line(&format!("{error:#}")));
}

/// Returns the exit code of a command: prints an error with [`print_error`] and returns 1.
pub fn exit_code(outcome: Result<(), impl Display>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}
