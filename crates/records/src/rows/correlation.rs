//! Rows of comparisons between two splits.
use serde::{Deserialize, Serialize};

use super::Row;

/// One row of `cross-domain`: how the effects of masking single heads agree between two splits (Michel et al. 2019,
/// Section 3.4, Figure 2). The effects themselves are rows of `ablate-one`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrelationRow {
    /// Attention type whose heads are compared, or `all`.
    pub attention: String,
    /// Number of heads.
    pub heads: usize,
    /// Metric of the scores: `bleu`, `accuracy`, `f1`, `matthews` or `nats`.
    pub metric: String,
    /// Score of the intact model on the first split, in the unit of the metric.
    pub first_base_score: f64,
    /// Score of the intact model on the second split, in the unit of the metric.
    pub second_base_score: f64,
    /// Pearson's r between the scores, -1 to 1; empty if one side does not vary.
    pub pearson: Option<f64>,
    /// Its two-sided p-value, 0 to 1, by t with `heads` - 2 degrees of freedom.
    pub pearson_p_value: Option<f64>,
    /// Lower end of the 95 % interval of `pearson`, by a jackknife over the segments of both splits; empty where that has no
    /// number, as at a coefficient of 1.
    pub pearson_low: Option<f64>,
    /// Upper end, likewise.
    pub pearson_high: Option<f64>,
    /// Reliability of the score changes on the first split, 0 to 1: split halves, Spearman-Brown; empty if they do not
    /// vary.
    pub first_reliability: Option<f64>,
    /// Reliability on the second split, likewise.
    pub second_reliability: Option<f64>,
    /// The greatest `pearson` that noise leaves: the root of the product of the reliabilities; empty if one of them is not
    /// above 0.
    pub pearson_ceiling: Option<f64>,
    /// Spearman's rho, -1 to 1; empty if one side does not vary.
    pub spearman: Option<f64>,
    /// Its two-sided p-value, likewise.
    pub spearman_p_value: Option<f64>,
    /// How many heads of each split `top_overlap` is about: ten, or all if there are fewer.
    pub top: usize,
    /// How many of the `top` heads whose masking costs most on one split are among those on the other; where heads tie at
    /// the edge, the mean over all ways to break the tie.
    pub top_overlap: f64,
    /// What chance would give: `top`² / `heads`.
    pub top_overlap_by_chance: f64,
}

impl Row for CorrelationRow {
    /// Attention type.
    type Key = String;

    const COLUMNS: &'static [&'static str] = &[
        "attention",
        "heads",
        "metric",
        "first_base_score",
        "second_base_score",
        "pearson",
        "pearson_p_value",
        "pearson_low",
        "pearson_high",
        "first_reliability",
        "second_reliability",
        "pearson_ceiling",
        "spearman",
        "spearman_p_value",
        "top",
        "top_overlap",
        "top_overlap_by_chance",
    ];

    fn key(&self) -> Self::Key {
        self.attention.clone()
    }

    fn name(&self) -> String {
        self.attention.clone()
    }
}
