//! Rows of pruning curves.
use serde::{Deserialize, Serialize};

use super::Row;

/// One row of `iterative-prune`: the model without the heads that come first in some order (Michel et al. 2019, Figures 3,
/// 4 and 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruningRow {
    /// Attention type whose heads are masked, or `all`.
    pub attention: String,
    /// What the heads are ordered by: `importance`, `oracle`, `random`, `entropy`, `confidence`, `attention-gradient`,
    /// `importance-entropy`; or how they are searched for: `greedy-forward`, `swap`.
    pub order: String,
    /// Seed of a random order; empty for all others.
    pub order_seed: Option<u64>,
    /// Step of the curve, counted from 0, where nothing is masked.
    pub step: usize,
    /// Number of masked heads.
    pub masked: usize,
    /// Number of heads that could be masked: those of the attention type, or of the model.
    pub heads: usize,
    /// Metric of the scores: `bleu`, `accuracy`, `f1` or `matthews`.
    pub metric: String,
    /// Score of the intact model, in points.
    pub base_score: f64,
    /// Score with the heads masked, in points.
    pub score: f64,
    /// `score` minus `base_score`, in points.
    pub score_delta: f64,
    /// Lower end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_low: Option<f64>,
    /// Upper end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_high: Option<f64>,
    /// p-value of `score_delta`, 0 to 1, as in [`AblationRow`](super::AblationRow); empty at step 0, or if it was not tested.
    pub p_value: Option<f64>,
    /// `p_value` after Holm (1979) within the curve; empty until all its steps are there.
    pub p_holm: Option<f64>,
    /// `p_value` after Benjamini and Hochberg (1995), likewise.
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of the unpaired t-test, 0 to 1; empty if it was not made, as for all but `accuracy`.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided p-value of McNemar's exact test, likewise.
    pub p_mcnemar: Option<f64>,
    /// Score on the split that the heads were searched on, in points; empty for orders.
    pub search_score: Option<f64>,
    /// The masked heads, joined by `+`: `enc-enc:1:2+enc-enc:6:13`; empty at step 0.
    pub masked_heads: String,
}

impl Row for PruningRow {
    /// Attention type, order, seed of a random order, and step.
    type Key = (String, String, Option<u64>, usize);

    const COLUMNS: &'static [&'static str] = &[
        "attention",
        "order",
        "order_seed",
        "step",
        "masked",
        "heads",
        "metric",
        "base_score",
        "score",
        "score_delta",
        "delta_low",
        "delta_high",
        "p_value",
        "p_holm",
        "p_benjamini_hochberg",
        "p_unpaired_t",
        "p_mcnemar",
        "search_score",
        "masked_heads",
    ];

    fn key(&self) -> Self::Key {
        (self.attention.clone(), self.order.clone(), self.order_seed, self.step)
    }
}

/// The last of `steps` before the first one that is a loss: the largest share of heads that can go. The steps are those of
/// one curve, in their order; `None` if there is none, or the first is a loss.
pub fn before_first_loss<'a>(
    steps: impl IntoIterator<Item = &'a PruningRow>,
    is_loss: impl Fn(&PruningRow) -> bool,
) -> Option<&'a PruningRow> {
    steps.into_iter().take_while(|row| !is_loss(row)).last()
}
