//! What heads do, and how much of what a model says goes back to each: the rows of `head-functions` and `relevance` (Voita et al.
//! 2019, Sections 4 and 5).
use std::collections::BTreeSet;

use anyhow::Result;
use records::{Head, HeadFunctionRow, RelevanceRow};

use super::same::{same_model, weights_entry};
use crate::error::no_results;
use crate::source::ResultFile;

/// The experiments whose results these are.
pub const FUNCTIONS: &str = "head-functions";
pub const RELEVANCE: &str = "relevance";

/// What each head of a subject does.
#[derive(Debug)]
pub struct Functions {
    pub file: ResultFile,
    pub rows: Vec<HeadFunctionRow>,
}

impl Functions {
    /// Reads a file of `head-functions`.
    pub fn read(mut file: ResultFile) -> Result<Self> {
        Ok(Self { rows: file.rows(FUNCTIONS)?, file })
    }

    /// Reads what the heads of the model behind another file do, from the file beside it.
    ///
    /// # Errors
    /// If there is none, or it is of other weights.
    pub fn beside(file: &ResultFile) -> Result<Self> {
        let own = same_model(file, FUNCTIONS, FUNCTIONS, &[weights_entry])?;
        let path = file.path.with_file_name(format!("{FUNCTIONS}.csv"));
        Self::read(own.ok_or_else(|| no_results(&path, FUNCTIONS, &file.subject))?)
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
#[derive(Debug)]
pub struct Relevance {
    pub file: ResultFile,
    pub rows: Vec<RelevanceRow>,
}

impl Relevance {
    /// Reads a file of `relevance`.
    pub fn read(mut file: ResultFile) -> Result<Self> {
        Ok(Self { rows: file.rows(RELEVANCE)?, file })
    }

    /// The rules that it was followed by.
    pub fn rules(&self) -> &str {
        self.file.text("lrp").unwrap_or("unknown")
    }
}
