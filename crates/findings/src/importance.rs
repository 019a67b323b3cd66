//! What heads can be ordered by: the rows of `importance` (Michel et al. 2019, Section 4.1).
use records::ImportanceRow;

use crate::results::Results;

/// A score of heads, one column of the file; heads with the least are masked first.
///
/// The orders of `iterative-prune` are [others](records::Order): not all of them go by a score.
#[derive(Debug, Clone, Copy)]
pub struct HeadScore {
    /// The name in figures and tables.
    pub label: &'static str,
    /// The value of a head; absent where it was not measured.
    value: fn(&ImportanceRow) -> Option<f64>,
}

const COMBINED: HeadScore =
    HeadScore { label: "importance + entropy", value: |row| Some(row.importance_entropy) };
const ORACLE: HeadScore = HeadScore { label: "oracle", value: |row| row.oracle };
const SCORES: [HeadScore; 7] = [
    HeadScore { label: "importance", value: |row| Some(row.example_normalised) },
    HeadScore { label: "importance by token", value: |row| Some(row.token_normalised) },
    HeadScore { label: "attention gradient", value: |row| Some(row.attention_gradient) },
    HeadScore { label: "\u{2212}entropy", value: |row| Some(-row.entropy) },
    HeadScore { label: "confidence", value: |row| Some(row.confidence) },
    COMBINED,
    ORACLE,
];

/// What is known of each head of a subject.
pub type Importance = Results<ImportanceRow>;

impl Importance {
    /// The scores that no head lacks, with those of all heads; only the oracle may be missing.
    pub fn known(&self) -> Vec<(HeadScore, Vec<f64>)> {
        let of = |score: HeadScore| self.rows.iter().map(score.value).collect::<Option<_>>();
        SCORES.into_iter().filter_map(|score| Some((score, of(score)?))).collect()
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
        let combined = self.file.departures().map(|how| format!("{}: {how}", COMBINED.label));
        let has_oracle = self.rows.iter().all(|row| row.oracle.is_some());
        // The split of the signature is what `ablate-one` scored.
        let oracle = self.file.scored().filter(|_| has_oracle);
        let oracle = oracle.map(|data| format!("{}: score lost on {data}", ORACLE.label));
        combined.into_iter().chain(oracle).collect()
    }
}
