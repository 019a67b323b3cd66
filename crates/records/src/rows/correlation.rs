//! Rows of comparisons between two splits.
use heads::{HeadId, Scope};
use serde::{Deserialize, Serialize};

use super::Row;
use crate::check::{Limit, MOST};
use stats::MetricName;

/// One row of `cross-domain`: agreement of the effects of masking single heads on two splits (Michel et al. 2019, Section 3.4,
/// Figure 2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrelationRow {
    /// Attention type of the compared heads, or `all`.
    pub attention: Scope,
    /// Number of heads.
    pub heads: usize,
    /// Metric of the scores, such as `bleu` or `nats`.
    pub metric: MetricName,
    /// Score of the full model on the first split, in the unit of the metric.
    pub first_base_score: f64,
    /// Score of the full model on the second split, in the unit of the metric.
    pub second_base_score: f64,
    /// Pearson's r between the scores with single heads masked; empty if one side does not vary.
    pub pearson: Option<f64>,
    /// Two-sided p-value of `pearson`, by t with `heads` - 2 degrees of freedom.
    pub pearson_p_value: Option<f64>,
    /// Lower end of the 95% interval of `pearson`: jackknife over segments of both splits, averaged over 50 random groupings.
    pub pearson_low: Option<f64>,
    /// Upper end of the 95% interval of `pearson`.
    pub pearson_high: Option<f64>,
    /// Reliability of the effects on the first split, 0 to 1: split halves, Spearman-Brown; empty if they do not vary.
    pub first_reliability: Option<f64>,
    /// Reliability of the effects on the second split, 0 to 1.
    pub second_reliability: Option<f64>,
    /// Noise ceiling, the largest `pearson` that noise allows: root of the product of the reliabilities; empty if one is not
    /// above 0.
    pub pearson_ceiling: Option<f64>,
    /// Lower end of the 95% interval of `pearson_ceiling`, by jackknife; empty in older files.
    pub pearson_ceiling_low: Option<f64>,
    /// Upper end of the 95% interval of `pearson_ceiling`.
    pub pearson_ceiling_high: Option<f64>,
    /// Spearman's rho; empty if one side does not vary.
    pub spearman: Option<f64>,
    /// Two-sided p-value of `spearman`.
    pub spearman_p_value: Option<f64>,
    /// The head whose exclusion changes `pearson` most; empty with fewer than four heads and in older files.
    pub influential_head: Option<String>,
    /// `pearson` without the influential head.
    pub pearson_without: Option<f64>,
    /// `spearman` without the influential head.
    pub spearman_without: Option<f64>,
    /// Number of heads that `top_overlap` compares: ten, or all if there are fewer.
    pub top: usize,
    /// Number of the `top` most expensive heads that both splits share; the mean over all ways to break ties.
    pub top_overlap: f64,
    /// Overlap expected by chance: `top`² / `heads`.
    pub top_overlap_by_chance: f64,
}

impl Row for CorrelationRow {
    type Key = &'static str;

    const LATER: &'static [&'static str] = &[
        "pearson_ceiling_low",
        "pearson_ceiling_high",
        "influential_head",
        "pearson_without",
        "spearman_without",
    ];

    fn key(&self) -> Self::Key {
        self.attention.name()
    }

    fn name(&self) -> String {
        self.attention.to_string()
    }

    fn limits(&self) -> Vec<Limit> {
        let unit = |column, value| Limit::optional(column, value, -1.0..=1.0, "-1 to 1 or empty");
        // If halves disagree strongly, the Spearman-Brown formula has no lower bound.
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
