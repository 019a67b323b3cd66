//! Commands that test stored measurements.
pub mod merge;
pub mod retest;

/// Starts this many threads, or one per core.
fn start_threads(threads: Option<u16>) -> Result<(), rayon::ThreadPoolBuildError> {
    match threads {
        Some(threads) => rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global(),
        None => Ok(()),
    }
}
