//! Settings that all tests share.

/// A p-value below this is significant, as in Michel et al. (2019).
pub const ALPHA: f64 = 0.01;

/// Settings of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Testing {
    /// Swaps per family; 0 tests nothing, including accuracies. From [`SWAPS`](crate::swaps::SWAPS) on, variants within three Monte Carlo
    /// errors of [`ALPHA`] get [`MAX_SWAPS`](crate::swaps::MAX_SWAPS). The bootstrap uses this number too, up to [`RESAMPLES`](crate::bootstrap::RESAMPLES).
    pub resamples: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// Neighbouring segments that are drawn and swapped together; 1 if segments are independent.
    pub block: usize,
}
