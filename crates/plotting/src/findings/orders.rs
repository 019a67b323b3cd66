//! Everything that the heads of a model can be ordered by: the scores of `importance` (Michel et al. 2019, Section 4.1), and
//! relevance (Voita et al. 2019, Section 4).
use std::collections::BTreeMap;

use records::HeadId;

use crate::findings::error::{LeftOut, Result};
use crate::findings::functions::Relevance;
use crate::findings::importance::{HeadScore, Importance};
use crate::findings::source::ResultFile;

/// All orders of the heads of a model.
#[derive(Debug, Clone)]
pub struct Orders {
    /// The scores, and which heads there are.
    pub importance: Importance,
    /// Orders by scores, then those by relevance.
    pub all: Vec<HeadScore>,
    /// The data of each relevance, as sentences.
    notes: Vec<String>,
}

impl Orders {
    /// Reads a file of `importance`, and those of `relevance` beside it, which are left out if they are of another model.
    pub fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Self> {
        let importance = Importance::read(file)?;
        let (mut all, mut notes) = (importance.known(), Vec::new());
        for relevance in Relevance::all_beside(&importance.file, left_out) {
            let by_head: BTreeMap<HeadId, f64> =
                relevance.rows.iter().map(|row| (row.head_id(), row.relevance)).collect();
            let values = importance.heads().into_iter().map(|head| by_head.get(&head).copied());
            // only one that has every head is an order
            let Some(values) = values.collect() else { continue };
            let label = format!("relevance, {}", relevance.rules());
            let data = relevance.file.scored().map_or(String::new(), |data| format!(", on {data}"));
            let doubt = relevance.doubt().map_or(String::new(), |doubt| format!("; {doubt}"));
            notes.push(format!("{label}: Voita et al. (2019){data}{doubt}"));
            all.push(HeadScore { label, unit: "", values });
        }
        Ok(Self { importance, all, notes })
    }

    /// Sentences on what the title does not cover.
    pub fn notes(&self) -> Vec<String> {
        self.importance.notes().into_iter().chain(self.notes.clone()).collect()
    }
}
