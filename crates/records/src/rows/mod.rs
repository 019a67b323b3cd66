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
pub use gates::{GateRow, Method};
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
    /// Cells that make a row unique in its file; a finished file is sorted by key.
    type Key: Ord + Debug;

    /// Columns that files of earlier versions lack, in addition to those of tests; read as empty.
    const LATER: &'static [&'static str] = &[];

    /// Returns the key of this row.
    fn key(&self) -> Self::Key;

    /// Returns the key as text, such as `enc-enc:6:13`, under which the statistics of its segments are stored.
    fn name(&self) -> String;

    /// Returns the name of the rows that are measured together, such as a curve: `--again` replaces all of them.
    fn series(&self) -> String {
        self.name()
    }

    /// Returns the name of the row in messages.
    fn title(&self) -> String {
        self.name()
    }

    /// Returns the numbers that have limits.
    fn limits(&self) -> Vec<Limit> {
        Vec::new()
    }

    /// Returns any other fault of the row.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Returns the columns that are equal in all rows of a run, with their values.
    fn of_run(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the group of rows with further common columns; `None` if rows have no groups.
    fn group(&self) -> Option<String> {
        None
    }

    /// Returns the columns that are equal in all rows of a group, with their values.
    fn of_group(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns a number that cannot follow the preceding row in the order of keys: its column, value, and what is allowed.
    fn against(&self, _before: &Self) -> Option<(&'static str, f64, &'static str)> {
        None
    }
}

/// Returns a fault if the second of two steps of a curve masks fewer heads.
pub(crate) fn falls(before: usize, masked: usize) -> Option<(&'static str, f64, &'static str)> {
    (masked < before).then_some(("masked", masked as f64, "at least the number of the previous step"))
}

/// Returns the fault of a list of masked heads that should have this many heads.
pub(crate) fn heads_fault(names: &str, masked: usize) -> Option<String> {
    match names.parse::<HeadSet>() {
        Err(fault) => Some(fault.to_string()),
        Ok(heads) if !heads.is_empty() && heads.len() != masked => {
            Some(format!("`masked_heads` has {} heads, but {masked} are masked", heads.len()))
        }
        Ok(_) => None,
    }
}
