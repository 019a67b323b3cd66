//! The row types, one for each kind of result file.

mod ablation;
mod audit;
mod correlation;
mod curve;
mod dynamics;
pub mod functions;
mod gates;
mod goal;
mod llama_cpp;
pub mod relevance;
mod scores;
mod speed;
mod tested;
mod training;

use heads::HeadSet;
use std::fmt::Debug;

use crate::check::Limit;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use ablation::AblationRow;
pub use audit::AuditRow;
pub use correlation::CorrelationRow;
pub use curve::{Cost, CurveId, CurveRow, Repair};
pub use dynamics::DynamicsRow;
pub use functions::HeadFunctionRow;
pub use gates::{GateFilmRow, GateRow, Method};
pub use goal::Goal;
pub use llama_cpp::LlamaCppRow;
pub use relevance::RelevanceRow;
pub use scores::ScoreRow;
pub use speed::SpeedRow;
pub use tested::{BASE, TestedRow};
pub(crate) use tested::{tested_columns, tested_row};
pub use training::TrainingRow;

/// A line of a result file. Rows are flat, and their text has no line breaks.
pub trait Row: Serialize + DeserializeOwned + PartialEq {
    /// The cells that make a row unique in its file; a finished file is in the order of its keys.
    type Key: Ord + Debug;

    /// Columns that files of earlier versions lack, in addition to those of tests; their cells are read as empty.
    const LATER: &'static [&'static str] = &[];

    /// The key of this row.
    fn key(&self) -> Self::Key;

    /// The key as text, such as `enc-enc:6:13`; what is measured of its segments is stored under it.
    fn name(&self) -> String;

    /// Name of the rows that are measured together, such as a curve: `--again` replaces all of them.
    fn series(&self) -> String {
        self.name()
    }

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

#[cfg(test)]
mod tests;
