//! Parts that the commands of this crate share.

/// Starts this many threads, or one on each core.
///
/// # Errors
/// If threads were started before, or cannot be.
pub fn start_threads(threads: Option<u16>) -> Result<(), rayon::ThreadPoolBuildError> {
    match threads {
        Some(threads) => rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global(),
        None => Ok(()),
    }
}
