//! Rows of comparisons between two splits.
use heads::{HeadId, Scope};
use serde::{Deserialize, Serialize};

use super::Row;
use crate::check::{Limit, MOST};
use stats::MetricName;

/// One row of `cross-domain`: how the effects of masking single heads agree between two splits (Michel et al. 2019,
/// Section 3.4, Figure 2). The effects themselves are rows of `ablate-one`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrelationRow {
    /// The heads that are compared.
    pub attention: Scope,
    /// Number of heads.
    pub heads: usize,
    /// Metric of the scores: `bleu`, `accuracy`, `f1`, `matthews` or `nats`.
    pub metric: MetricName,
    /// Score of the intact model on the first split, in the unit of the metric.
    pub first_base_score: f64,
    /// Score of the intact model on the second split, in the unit of the metric.
    pub second_base_score: f64,
    /// Pearson's r between the scores, -1 to 1; empty if one side does not vary.
    pub pearson: Option<f64>,
    /// Its two-sided p-value, 0 to 1, by t with `heads` - 2 degrees of freedom.
    pub pearson_p_value: Option<f64>,
    /// Lower end of the 95 % interval of `pearson`, by a jackknife over the segments of both splits, the mean over 50 random deals
    /// of these into groups; empty where that has no number, as at a coefficient of 1.
    pub pearson_low: Option<f64>,
    /// Upper end, likewise.
    pub pearson_high: Option<f64>,
    /// Reliability of the score changes on the first split, 0 to 1: split halves, Spearman-Brown; empty if they do not
    /// vary.
    pub first_reliability: Option<f64>,
    /// Reliability on the second split, likewise.
    pub second_reliability: Option<f64>,
    /// The noise ceiling, the greatest `pearson` that noise allows: the root of the product of the reliabilities; empty if one of them is not
    /// above 0.
    pub pearson_ceiling: Option<f64>,
    /// Lower end of the 95 % interval of `pearson_ceiling`, by the same jackknife, 0 to 1; empty where that has no number, and in files
    /// of earlier versions.
    pub pearson_ceiling_low: Option<f64>,
    /// Upper end, likewise.
    pub pearson_ceiling_high: Option<f64>,
    /// Spearman's rho, -1 to 1; empty if one side does not vary.
    pub spearman: Option<f64>,
    /// Its two-sided p-value, likewise.
    pub spearman_p_value: Option<f64>,
    /// The most influential head: leaving it out changes `pearson` more than leaving out any other one does; empty with fewer than four
    /// heads, where `pearson` is, and in files of earlier versions.
    pub influential_head: Option<String>,
    /// Pearson's r of all other heads; empty where `influential_head` is, or if one side does not vary without it.
    pub pearson_without: Option<f64>,
    /// Spearman's rho of all other heads, likewise.
    pub spearman_without: Option<f64>,
    /// Number of heads of each split `top_overlap` is about: ten, or all if there are fewer.
    pub top: usize,
    /// Number of the `top` heads whose masking costs most on one split are among those on the other; where heads tie at
    /// the edge, the mean over all ways to break the tie.
    pub top_overlap: f64,
    /// Expectation by chance: `top`² / `heads`.
    pub top_overlap_by_chance: f64,
}

impl Row for CorrelationRow {
    /// Attention type.
    type Key = &'static str;

    fn key(&self) -> Self::Key {
        self.attention.name()
    }

    fn name(&self) -> String {
        self.attention.to_string()
    }

    fn limits(&self) -> Vec<Limit> {
        let unit = |column, value| Limit::optional(column, value, -1.0..=1.0, "-1 to 1 or empty");
        // Halves can disagree so much that Spearman and Brown's formula has no lower end.
        let reliability = |column, value| Limit::optional(column, value, -MOST..=1.0, "at most 1 or empty");
        let (heads, top) = (self.heads as f64, self.top as f64);
        vec![
            unit("pearson", self.pearson),
            unit("pearson_low", self.pearson_low),
            unit("pearson_high", self.pearson_high),
            unit("spearman", self.spearman),
            unit("pearson_without", self.pearson_without),
            unit("spearman_without", self.spearman_without),
            reliability("first_reliability", self.first_reliability),
            reliability("second_reliability", self.second_reliability),
            Limit::share("pearson_ceiling", self.pearson_ceiling),
            Limit::share("pearson_ceiling_low", self.pearson_ceiling_low),
            Limit::share("pearson_ceiling_high", self.pearson_ceiling_high),
            Limit::share("pearson_p_value", self.pearson_p_value),
            Limit::share("spearman_p_value", self.spearman_p_value),
            Limit::new("top", top, 0.0..=heads, "at most the number of heads"),
            Limit::new("top_overlap", self.top_overlap, 0.0..=top, "0 to top"),
            Limit::new("top_overlap_by_chance", self.top_overlap_by_chance, 0.0..=MOST, "a number of heads"),
        ]
    }

    fn fault(&self) -> Option<String> {
        let fault = |head: &String| head.parse::<HeadId>().err().map(|fault| fault.to_string());
        self.influential_head.as_ref().and_then(fault)
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("metric", format!("`{}`", self.metric))]
    }
}
