//! Functions of heads, and the share of a model's words that goes back to each: the rows of `head-functions` and `relevance` (Voita et al.
//! 2019, Sections 4 and 5).
use std::collections::BTreeSet;

use records::rows::functions::by_function;
use records::rows::relevance::PAPER_RULES;
use records::{HeadFunctionRow, HeadId, RelevanceRow};

use crate::findings::error::{LeftOut, Result, no_results};
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
    /// By each set of rules, of the model behind another file; what is of another model is left out.
    pub(crate) fn all_beside(file: &ResultFile, left_out: &mut LeftOut) -> Vec<Self> {
        let mut all = Vec::new();
        for rules in [PAPER_RULES, "alpha-beta"] {
            let name = format!("{}-{rules}", experiment::RELEVANCE);
            let found = Self::beside_model(file, &name, experiment::RELEVANCE);
            all.extend(left_out.keep(found).flatten());
        }
        all
    }

    /// The rules that it was followed by.
    pub fn rules(&self) -> &str {
        self.file.text("lrp").unwrap_or("unknown")
    }

    /// Name of the measure, with its rules: `relevance, rules: paper`.
    pub fn name(&self) -> String {
        let doubt = if self.doubt().is_some() { ", not to be trusted" } else { "" };
        format!("relevance, rules: {}{doubt}", self.rules())
    }

    /// Warning where the rules lose much of the relevance, or count it more than once.
    pub fn doubt(&self) -> Option<String> {
        RelevanceRow::doubt(self.rules(), self.rows.iter().map(|row| row.lost).fold(0.0, f64::max))
    }
}
