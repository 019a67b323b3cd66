//! Functions of heads, and their relevance for predictions: the rows of `head-functions` and `relevance` (Voita et al. 2019, Sections 4,
//! 5).
use std::collections::BTreeSet;

use records::rows::functions::by_function;
use records::{HeadFunctionRow, HeadId, RelevanceRow};

use crate::findings::error::{Result, no_results};
use crate::findings::results::Results;
use crate::findings::source::{ResultFile, experiment};

/// Functions of each head of a setup.
pub type Functions = Results<HeadFunctionRow>;

impl Functions {
    /// Reads the functions of a model's heads from the folder of another result file of that model.
    pub fn of_model(file: &ResultFile) -> Result<Self> {
        let own = Self::beside_model(file, experiment::FUNCTIONS)?;
        let path = file.path.with_file_name(format!("{}.csv", experiment::FUNCTIONS));
        own.ok_or_else(|| no_results(path, experiment::FUNCTIONS, &file.subject))
    }

    /// Returns all heads that were examined.
    pub fn heads(&self) -> BTreeSet<HeadId> {
        self.rows.iter().map(HeadFunctionRow::head_id).collect()
    }

    /// Returns the heads with each function, by name; omits functions that were not tested.
    pub fn kinds(&self) -> Vec<(&'static str, BTreeSet<HeadId>)> {
        by_function(&self.rows).into_iter().filter_map(|(name, heads)| Some((name, heads?))).collect()
    }
}

/// Relevance of each head of a setup.
pub type Relevance = Results<RelevanceRow>;

impl Relevance {
    /// Warns if much of the relevance is lost or added.
    pub fn doubt(&self) -> Option<String> {
        RelevanceRow::doubt(self.rows.iter().map(|row| row.lost).fold(0.0, f64::max))
    }
}
