//! Arguments of sweeps that stop early.
use std::time::Duration;

use clap::ValueEnum;
use records::{MetricName, UNTIL_DECIDED, UntilDecided};
use stats::sequential::Spending;
use subject::{Ablation, Scored};

use crate::args::positive;
use crate::error::Error;

/// Default maximum number of looks.
const LOOKS: usize = 6;

/// Number of heads from which a backward pass over all segments saves more than it costs.
const MIN_HEADS: usize = 8;

/// Arguments of sweeps that stop early.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Stopping")]
pub struct DecidingArgs {
    /// Measure each head on a growing random sample until its verdict is known or all segments are measured
    #[arg(long)]
    pub until_decided: bool,

    /// Measure all heads on all segments, as in the papers [default]
    #[arg(long, conflicts_with = "until_decided")]
    pub exact: bool,

    /// Error bound over all looks at the sample [default: obrien-fleming]
    #[arg(long, value_name = "BOUNDS", value_enum, requires = "until_decided")]
    pub bounds: Option<Bounds>,

    /// Maximum number of looks; the sample doubles from one to the next [default: 6]
    #[arg(long, value_name = "N", value_parser = positive, requires = "until_decided")]
    pub looks: Option<usize>,

    /// Stop after this time, such as 20m or 2h, or after this number of passes over one segment; run the command again to resume
    #[arg(long, value_name = "TIME|PASSES", value_parser = budget, requires = "until_decided")]
    pub budget: Option<Budget>,

    /// First-order effects of all segments as a control variate [default: on for nats and at least 8 heads, otherwise off]
    #[arg(long, value_name = "on|off", value_enum, requires = "until_decided")]
    pub control_variate: Option<Switch>,
}

/// Spending of the error over the looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Bounds {
    /// Hardly any error early: the last look is nearly a fixed-sample test
    ObrienFleming,
    /// Error in proportion to the information: more heads stop early
    Pocock,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On
    On,
    /// Off
    Off,
}

/// Budget of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Time from the start of the sweep.
    Time(Duration),
    /// Passes over one segment; a backward pass counts as two.
    Passes(u64),
}

/// Parses a time with a unit, or a number of passes.
fn budget(text: &str) -> Result<Budget, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let timed = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, seconds) = timed.unwrap_or((text, 0));
    let number: Option<u64> = number.parse().ok().filter(|&number| number > 0);
    let found = number.and_then(|number| match seconds {
        0 => Some(Budget::Passes(number)),
        seconds => number.checked_mul(seconds).map(Duration::from_secs).map(Budget::Time),
    });
    found
        .ok_or_else(|| "must be a time such as 90s, 20m or 2h, or a number of passes such as 5000".to_owned())
}

/// Rules of a sweep that stops early.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deciding {
    /// Rules that the results depend on.
    pub rules: UntilDecided,
    /// Maximum number of looks.
    pub looks: usize,
    /// Budget of the sweep.
    pub budget: Option<Budget>,
}

impl DecidingArgs {
    /// Returns the rules of a sweep over this number of heads; `None` if all segments are measured.
    ///
    /// - `seed`: draws the order of the segments
    ///
    /// # Errors
    /// For resample ablation, and if a control variate is requested that the metric does not allow.
    pub fn build(
        &self,
        (scored, metric): (&Scored, MetricName),
        heads: usize,
        seed: u64,
    ) -> Result<Option<Deciding>, Error> {
        if !self.until_decided {
            return Ok(None);
        }
        if matches!(scored.ablation, Ablation::Resample { .. }) {
            return Err(Error::input(
                "--until-decided is for --ablation zero and mean: resample ablation takes head outputs from other texts in the order of all segments",
            ));
        }
        let is_predicted = !scored.rescale
            && matches!(
                metric,
                MetricName::Nats
                    | MetricName::LogOdds
                    | MetricName::Accuracy
                    | MetricName::F1
                    | MetricName::Matthews
            );
        let control_variate = match self.control_variate {
            Some(Switch::On) if !is_predicted => {
                return Err(Error::input(format!(
                    "--control-variate on is for nats per token, log-odds, accuracy, F1 and Matthews correlation without --rescale: first-order \
                     effects do not predict {metric}"
                )));
            }
            Some(switch) => switch == Switch::On,
            // decisions rarely change, so predicting them saves little
            None => {
                is_predicted && matches!(metric, MetricName::Nats | MetricName::LogOdds) && heads >= MIN_HEADS
            }
        };
        let bounds = match self.bounds {
            None | Some(Bounds::ObrienFleming) => Spending::ObrienFleming,
            Some(Bounds::Pocock) => Spending::Pocock,
        };
        let rules = UntilDecided { bounds, seed, control_variate };
        Ok(Some(Deciding { rules, looks: self.looks.unwrap_or(LOOKS), budget: self.budget }))
    }
}

impl Deciding {
    /// Returns the argument that the identity of the rows contains.
    pub fn argument(&self) -> (String, serde_json::Value) {
        (UNTIL_DECIDED.to_owned(), serde_json::json!(self.rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_times_or_passes() {
        assert_eq!(budget("20m"), Ok(Budget::Time(Duration::from_secs(1_200))));
        assert_eq!(budget("2h"), Ok(Budget::Time(Duration::from_secs(7_200))));
        assert_eq!(budget("5000"), Ok(Budget::Passes(5_000)));
        for wrong in ["", "m", "0", "0s", "-1m", "1.5h", "20 m", "99999999999999999999h"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
    }
}
