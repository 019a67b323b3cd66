//! Rows of pruning curves.
use serde::{Deserialize, Serialize};

use super::{BASE, Row, TestedRow, Tests};

/// One row of `iterative-prune`: the model without the heads that come first in some order (Michel et al. 2019, Figures 3,
/// 4 and 6).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruningRow {
    /// Attention type whose heads are masked, or `all`.
    pub attention: String,
    /// What the heads are ordered by: `importance`, `oracle`, `random`, `entropy`, `confidence`, `attention-gradient`,
    /// `importance-entropy`; or how they are searched for: `greedy-forward`, `swap`; or `floor`, the one row in which all
    /// are masked.
    pub order: String,
    /// Seed of a random order; empty for all others.
    pub order_seed: Option<u64>,
    /// Whether the order is reversed: at the same numbers, the heads that the order masks first are kept, and the others
    /// masked (Prasanna et al. 2020).
    pub complement: bool,
    /// Step of the curve, counted from 0, where nothing is masked.
    pub step: usize,
    /// Number of masked heads.
    pub masked: usize,
    /// Number of heads that could be masked: those of the attention type, or of the model.
    pub heads: usize,
    /// Metric of the scores: `bleu`, `accuracy`, `f1`, `matthews` or `nats`.
    pub metric: String,
    /// Score of the intact model, in the unit of the metric.
    pub base_score: f64,
    /// Score with the heads masked, in the unit of the metric.
    pub score: f64,
    /// `score` minus `base_score`, in the unit of the metric.
    pub score_delta: f64,
    /// Lower end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_low: Option<f64>,
    /// Upper end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_high: Option<f64>,
    /// Two-sided p-value of `score_delta`, 0 to 1: by paired t-test for `accuracy`, by paired bootstrap for all else; empty at step 0, or
    /// if it was not tested.
    pub p_value: Option<f64>,
    /// The paper's one-sided p-value by paired bootstrap, on the side that was observed; empty for `accuracy`.
    pub p_koehn: Option<f64>,
    /// `p_value` adjusted for a single false alarm in the curve: by step-down max-T (Westfall and Young 1993) for
    /// bootstraps, by Holm (1979) for `accuracy`; empty until all its rows are there.
    pub p_adjusted: Option<f64>,
    /// `p_value` after Benjamini and Hochberg (1995) within the curve, likewise.
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of the unpaired t-test, 0 to 1; empty for all but `accuracy`.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided mid-p of McNemar's test, likewise.
    pub p_mcnemar: Option<f64>,
    /// Score on the split that the heads were searched on, in the unit of the metric; empty for orders.
    pub search_score: Option<f64>,
    /// The masked heads, joined by `+`: `enc-enc:1:2+enc-enc:6:13`; empty at step 0.
    pub masked_heads: String,
}

impl Row for PruningRow {
    /// Attention type, order, seed of a random order, whether it is reversed, and step.
    type Key = (String, String, Option<u64>, bool, usize);

    const COLUMNS: &'static [&'static str] = &[
        "attention",
        "order",
        "order_seed",
        "complement",
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
        "p_koehn",
        "p_adjusted",
        "p_benjamini_hochberg",
        "p_unpaired_t",
        "p_mcnemar",
        "search_score",
        "masked_heads",
    ];

    fn key(&self) -> Self::Key {
        (self.attention.clone(), self.order.clone(), self.order_seed, self.complement, self.step)
    }

    /// Its curve and step, such as `all/importance/3`.
    fn name(&self) -> String {
        format!("{}/{}", self.family(), self.step)
    }
}

impl TestedRow for PruningRow {
    /// Its curve, such as `all/importance`, `enc-dec/random-3` or `all/importance/complement`.
    fn family(&self) -> String {
        let seed = self.order_seed.map(|seed| format!("-{seed}")).unwrap_or_default();
        let side = if self.complement { "/complement" } else { "" };
        format!("{}/{}{seed}{side}", self.attention, self.order)
    }

    fn base(&self) -> String {
        BASE.to_owned()
    }

    fn is_intact(&self) -> bool {
        self.masked == 0
    }

    fn masked_heads(&self) -> Option<&str> {
        Some(&self.masked_heads)
    }

    super::tested_columns!();
}
