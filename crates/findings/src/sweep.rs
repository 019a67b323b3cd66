//! The rows of `ablate-one` and of `ablate-all-but-one` (Michel et al. 2019, Sections 3.2 and 3.3).
use records::{AblationRow, Attention};
use words::count;

use crate::results::{Results, each_type};

/// What it may mean that heads are missing: a sweep that is still running and uneven layers look the same from here.
pub const UNFINISHED: &str = "the sweep is not finished, or not all layers have as many heads";

/// What masking does to the score of a subject, head by head; scores in the unit of the metric.
pub type Sweep = Results<AblationRow>;

impl Sweep {
    /// The attention types that have rows.
    pub fn attentions(&self) -> Vec<Attention> {
        each_type(self.rows.iter().map(|row| row.attention))
    }

    /// All rows of one attention type, which are one family of tests; empty if there are none.
    pub fn family(&self, attention: Attention) -> Vec<&AblationRow> {
        self.rows.iter().filter(|row| row.attention == attention).collect()
    }

    /// Layers and heads that the rows of a type span.
    pub fn extent(&self, attention: Attention) -> (usize, usize) {
        let family = self.family(attention).into_iter();
        family.fold((0, 0), |(layers, heads), row| (layers.max(row.layer), heads.max(row.head)))
    }

    /// The most heads that a layer has.
    pub fn heads(&self) -> usize {
        self.rows.iter().map(|row| row.head).max().unwrap_or(0)
    }

    /// How many heads of a type have no row, as far as can be told, and how many there should be.
    pub fn missing(&self, attention: Attention) -> (usize, usize) {
        let (layers, heads) = self.extent(attention);
        ((layers * heads).saturating_sub(self.family(attention).len()), layers * heads)
    }

    /// Sentences on the heads that have no row.
    pub fn missing_heads(&self) -> Vec<String> {
        let sentence = |attention: Attention| {
            let (missing, all) = self.missing(attention);
            let of = format!("{attention}: {missing} of {} are not there: {UNFINISHED}", count(all, "head"));
            (missing > 0).then_some(of)
        };
        self.attentions().into_iter().filter_map(sentence).collect()
    }

    /// The name for a translator, for a model like BERT, or for a language model.
    pub fn stem(&self, [translation, bert, language]: [&'static str; 3]) -> &'static str {
        match self.attentions()[..] {
            [Attention::SelfAttention] if self.file.is_language() => language,
            [Attention::SelfAttention] => bert,
            _ => translation,
        }
    }
}
