//! What the commands of this crate share.
use std::process::ExitCode;

use words::one_line;

/// Starts so many threads, or one on each core.
///
/// # Errors
/// If threads were started before, or cannot be.
pub fn start_threads(threads: Option<u16>) -> Result<(), rayon::ThreadPoolBuildError> {
    match threads {
        Some(threads) => rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global(),
        None => Ok(()),
    }
}

/// What a command ends with; a fault is said in one line.
pub fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_fault(&error);
            ExitCode::FAILURE
        }
    }
}

/// Says a fault in one line.
pub fn print_fault(error: &anyhow::Error) {
    eprintln!("error: {}", one_line(&format!("{error:#}")));
}
