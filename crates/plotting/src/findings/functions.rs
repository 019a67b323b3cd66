//! Functions of heads, and the share of a model's words that goes back to each: the rows of `head-functions` and `relevance` (Voita et al.
//! 2019, Sections 4 and 5).
use std::collections::BTreeSet;

use records::rows::functions::by_function;
use records::{HeadFunctionRow, HeadId, RelevanceRow};

use crate::findings::error::{Result, no_results};
use crate::findings::results::Results;
use crate::findings::source::{ResultFile, experiment};

/// Functions of each head of a subject.
pub type Functions = Results<HeadFunctionRow>;

impl Functions {
    /// Reads what the heads of the model behind another file do, from the file beside it.
    pub fn of_model(file: &ResultFile) -> Result<Self> {
        let own = Self::beside_model(file, experiment::FUNCTIONS, experiment::FUNCTIONS)?;
        let path = file.path.with_file_name(format!("{}.csv", experiment::FUNCTIONS));
        own.ok_or_else(|| no_results(path, experiment::FUNCTIONS, &file.subject))
    }

    /// All heads that were looked at.
    pub fn heads(&self) -> BTreeSet<HeadId> {
        self.rows.iter().map(HeadFunctionRow::head_id).collect()
    }

    /// The heads that have each function, by name; a function that was not looked for is left out.
    pub fn kinds(&self) -> Vec<(&'static str, BTreeSet<HeadId>)> {
        by_function(&self.rows).into_iter().filter_map(|(name, heads)| Some((name, heads?))).collect()
    }
}

/// The relevance of each head of a subject.
pub type Relevance = Results<RelevanceRow>;

impl Relevance {
    /// Warning if much of the relevance is lost or added.
    pub fn doubt(&self) -> Option<String> {
        RelevanceRow::doubt(self.rows.iter().map(|row| row.lost).fold(0.0, f64::max))
    }
}
