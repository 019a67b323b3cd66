//! The rows of `ablate-one` and of `ablate-all-but-one` (Michel et al. 2019, Sections 3.2 and 3.3).
use records::{AblationRow, Attention};

use crate::Error;
use crate::judge::{Criterion, Judge};
use crate::origin::{Beside, Model};
use crate::source::ResultFile;
use crate::words::{Metric, count};

/// The experiment that masks one head at a time.
pub const EXPERIMENT: &str = "ablate-one";

/// What it may mean that heads are missing: a sweep that is still running and uneven layers look the same from here.
pub const UNFINISHED: &str = "the sweep is not finished, or not all layers have as many heads";

/// What masking does to the score of a subject, head by head.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The file that the rows are from.
    pub file: ResultFile,
    /// What the scores measure.
    pub metric: Metric,
    /// Score of the intact model, in the unit of the metric.
    pub base: f64,
    /// One for each head.
    pub rows: Vec<AblationRow>,
}

impl Sweep {
    /// Reads a file of `experiment`.
    ///
    /// # Errors
    /// If the file is missing or damaged, or its rows are not one sweep.
    pub fn read(mut file: ResultFile, experiment: &str) -> Result<Self, Error> {
        let rows: Vec<AblationRow> = file.rows(experiment)?;
        Ok(Self { metric: Metric::new(&rows[0].metric), base: rows[0].base_score, file, rows })
    }

    /// What decides which heads matter.
    pub fn judge(&self, criterion: Criterion) -> Judge {
        Judge::new(&self.metric, &self.file, criterion)
    }

    /// The attention types that have rows, in the order of [`Attention::ALL`].
    pub fn attentions(&self) -> Vec<Attention> {
        let has_rows = |attention: &Attention| self.rows.iter().any(|row| row.attention == *attention);
        Attention::ALL.into_iter().filter(has_rows).collect()
    }

    /// All rows of one attention type, which are one family of tests (EXPERIMENTS.md, Section 9); empty if there are none.
    pub fn family(&self, attention: Attention) -> Vec<&AblationRow> {
        self.rows.iter().filter(|row| row.attention == attention).collect()
    }

    /// Layers and heads that the rows of a type span.
    pub fn extent(&self, attention: Attention) -> (usize, usize) {
        let family = self.family(attention);
        let most = |number: fn(&AblationRow) -> usize| family.iter().map(|row| number(row)).max().unwrap_or(0);
        (most(|row| row.layer), most(|row| row.head))
    }

    /// The most heads that a layer has.
    pub fn heads(&self) -> usize {
        self.rows.iter().map(|row| row.head).max().unwrap_or(0)
    }

    /// A sentence on the heads of one attention type that have no row, if their number can be told.
    pub fn missing_heads(&self, attention: Attention) -> Option<String> {
        let (layers, heads) = self.extent(attention);
        let missing = (layers * heads).saturating_sub(self.family(attention).len());
        (missing > 0).then(|| {
            format!("{attention}: {missing} of {} are not there: {UNFINISHED}", count(layers * heads, "head"))
        })
    }

    /// The same of all types.
    pub fn all_missing_heads(&self) -> Vec<String> {
        self.attentions().into_iter().filter_map(|attention| self.missing_heads(attention)).collect()
    }

    /// Subject and split as a reader should see them.
    pub fn title(&self) -> String {
        self.file.title()
    }

    /// Which model the rows are of.
    pub fn model(&self) -> Model {
        self.file.model()
    }

    /// What of the paper they stand beside.
    pub fn beside(&self) -> Option<Beside> {
        self.file.beside(self.metric.name(), &self.attentions())
    }

    /// `base BLEU 36.05`.
    pub fn base_line(&self) -> String {
        format!("base {}", self.metric.described(self.base))
    }

    /// Whether the paper has a table of the same kind, if one attention type is alone.
    pub fn stem(&self, [translation, bert, language]: [&'static str; 3]) -> &'static str {
        match (&self.attentions()[..], self.model()) {
            ([Attention::SelfAttention], Model::Other) => bert,
            ([Attention::SelfAttention], Model::Language) => language,
            _ => translation,
        }
    }
}
