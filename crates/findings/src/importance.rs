//! What heads can be ordered by: the rows of `importance` (Michel et al. 2019, Section 4.1).
use records::ImportanceRow;

use crate::results::Results;

/// What heads can be ordered by; those with the least are masked first.
///
/// The orders of `iterative-prune` are [others](records::Order): not all of them go by a score.
#[derive(Debug, Clone)]
pub struct HeadScore {
    /// The name in figures and tables.
    pub label: String,
    /// What it is counted in; nothing for shares of a layer's norm and of the greatest.
    pub unit: &'static str,
    /// One for each head, in the order of the rows of `importance`.
    pub values: Vec<f64>,
}

const COMBINED: &str = "importance + entropy";
const ORACLE: &str = "oracle";

/// What a row has of a score; only the oracle may be missing.
type Column = fn(&ImportanceRow) -> Option<f64>;

/// The columns of the file, with their names in figures and tables, and their units.
const SCORES: [(&str, &str, Column); 7] = [
    ("importance", "", |row| Some(row.example_normalised)),
    ("importance by token", "", |row| Some(row.token_normalised)),
    ("attention gradient", "nats", |row| Some(row.attention_gradient)),
    ("\u{2212}entropy", "nats", |row| Some(-row.entropy)),
    ("confidence", "", |row| Some(row.confidence)),
    (COMBINED, "", |row| Some(row.importance_entropy)),
    (ORACLE, "score lost", |row| row.oracle),
];

/// What is known of each head of a subject.
pub type Importance = Results<ImportanceRow>;

impl Importance {
    /// The scores that no head lacks.
    pub fn known(&self) -> Vec<HeadScore> {
        let known = SCORES.iter().filter_map(|(label, unit, score)| {
            let values = self.rows.iter().map(score).collect::<Option<_>>()?;
            Some(HeadScore { label: (*label).to_owned(), unit, values })
        });
        known.collect()
    }

    /// Subject and the data of all scores but the oracle's, as a reader should see them.
    pub fn title(&self) -> String {
        let data = self.file.estimated_on().map_or(String::new(), |data| format!(", estimated on {data}"));
        self.file.shown_subject() + &data
    }

    /// A sentence where there is a signature, but it does not name the data.
    pub fn unknown(&self) -> Option<&'static str> {
        let is_unknown = self.file.signature.is_some() && self.file.estimated_on().is_none();
        is_unknown.then_some("data of the estimates unknown: the signature does not name it")
    }

    /// Sentences on what the title does not cover: how importance is combined with entropy, if not as usual, and the
    /// data of the oracle, if all heads have one.
    pub fn notes(&self) -> Vec<String> {
        // Each of the other columns has its settings in its name.
        let combined = self.file.departures().map(|how| format!("{COMBINED}: {how}"));
        let has_oracle = self.rows.iter().all(|row| row.oracle.is_some());
        // The split of the signature is what `ablate-one` scored.
        let oracle = self.file.scored().filter(|_| has_oracle);
        let oracle = oracle.map(|data| format!("{ORACLE}: score lost on {data}"));
        combined.into_iter().chain(oracle).collect()
    }
}
