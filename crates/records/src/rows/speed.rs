//! Rows of speed measurements.
use serde::{Deserialize, Serialize};

use super::Row;
use crate::check::{Limit, MOST};

/// One row of `speed-bench`: the full model and one with heads removed, timed in turn (Michel et al. 2019, Table 4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedRow {
    /// Number of removed heads.
    pub removed: usize,
    /// Number of heads of the full model.
    pub heads: usize,
    /// Segments per batch.
    pub batch_size: usize,
    /// Segments per pass.
    pub segments: usize,
    /// Tokens per pass: source tokens of translators; if segments are continued, the generated tokens.
    pub tokens: u64,
    /// Timed passes of each model, without the warm-up.
    pub repeats: usize,
    /// Segments per second of the full model, mean over passes.
    pub original_per_second: f64,
    /// Standard deviation of `original_per_second` over passes.
    pub original_deviation: f64,
    /// Segments per second of the smaller model, mean over passes.
    pub pruned_per_second: f64,
    /// Standard deviation of `pruned_per_second` over passes.
    pub pruned_deviation: f64,
    /// Speed of the smaller model divided by the speed of the full model: geometric mean over pairs of passes.
    pub ratio: f64,
    /// Lower end of the 95% interval of `ratio`.
    pub ratio_low: f64,
    /// Upper end of the 95% interval of `ratio`.
    pub ratio_high: f64,
    /// Share of processor time used by other processes; empty if unknown.
    pub neighbours: Option<f64>,
    /// `original_multiply_adds` / `pruned_multiply_adds`.
    pub predicted_ratio: f64,
    /// Multiply-adds per pass of the full model, padding included.
    pub original_multiply_adds: u64,
    /// Multiply-adds per pass of the smaller model, padding included.
    pub pruned_multiply_adds: u64,
    /// Parameters of the full model.
    pub original_parameters: u64,
    /// Parameters of the smaller model.
    pub pruned_parameters: u64,
    /// Peak resident memory of a pass with the full model, in bytes; empty if unknown.
    pub original_peak_bytes: Option<u64>,
    /// Peak resident memory of a pass with the smaller model, in bytes; empty if unknown.
    pub pruned_peak_bytes: Option<u64>,
    /// Removed heads, joined by `+`: `self:1:2+self:6:11`.
    pub removed_heads: String,
}

impl Row for SpeedRow {
    type Key = (usize, usize);

    fn key(&self) -> Self::Key {
        (self.removed, self.batch_size)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.removed, self.batch_size)
    }

    fn title(&self) -> String {
        format!("{} removed heads in batches of {}", self.removed, self.batch_size)
    }

    fn limits(&self) -> Vec<Limit> {
        // Rounding may put the mean of equal passes just outside an interval of no length.
        let interval = self.ratio_low * (1.0 - 1e-9)..=self.ratio_high * (1.0 + 1e-9);
        let some = |column, value| Limit::new(column, value, 1.0..=f64::MAX, "at least 1");
        let above = |column, value| Limit::new(column, value, 1e-9..=MOST, "above 0 and finite");
        let spread = |column, value| Limit::new(column, value, 0.0..=MOST, "0 or above and finite");
        let bytes = |column, bytes: Option<u64>| {
            Limit::optional(column, bytes.map(|bytes| bytes as f64), 1.0..=f64::MAX, "at least 1 or empty")
        };
        vec![
            Limit::new("heads", self.heads as f64, 1.0..=1e5, "1 to 100000"),
            Limit::new("removed", self.removed as f64, 0.0..=self.heads as f64, "at most `heads`"),
            some("batch_size", self.batch_size as f64),
            some("segments", self.segments as f64),
            some("tokens", self.tokens as f64),
            some("repeats", self.repeats as f64),
            above("original_per_second", self.original_per_second),
            spread("original_deviation", self.original_deviation),
            above("pruned_per_second", self.pruned_per_second),
            spread("pruned_deviation", self.pruned_deviation),
            above("ratio_low", self.ratio_low),
            above("ratio_high", self.ratio_high),
            Limit::new("ratio", self.ratio, interval, "within `ratio_low` and `ratio_high`"),
            Limit::share("neighbours", self.neighbours),
            above("predicted_ratio", self.predicted_ratio),
            some("original_multiply_adds", self.original_multiply_adds as f64),
            some("original_parameters", self.original_parameters as f64),
            bytes("original_peak_bytes", self.original_peak_bytes),
            bytes("pruned_peak_bytes", self.pruned_peak_bytes),
        ]
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("heads", self.heads.to_string()), ("original_parameters", self.original_parameters.to_string())]
    }

    fn group(&self) -> Option<String> {
        Some(self.removed.to_string())
    }

    fn of_group(&self) -> Vec<(&'static str, String)> {
        vec![("pruned_parameters", self.pruned_parameters.to_string())]
    }
}
