//! What heads do, and how much of what a model says goes back to each: the rows of `head-functions` and `relevance` (Voita et al.
//! 2019, Sections 4 and 5).
use std::collections::BTreeSet;

use records::rows::functions::by_function;
use records::{Head, HeadFunctionRow, RelevanceRow};

use crate::error::{Result, no_results};
use crate::results::Results;
use crate::same_model::{self, weights_entry};
use crate::source::{ResultFile, experiment};

/// What each head of a subject does.
pub type Functions = Results<HeadFunctionRow>;

impl Functions {
    /// Reads what the heads of the model behind another file do, from the file beside it.
    ///
    /// # Errors
    /// If there is none, or it is of other weights.
    pub fn of_model(file: &ResultFile) -> Result<Self> {
        let own = same_model::beside(file, experiment::FUNCTIONS, experiment::FUNCTIONS, &[weights_entry])?;
        let path = file.path.with_file_name(format!("{}.csv", experiment::FUNCTIONS));
        Self::read(own.ok_or_else(|| no_results(path, experiment::FUNCTIONS, &file.subject))?)
    }

    /// All heads that were looked at.
    pub fn heads(&self) -> BTreeSet<Head> {
        self.rows.iter().map(HeadFunctionRow::head_id).collect()
    }

    /// The heads that have each function, by name; a function that was not looked for is left out.
    pub fn kinds(&self) -> Vec<(&'static str, BTreeSet<Head>)> {
        by_function(&self.rows).into_iter().filter_map(|(name, heads)| Some((name, heads?))).collect()
    }
}

/// The relevance of each head of a subject.
pub type Relevance = Results<RelevanceRow>;

impl Relevance {
    /// The rules that it was followed by.
    pub fn rules(&self) -> &str {
        self.file.text("lrp").unwrap_or("unknown")
    }

    /// What is to be said where the rules lose much of the relevance, or count it more than once.
    pub fn doubt(&self) -> Option<String> {
        RelevanceRow::doubt(self.rules(), self.rows.iter().map(|row| row.lost).fold(0.0, f64::max))
    }
}
