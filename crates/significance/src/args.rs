//! Command-line arguments of tests.

use records::signature::Testing;
use records::verdicts::{MARGIN_PERCENT, is_margin};
use stats::swaps::SWAPS;

/// Default seed.
pub const SEED: u64 = 1;

/// Settings of the tests of differences.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Tests")]
pub struct TestArgs {
    /// Swaps in randomisation tests, at most 99,999; p-values near 0.01 then get 999,999. Also the number of bootstrap resamples for
    /// intervals, at most 10,000; fewer than 39 give no intervals, and 0 skips all tests [default: as before, or 99,999]
    #[arg(long, value_name = "N", value_parser = resamples)]
    pub resamples: Option<usize>,

    /// Margin: largest loss to accept, in percent of the full model's score; for nats per token, of the perplexity [default: as before, or
    /// 2]
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    pub margin: Option<f64>,
}

impl TestArgs {
    /// Returns settings for results that were tested with `before`, or never.
    ///
    /// - `seed`: requested seed; if `None` as before, or [`SEED`]
    pub fn testing(&self, before: Option<Testing>, seed: Option<u64>) -> Testing {
        let default = Testing { resamples: SWAPS, seed: SEED, margin_percent: MARGIN_PERCENT, block: 1 };
        let before = before.unwrap_or(default);
        Testing {
            resamples: self.resamples.unwrap_or(before.resamples.min(SWAPS)),
            margin_percent: self.margin.unwrap_or(before.margin_percent),
            seed: seed.unwrap_or(before.seed),
            block: before.block,
        }
    }
}

/// Parses a number of resamples from an argument.
pub fn resamples(text: &str) -> Result<usize, String> {
    let resamples = text.parse().ok().filter(|resamples| *resamples <= SWAPS);
    resamples.ok_or_else(|| format!("must be a whole number from 0 to {SWAPS}"))
}

/// Parses a margin in percent from an argument.
pub fn margin(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| is_margin(*percent));
    percent.ok_or_else(|| "must be a number above 0 and at most 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_given_stay_unchanged() {
        let before = Testing { resamples: 7, seed: 3, margin_percent: 1.0, block: 1 };
        let none = TestArgs::default();
        assert_eq!(none.testing(Some(before), None), before);
        assert_eq!(none.testing(Some(before), Some(9)), Testing { seed: 9, ..before });
        let first = Testing { resamples: SWAPS, seed: SEED, margin_percent: 2.0, block: 1 };
        assert_eq!(none.testing(None, None), first);
        let with_resamples = Testing { resamples: 1_000_000, ..before };
        assert_eq!(none.testing(Some(with_resamples), None).resamples, SWAPS);
        let more = TestArgs { resamples: Some(0), margin: None };
        assert_eq!(more.testing(Some(before), None), Testing { resamples: 0, ..before });
        assert!(resamples("100000").is_err());
        assert_eq!(
            ["0", "-1", "100.1", "NaN", "100", "0.5"].map(|text| margin(text).is_ok()),
            [false, false, false, false, true, true]
        );
    }
}
