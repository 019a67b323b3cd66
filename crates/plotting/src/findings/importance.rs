//! Scores that rank heads: the rows of `importance` (Michel et al. 2019, Section 4.1).
use std::collections::BTreeMap;

use records::{HeadId, Measure, ScoreRow};

use crate::findings::results::{Results, distinct};

/// A criterion that ranks heads; low values are masked first. Not every [ranking](records::Order) of `iterative-prune` has values.
#[derive(Debug, Clone)]
pub struct HeadScore {
    /// The name in figures and tables.
    pub label: String,
    /// Unit; empty for shares of a layer's norm and of the maximum.
    pub unit: &'static str,
    /// One value per head, in the order of [`Importance::heads`].
    pub values: Vec<f64>,
}

/// Criteria for each head of a setup.
pub type Importance = Results<ScoreRow>;

impl Importance {
    /// Returns the heads in ascending order.
    pub fn heads(&self) -> Vec<HeadId> {
        distinct(self.rows.iter().map(ScoreRow::head_id))
    }

    /// Returns the values of a criterion by head.
    pub fn of(&self, measure: Measure) -> BTreeMap<HeadId, f64> {
        let rows = self.rows.iter().filter(|row| row.measure == measure);
        rows.map(|row| (row.head_id(), row.value)).collect()
    }

    /// Returns the criteria that are known for all heads, without those that only serve to compute others.
    pub fn known(&self) -> Vec<HeadScore> {
        // with one output the loss is not a cross-entropy
        let metric = self.file.identity().map(|identity| identity.metric.as_str());
        let squares = matches!(metric, Some("pearson" | "spearman"));
        let unit = |measure: Measure| match measure.entry().unit {
            "nats" if squares && measure != Measure::Entropy => "squared error",
            "nats\u{b2}" if squares => "squared error\u{b2}",
            unit => unit,
        };
        let heads = self.heads().len();
        let known = Measure::ALL.into_iter().filter_map(|measure| {
            let (entry, values) = (measure.entry(), self.of(measure));
            let sign = if measure.ascending(1.0) < 0.0 { "\u{2212}" } else { "" };
            let values = values.into_values().map(|value| measure.ascending(value)).collect::<Vec<_>>();
            let label = format!("{sign}{}", entry.label?);
            (values.len() == heads).then_some(HeadScore { label, unit: unit(measure), values })
        });
        known.collect()
    }

    /// Returns the number of heads without a criterion.
    pub fn lacking(&self, measure: Measure) -> usize {
        self.heads().len() - self.of(measure).len()
    }

    /// Returns setup and data for display; the data applies to all criteria except the oracle.
    pub fn title(&self) -> String {
        let data = self.file.estimated_on().map_or(String::new(), |data| format!(", estimated on {data}"));
        self.file.shown_subject() + &data
    }

    /// Reports that a signature does not name the data.
    pub fn unknown(&self) -> Option<&'static str> {
        let is_unknown = self.file.signature.is_some() && self.file.estimated_on().is_none();
        is_unknown.then_some("data of the estimates unknown: the signature does not name it")
    }

    /// Describes what the title leaves out: non-default settings of importance-entropy, and the data of the oracle if all heads have it.
    pub fn notes(&self) -> Vec<String> {
        let label = |measure: Measure| measure.entry().label.unwrap_or(measure.name());
        // the names of the other criteria state their settings
        let combined =
            self.file.departures().map(|how| format!("{}: {how}", label(Measure::ImportanceEntropy)));
        let has_oracle = self.lacking(Measure::Oracle) == 0;
        // the split of the signature is the one scored by `ablate-one`
        let oracle = self.file.scored().filter(|_| has_oracle);
        let oracle = oracle.map(|data| format!("{}: score lost on {data}", label(Measure::Oracle)));
        combined.into_iter().chain(oracle).collect()
    }
}
