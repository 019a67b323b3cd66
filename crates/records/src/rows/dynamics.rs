//! Rows of pruning curves during training.
use serde::{Deserialize, Serialize};

use super::Row;

/// One row of `training-dynamics`: a checkpoint of training without its least important heads (Michel et al. 2019,
/// Section 6, Figure 5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DynamicsRow {
    /// The epoch that ends at this checkpoint, counted from 1; empty for a checkpoint within an epoch.
    pub epoch: Option<usize>,
    /// Parameter updates so far.
    pub updates: usize,
    /// Step of the checkpoint's curve, counted from 0, where nothing is masked.
    pub step: usize,
    /// Number of masked heads.
    pub masked: usize,
    /// Number of heads of the model.
    pub heads: usize,
    /// Metric of the scores: `bleu`, `accuracy`, `f1` or `matthews`.
    pub metric: String,
    /// Score of the checkpoint with all its heads, in points.
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
    /// `p_value` after Holm (1979) within the checkpoint's curve; empty until all its steps are there.
    pub p_holm: Option<f64>,
    /// `p_value` after Benjamini and Hochberg (1995), likewise.
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of the unpaired t-test, 0 to 1; empty if it was not made, as for all but `accuracy`.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided p-value of McNemar's exact test, likewise.
    pub p_mcnemar: Option<f64>,
    /// The masked heads, joined by `+`: `enc-enc:1:2+enc-enc:6:13`; empty at step 0.
    pub masked_heads: String,
}

impl Row for DynamicsRow {
    /// Updates and step.
    type Key = (usize, usize);

    const COLUMNS: &'static [&'static str] = &[
        "epoch",
        "updates",
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
        "masked_heads",
    ];

    fn key(&self) -> Self::Key {
        (self.updates, self.step)
    }
}
