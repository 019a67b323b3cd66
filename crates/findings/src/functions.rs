//! What heads do, and how much of what a model says goes back to each: the rows of `head-functions` and `relevance` (Voita et al.
//! 2019, Sections 4 and 5).
use std::collections::BTreeSet;

use records::rows::functions::{POSITIONAL, RARE, SYNTACTIC};
use records::{Head, HeadFunctionRow, RelevanceRow};

use crate::error::{Result, no_results};
use crate::results::Results;
use crate::same_model::{self, weights_entry};
use crate::source::{ResultFile, experiment};

/// What heads may do, by name and as rows have it.
pub const KINDS: [(&str, &str); 3] =
    [("positional", POSITIONAL), ("syntactic", SYNTACTIC), ("rare tokens", RARE)];

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

    /// The heads that have a function by the paper's threshold; absent if it was not looked for.
    pub fn heads_with(&self, function: &str) -> Option<BTreeSet<Head>> {
        let mut rows = self.rows.iter().filter(|row| row.function == function).peekable();
        rows.peek()?;
        Some(rows.filter(|row| row.holds == Some(true)).map(HeadFunctionRow::head_id).collect())
    }
}

/// The relevance of each head of a subject.
pub type Relevance = Results<RelevanceRow>;

impl Relevance {
    /// The rules that it was followed by.
    pub fn rules(&self) -> &str {
        self.file.text("lrp").unwrap_or("unknown")
    }
}
