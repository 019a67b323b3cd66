//! The rows of `ablate-one` and of `ablate-all-but-one` (Michel et al. 2019, Sections 3.2 and 3.3).
use std::collections::BTreeMap;

use records::{AblationRow, Attention, TestedRow as _, Verdict, Verdicts};
use words::count;

use crate::findings::judge::Judge;
use crate::findings::pruning::median;
use crate::findings::results::{Results, distinct, extent};

/// Why heads are missing: an unfinished sweep cannot be told from layers with different numbers of heads.
pub const UNFINISHED: &str = "the sweep is not finished, or layers have different numbers of heads";

/// Type of model; the paper has translators and classifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// An encoder and a decoder.
    Translator,
    /// An encoder that classifies texts.
    Classifier,
    /// A model that predicts the next token.
    Language,
}

/// Effects of masking, head by head, with scores in the unit of the metric.
pub type Ablations = Results<AblationRow>;

impl Ablations {
    /// Returns the attention types that have rows.
    pub fn attentions(&self) -> Vec<Attention> {
        distinct(self.rows.iter().map(|row| row.attention))
    }

    /// Returns the rows of one attention type, which form one family of tests.
    pub fn family(&self, attention: Attention) -> Vec<&AblationRow> {
        self.rows.iter().filter(|row| row.attention == attention).collect()
    }

    /// Returns the verdicts after the interim analysis at this number of segments; heads not yet decided are undecided.
    pub fn verdicts_after(&self, judge: Judge, size: usize) -> Verdicts {
        let mut verdicts = Verdicts::default();
        for row in &self.rows {
            let verdict = judge.verdict(row).filter(|_| row.sample() <= size);
            verdicts.add(verdict.unwrap_or(Verdict::Undecided));
        }
        verdicts
    }

    /// Returns the number of layers and heads that the rows of a type cover.
    pub fn extent(&self, attention: Attention) -> (usize, usize) {
        extent(self.family(attention).into_iter().map(AblationRow::head_id))
    }

    /// Returns the largest head number.
    pub fn heads(&self) -> usize {
        self.rows.iter().map(|row| row.head).max().unwrap_or(0)
    }

    /// Returns the number of heads of a type without a row, and the expected number of heads, if all layers have equally many.
    pub fn missing(&self, attention: Attention) -> (usize, usize) {
        let (layers, heads) = self.extent(attention);
        ((layers * heads).saturating_sub(self.family(attention).len()), layers * heads)
    }

    /// Describes the heads that have no row.
    pub fn missing_heads(&self) -> Vec<String> {
        let sentence = |attention: Attention| {
            let (missing, all) = self.missing(attention);
            let of = format!("{attention}: {missing} of {} are missing: {UNFINISHED}", count(all, "head"));
            (missing > 0).then_some(of)
        };
        self.attentions().into_iter().filter_map(sentence).collect()
    }

    /// Infers the type of model from its attention types and its signature.
    pub fn model(&self) -> Model {
        match self.attentions()[..] {
            [Attention::SelfAttention] if self.file.is_language() => Model::Language,
            [Attention::SelfAttention] => Model::Classifier,
            _ => Model::Translator,
        }
    }
}

/// Describes how many segments decided how many heads; `None` if all were measured on all segments.
pub fn looks_of<'a>(family: impl IntoIterator<Item = &'a AblationRow>) -> Option<String> {
    let family: Vec<&AblationRow> = family.into_iter().collect();
    let mut by_sample: BTreeMap<usize, usize> = BTreeMap::new();
    let samples = family.iter().filter_map(|row| row.looks()?.last().copied());
    samples.for_each(|sample| *by_sample.entry(sample).or_default() += 1);
    let shown = by_sample.iter().map(|(sample, heads)| format!("{} on {sample}", count(*heads, "head")));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let mut correlations: Vec<f64> = family.iter().filter_map(|row| row.correlation).collect();
    correlations.sort_by(f64::total_cmp);
    let median = median(&correlations);
    let helped = median.map_or(String::new(), |median| {
        format!(
            "; first-order effects of all segments are a control variate (median correlation {median:.2})"
        )
    });
    (!by_sample.is_empty()).then(|| {
        format!("measured until decided: {shown} segments; intervals hold at every look and p-values are left out{helped}")
    })
}
