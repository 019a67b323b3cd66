//! Rows of experiments that mask heads for each head.
use heads::{Attention, HeadId};
use serde::{Deserialize, Serialize};

use super::{BASE, Row, TestedRow};
use crate::check::{Limit, head_limits, test_limits};
use stats::MetricName;

/// One row of `ablate-one`, the model without a single head (Michel et al. 2019, Table 1), or of `ablate-all-but-one`, the
/// model without all other heads of that head's layer (Tables 2, 3, 5 and 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AblationRow {
    /// Attention type.
    pub attention: Attention,
    /// Layer, counted from 1 as in the paper.
    pub layer: usize,
    /// Head, counted from 1 as in the paper.
    pub head: usize,
    /// Metric of the scores: `bleu`, `accuracy`, `f1`, `matthews` or `nats`.
    pub metric: MetricName,
    /// Score of the intact model, in the unit of the metric: points, 0 to 100, or -100 to 100 for `matthews`; `nats` are
    /// nats per token, the less the better.
    pub base_score: f64,
    /// Score with the heads masked, in the unit of the metric.
    pub score: f64,
    /// `score` minus `base_score`, in the unit of the metric; below 0 what is masked was useful, for `nats`
    /// above 0.
    pub score_delta: f64,
    /// Lower end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_low: Option<f64>,
    /// Upper end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_high: Option<f64>,
    /// Lower end of the 95 % interval of `score_delta` that holds for all rows of the family at once; empty until all are there.
    pub simultaneous_low: Option<f64>,
    /// Its upper end, likewise.
    pub simultaneous_high: Option<f64>,
    /// Two-sided p-value of `score_delta`, 0 to 1: by paired t-test for `accuracy`, by swaps for all else; empty
    /// if it was not tested.
    pub p_value: Option<f64>,
    /// Two-sided p-value of the paired bootstrap; empty for `accuracy`.
    pub p_bootstrap: Option<f64>,
    /// The paper's one-sided p-value by paired bootstrap, on the side that was observed; empty for `accuracy`.
    pub p_koehn: Option<f64>,
    /// `p_value` adjusted for the family-wise error rate over the attention type: by step-down max-T (Westfall and Young 1993) for
    /// swaps, by Holm (1979) for `accuracy`; empty until all its rows are there.
    pub p_adjusted: Option<f64>,
    /// `p_value` after Benjamini and Hochberg (1995) within the attention type, likewise.
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of the unpaired t-test, 0 to 1; empty for all but `accuracy`.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided mid-p of McNemar's test, likewise.
    pub p_mcnemar: Option<f64>,
    /// Chance, 0 to 1, that a model that loses nothing, but changes as many segments, is shown to be dispensable: by 1,000 swaps of
    /// segments, with the interval and the margin of this row; empty if it was not tested, and in files of earlier versions.
    pub power: Option<f64>,
    /// Number of segments that would give a chance of 80 %, likewise.
    pub segments_for_power: Option<f64>,
}

impl AblationRow {
    /// A row whose difference was not tested.
    pub fn untested(head: HeadId, metric: MetricName, base_score: f64, score: f64) -> Self {
        let (attention, layer, head) = head.numbers();
        Self {
            attention,
            layer,
            head,
            metric,
            base_score,
            score,
            score_delta: score - base_score,
            delta_low: None,
            delta_high: None,
            simultaneous_low: None,
            simultaneous_high: None,
            p_value: None,
            p_bootstrap: None,
            p_koehn: None,
            p_adjusted: None,
            p_benjamini_hochberg: None,
            p_unpaired_t: None,
            p_mcnemar: None,
            power: None,
            segments_for_power: None,
        }
    }

    /// Its head.
    pub fn head_id(&self) -> HeadId {
        HeadId::numbered(self.attention, self.layer, self.head)
    }
}

impl Row for AblationRow {
    /// Attention type, layer, head and metric.
    type Key = (&'static str, usize, usize, &'static str);

    fn key(&self) -> Self::Key {
        (self.attention.name(), self.layer, self.head, self.metric.name())
    }

    /// Its head, such as `enc-enc:6:13`.
    fn name(&self) -> String {
        self.head_id().to_string()
    }

    fn limits(&self) -> Vec<Limit> {
        let head = head_limits(self.layer, self.head).into_iter();
        head.chain(test_limits(self, self.score_delta)).collect()
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("metric", format!("`{}`", self.metric)), ("base_score", self.base_score.to_string())]
    }
}

impl TestedRow for AblationRow {
    /// Its attention type.
    fn family(&self) -> String {
        self.attention.to_string()
    }

    fn base(&self) -> String {
        BASE.to_owned()
    }

    super::tested_columns!();
}
