//! The rows of `importance`, read and checked, and what heads can be ordered by (Michel et al. 2019, Section 4.1).
use std::path::Path;

use records::ImportanceRow;

use crate::Error;
use crate::attention::Attention;
use crate::estimate::Estimate;
use crate::origin;
use crate::result_file::ResultFile;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "importance";

/// A score of heads, one column of the file; heads with the least are masked first.
///
/// The orders of `iterative-prune` are [others](records::Order): not all of them go by a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadScore {
    /// Equation 2, normalised by layer.
    Importance,
    /// The same over tokens, as the authors' code has it.
    ImportanceByToken,
    /// Gradient of the loss by attention weights.
    AttentionGradient,
    /// Entropy of the attention, negative: heads whose attention is spread are masked first.
    NegativeEntropy,
    /// Mean of the greatest attention weight.
    Confidence,
    /// Importance and entropy, averaged.
    ImportanceEntropy,
    /// Score that is lost without the head.
    Oracle,
}

impl HeadScore {
    /// All scores; the last one is not known for every subject.
    pub const ALL: [Self; 7] = [
        Self::Importance,
        Self::ImportanceByToken,
        Self::AttentionGradient,
        Self::NegativeEntropy,
        Self::Confidence,
        Self::ImportanceEntropy,
        Self::Oracle,
    ];

    /// The name in figures and tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Importance => "importance",
            Self::ImportanceByToken => "importance by token",
            Self::AttentionGradient => "attention gradient",
            Self::NegativeEntropy => "\u{2212}entropy",
            Self::Confidence => "confidence",
            Self::ImportanceEntropy => "importance + entropy",
            Self::Oracle => "oracle",
        }
    }

    /// The value of a head; absent where it was not measured.
    pub fn value(self, row: &ImportanceRow) -> Option<f64> {
        match self {
            Self::Importance => Some(row.example_normalised),
            Self::ImportanceByToken => Some(row.token_normalised),
            Self::AttentionGradient => Some(row.attention_gradient),
            Self::NegativeEntropy => Some(-row.entropy),
            Self::Confidence => Some(row.confidence),
            Self::ImportanceEntropy => Some(row.importance_entropy),
            Self::Oracle => row.oracle,
        }
    }
}

/// What is known of each head of a subject.
#[derive(Debug, Clone)]
pub struct Importance {
    /// The file that the rows are from.
    pub file: ResultFile,
    /// What the signature says of all scores but the oracle's.
    pub estimate: Estimate,
    rows: Vec<ImportanceRow>,
}

impl Importance {
    /// Reads a file of `importance`.
    ///
    /// # Errors
    /// If the file is missing or damaged.
    pub fn read(file: ResultFile) -> Result<Self, Error> {
        let rows = file.rows()?;
        Self::from_rows(file, rows)
    }

    /// Checks rows that come from `file`.
    ///
    /// # Errors
    /// If there are none, or one has an impossible value.
    pub fn from_rows(file: ResultFile, rows: Vec<ImportanceRow>) -> Result<Self, Error> {
        if rows.is_empty() {
            return Err(Error::Empty { path: file.path });
        }
        rows.iter().try_for_each(|row| check(&file.path, row))?;
        let estimate = file.origin.estimate();
        Ok(Self { file, estimate, rows })
    }

    /// The file, which errors mention.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// The heads.
    pub fn rows(&self) -> &[ImportanceRow] {
        &self.rows
    }

    /// The scores of all heads, if none is missing.
    pub fn values(&self, score: HeadScore) -> Option<Vec<f64>> {
        self.rows.iter().map(|row| score.value(row)).collect()
    }

    /// Subject and the data of all scores but the oracle's, as a reader should see them.
    pub fn title(&self) -> String {
        let data = self.estimate.data().map_or(String::new(), |data| format!(", estimated on {data}"));
        format!("{}{data}", origin::name(&self.file.subject))
    }

    /// A sentence where the data is not known, or the signature cannot vouch for the rows.
    pub fn unknown(&self) -> Option<String> {
        let unknown = || "data of the estimates unknown: the signature does not name it".to_owned();
        self.file.remark().or_else(|| self.estimate.data().is_none().then(unknown))
    }

    /// Sentences on what the title does not cover: how importance is combined with entropy, if not as usual, and the
    /// data of the oracle, if all heads have one.
    pub fn notes(&self) -> Vec<String> {
        // Each of the other columns has its settings in its name.
        let departures = self.estimate.departures();
        let combined = departures.map(|how| format!("{}: {how}", HeadScore::ImportanceEntropy.label()));
        let has_oracle = self.values(HeadScore::Oracle).is_some();
        // The split of the signature is what `ablate-one` scored.
        let oracle = self.file.origin.data().filter(|_| has_oracle);
        let oracle = oracle.map(|data| format!("{}: score lost on {data}", HeadScore::Oracle.label()));
        combined.into_iter().chain(oracle).collect()
    }
}

fn check(path: &Path, row: &ImportanceRow) -> Result<(), Error> {
    let attention = row.attention.parse::<Attention>();
    attention.map_err(|source| Error::Attention { path: path.to_owned(), experiment: EXPERIMENT, source })?;
    let columns = [
        ("example_normalised", Some(row.example_normalised)),
        ("token_normalised", Some(row.token_normalised)),
        ("attention_gradient", Some(row.attention_gradient)),
        ("entropy", Some(row.entropy)),
        ("confidence", Some(row.confidence)),
        ("importance_entropy", Some(row.importance_entropy)),
        ("oracle", row.oracle),
    ];
    for (column, value) in columns {
        if let Some(found) = value.filter(|value| !value.is_finite()) {
            let head = format!("{}:{}:{}", row.attention, row.layer, row.head);
            return Err(Error::Range {
                path: path.to_owned(),
                head,
                column,
                found,
                range: "a finite number",
            });
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use records::{Identity, Provenance, Row, Signature};

    use super::*;
    use crate::estimate::tests::identity;
    use crate::result_file::Source;

    /// A head whose values all rise with `rank`, but for the entropy, which falls.
    pub(crate) fn row(head: usize, rank: f64) -> ImportanceRow {
        ImportanceRow {
            attention: "self".to_owned(),
            layer: 1,
            head,
            example: rank,
            example_normalised: rank,
            token: rank,
            token_normalised: rank,
            attention_gradient: rank,
            entropy: 9.0 - rank,
            confidence: rank,
            importance_entropy: rank,
            oracle: Some(rank),
        }
    }

    pub(crate) fn importance(rows: Vec<ImportanceRow>) -> Result<Importance, Error> {
        Importance::from_rows(ResultFile::unsigned("demo-x", "importance.csv"), rows)
    }

    #[test]
    fn heads_of_spread_attention_come_first() {
        let found = importance(vec![row(1, 2.0), row(2, 1.0)]).unwrap();
        assert_eq!(found.values(HeadScore::NegativeEntropy), Some(vec![-7.0, -8.0]));
        assert_eq!(found.values(HeadScore::Confidence), Some(vec![2.0, 1.0]));
    }

    #[test]
    fn an_oracle_with_a_gap_is_none() {
        let rows = vec![row(1, 2.0), ImportanceRow { oracle: None, ..row(2, 1.0) }];
        assert_eq!(importance(rows).unwrap().values(HeadScore::Oracle), None);
    }

    /// The signature has both the split that `ablate-one` scored and the one that all other columns are from.
    #[test]
    fn the_scored_split_is_that_of_the_oracle_alone() {
        let folder = tempfile::tempdir().unwrap();
        let subject = folder.path().join("demo-x");
        std::fs::create_dir(&subject).unwrap();
        let lines = "self,1,1,1,1,1,1,1,1,1,1,1\n";
        let csv = format!("{}\n{lines}", ImportanceRow::COLUMNS.join(","));
        std::fs::write(subject.join("importance.csv"), csv).unwrap();
        let read = |identity: Identity| {
            let signature = Signature::new(identity, Provenance::collect("cpu", 1, Default::default()));
            signature.write(&subject.join("importance.json")).unwrap();
            Importance::read(Source::subject(folder.path(), "demo-x").one(EXPERIMENT).unwrap()).unwrap()
        };
        let usual = read(identity("example", true, 0.5));
        assert_eq!(usual.title(), "demo-x (demo language), estimated on 2000 segments of train");
        assert_eq!(usual.notes(), ["oracle: score lost on test"]);
        let other = read(Identity { limit: Some(300), ..identity("token", false, 0.25) });
        let expected = [
            "importance + entropy: importance by token, not normalised, weight 0.25 beside entropy",
            "oracle: score lost on test, first 300 segments",
        ];
        assert_eq!(other.notes(), expected);
    }

    #[test]
    fn without_a_signature_nothing_is_said_of_the_data() {
        let found = importance(vec![row(1, 2.0)]).unwrap();
        assert_eq!((found.title().as_str(), found.notes().len()), ("demo-x (demo language)", 0));
    }

    #[test]
    fn impossible_rows_are_refused() {
        let message = |row| importance(vec![row]).unwrap_err().to_string();
        let found = message(ImportanceRow { entropy: f64::NAN, ..row(3, 1.0) });
        assert_eq!(found, "`importance.csv`: entropy of self:1:3 is NaN, but it must be a finite number");
        let found = message(ImportanceRow { attention: "enc".to_owned(), ..row(3, 1.0) });
        assert_eq!(found, "`importance.csv` is not what `importance` writes");
        assert!(importance(vec![]).unwrap_err().to_string().ends_with("holds no rows yet"));
    }
}
