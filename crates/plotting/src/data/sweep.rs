//! The rows of `ablate-one` and of `ablate-all-but-one` (Michel et al. 2019, Sections 3.2 and 3.3).
use anyhow::Result;
use records::{AblationRow, Attention};

use crate::judge::{Criterion, Judge};
use crate::origin::Beside;
use crate::source::ResultFile;
use crate::words::{Metric, count};

/// The experiment that masks one head at a time.
pub const EXPERIMENT: &str = "ablate-one";

/// What it may mean that heads are missing: a sweep that is still running and uneven layers look the same from here.
pub const UNFINISHED: &str = "the sweep is not finished, or not all layers have as many heads";

/// What masking does to the score of a subject, head by head; scores in the unit of the metric.
#[derive(Debug, Clone)]
pub struct Sweep {
    pub file: ResultFile,
    pub metric: Metric,
    /// Score of the intact model.
    pub base: f64,
    pub rows: Vec<AblationRow>,
}

impl Sweep {
    pub fn read(mut file: ResultFile, experiment: &str) -> Result<Self> {
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

    /// All rows of one attention type, which are one family of tests; empty if there are none.
    pub fn family(&self, attention: Attention) -> Vec<&AblationRow> {
        self.rows.iter().filter(|row| row.attention == attention).collect()
    }

    /// Layers and heads that the rows of a type span.
    pub fn extent(&self, attention: Attention) -> (usize, usize) {
        let family = self.rows.iter().filter(|row| row.attention == attention);
        family.fold((0, 0), |(layers, heads), row| (layers.max(row.layer), heads.max(row.head)))
    }

    /// The most heads that a layer has.
    pub fn heads(&self) -> usize {
        self.rows.iter().map(|row| row.head).max().unwrap_or(0)
    }

    /// Sentences on the heads that have no row, if their number can be told.
    pub fn missing_heads(&self) -> Vec<String> {
        let missing = |attention: Attention| {
            let (layers, heads) = self.extent(attention);
            let missing = (layers * heads).saturating_sub(self.family(attention).len());
            let heads = count(layers * heads, "head");
            (missing > 0).then(|| format!("{attention}: {missing} of {heads} are not there: {UNFINISHED}"))
        };
        self.attentions().into_iter().filter_map(missing).collect()
    }

    /// What of the paper they stand beside.
    pub fn beside(&self) -> Option<Beside> {
        self.file.beside(self.metric.name(), &self.attentions())
    }

    /// `base BLEU 36.05`.
    pub fn base_line(&self) -> String {
        format!("base {}", self.metric.described(self.base))
    }

    /// The name for a translator, for a model like BERT, or for a language model.
    pub fn stem(&self, [translation, bert, language]: [&'static str; 3]) -> &'static str {
        match self.attentions()[..] {
            [Attention::SelfAttention] => {
                if self.file.is_language() {
                    language
                } else {
                    bert
                }
            }
            _ => translation,
        }
    }
}
