//! The row types, one for each kind of result file.

mod ablation;
mod correlation;
mod dynamics;
pub mod functions;
mod gates;
mod goal;
mod llama_cpp;
mod pruning;
pub mod relevance;
mod repaired;
mod scores;
mod speed;
mod training;

use heads::HeadSet;
use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stats::Direction;

use crate::check::Limit;
use crate::rules::{Verdict, margin};
use stats::MetricName;
use stats::bootstrap::Interval;
use stats::family::Comparison;
use stats::spread::Reached;

pub use ablation::AblationRow;
pub use correlation::CorrelationRow;
pub use dynamics::DynamicsRow;
pub use functions::HeadFunctionRow;
pub use gates::{GateFilmRow, GateRow, Method};
pub use goal::Goal;
pub use llama_cpp::LlamaCppRow;
pub use pruning::{CurveId, PruningRow};
pub use relevance::RelevanceRow;
pub use repaired::{Cost, Repair, RepairedRow};
pub use scores::ScoreRow;
pub use speed::SpeedRow;
pub use training::TrainingRow;

/// A line of a result file. Rows are flat, and their text has no line breaks.
pub trait Row: Serialize + DeserializeOwned {
    /// The cells that make a row unique in its file; a finished file is in the order of its keys.
    type Key: Ord + Debug;

    /// The key of this row.
    fn key(&self) -> Self::Key;

    /// The key as text, such as `enc-enc:6:13`; what is measured of its segments is stored under it.
    fn name(&self) -> String;

    /// Name of the row in messages.
    fn title(&self) -> String {
        self.name()
    }

    /// The numbers that have limits.
    fn limits(&self) -> Vec<Limit> {
        Vec::new()
    }

    /// Any other fault of the row.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Columns that are the same in all rows of a run, with their values.
    fn of_run(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Rows that have more in common than a run; absent where none do.
    fn group(&self) -> Option<String> {
        None
    }

    /// Columns that are the same in such rows, with their values.
    fn of_group(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// A number that cannot follow the row before it in the order of keys: its column, value, and what is allowed.
    fn against(&self, _before: &Self) -> Option<(&'static str, f64, &'static str)> {
        None
    }
}

/// Of two steps of one curve, the second masks no fewer heads.
pub(crate) fn falls(before: usize, masked: usize) -> Option<(&'static str, f64, &'static str)> {
    (masked < before).then_some(("masked", masked as f64, "no less than in the step before"))
}

/// Fault of a list of masked heads that should have this many.
pub(crate) fn heads_fault(names: &str, masked: usize) -> Option<String> {
    match names.parse::<HeadSet>() {
        Err(fault) => Some(fault.to_string()),
        Ok(heads) if !heads.is_empty() && heads.len() != masked => {
            Some(format!("`masked_heads` has {} heads, but {masked} are masked", heads.len()))
        }
        Ok(_) => None,
    }
}

/// Name of the intact model's statistics.
pub const BASE: &str = "base";

/// A row whose score is compared with that of the intact model, by statistics of segments that are stored beside the file.
pub trait TestedRow: Row {
    /// The rows that are tested together.
    fn family(&self) -> String;

    /// Name of the stored statistics of the model that it is compared with.
    fn base(&self) -> String;

    /// Returns true if nothing is masked, so that there is nothing to test.
    fn is_intact(&self) -> bool {
        false
    }

    /// The masked heads, joined by `+`, where the rows of a family are steps of a curve.
    fn masked_heads(&self) -> Option<&str> {
        None
    }

    /// Place on a curve that the rows of its family make, which can be walked along; absent where they are no curve.
    fn step(&self) -> Option<usize> {
        None
    }

    /// Fills in how often the walk along a curve gets here.
    fn record_reached(&mut self, _reached: Reached) {}

    /// Metric of the scores.
    fn metric(&self) -> MetricName;

    /// Which of two scores is the better one.
    fn direction(&self) -> Direction {
        self.metric().direction()
    }

    /// Scores, and the results of the tests.
    fn tests(&self) -> Comparison;

    /// Fills in what a test says.
    fn record(&mut self, tests: &Comparison);

    /// The ends of the 95 % interval of the difference; absent where nothing was tested.
    fn delta_interval(&self) -> Option<(f64, f64)> {
        self.tests().interval.map(|Interval { low, high }| (low, high))
    }

    /// The interval of the difference that holds for all rows of its family at once; absent where there is none.
    fn simultaneous_interval(&self) -> Option<Interval> {
        self.tests().simultaneous
    }

    /// Gain of the score with the heads masked; below 0 it is worse, so they were useful.
    fn gain(&self) -> f64 {
        self.direction().gain(self.tests().delta)
    }

    /// What the 95 % interval of the loss says beside a margin in percent of the intact score; absent where there is none.
    fn verdict(&self, margin_percent: f64) -> Option<Verdict> {
        self.verdict_by(self.tests().interval, margin_percent)
    }

    /// The same by another interval of the difference.
    fn verdict_by(&self, delta: Option<Interval>, margin_percent: f64) -> Option<Verdict> {
        let ends =
            delta.map(|Interval { low, high }| [low, high].map(|delta| -self.direction().gain(delta)))?;
        let loss = Interval { low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) };
        Some(Verdict::of(loss, margin(self.metric(), self.tests().base, margin_percent)))
    }
}

/// `csv` cannot flatten, so each row type has these columns itself.
macro_rules! tested_columns {
    () => {
        fn metric(&self) -> stats::MetricName {
            self.metric
        }

        fn tests(&self) -> stats::family::Comparison {
            let between = |(low, high)| stats::bootstrap::Interval { low, high };
            stats::family::Comparison {
                interval: self.delta_low.zip(self.delta_high).map(between),
                simultaneous: self.simultaneous_low.zip(self.simultaneous_high).map(between),
                p_value: self.p_value,
                p_bootstrap: self.p_bootstrap,
                p_koehn: self.p_koehn,
                p_adjusted: self.p_adjusted,
                p_benjamini_hochberg: self.p_benjamini_hochberg,
                p_unpaired_t: self.p_unpaired_t,
                p_mcnemar: self.p_mcnemar,
                power: self.power,
                segments_for_power: self.segments_for_power,
                ..stats::family::Comparison::untested(self.base_score, self.score)
            }
        }

        fn record(&mut self, tests: &stats::family::Comparison) {
            self.base_score = tests.base;
            self.score = tests.variant;
            self.score_delta = tests.delta;
            self.delta_low = tests.interval.map(|ends| ends.low);
            self.delta_high = tests.interval.map(|ends| ends.high);
            self.simultaneous_low = tests.simultaneous.map(|ends| ends.low);
            self.simultaneous_high = tests.simultaneous.map(|ends| ends.high);
            self.p_value = tests.p_value;
            self.p_bootstrap = tests.p_bootstrap;
            self.p_koehn = tests.p_koehn;
            self.p_adjusted = tests.p_adjusted;
            self.p_benjamini_hochberg = tests.p_benjamini_hochberg;
            self.p_unpaired_t = tests.p_unpaired_t;
            self.p_mcnemar = tests.p_mcnemar;
            self.power = tests.power;
            self.segments_for_power = tests.segments_for_power;
        }
    };
}
pub(crate) use tested_columns;

#[cfg(test)]
mod tests;
