//! Rows of experiments that mask heads for each head.
use heads::{Attention, HeadId};
use serde::{Deserialize, Serialize};

use super::{BASE, Row, TestedRow};
use crate::check::{Limit, head_limits, test_limits};
use stats::MetricName;

/// One row of `ablate-one` (a masked head; Michel et al. 2019, Table 1) or `ablate-all-but-one` (a head that is kept alone in its
/// layer; Tables 2, 3, 5 and 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AblationRow {
    /// Attention type.
    pub attention: Attention,
    /// Layer, counted from 1.
    pub layer: usize,
    /// Head, counted from 1.
    pub head: usize,
    /// Metric of the scores, such as `bleu` or `nats`.
    pub metric: MetricName,
    /// Score of the full model, in the unit of the metric.
    pub base_score: f64,
    /// Score with heads masked, in the unit of the metric.
    pub score: f64,
    /// `score` minus `base_score`: the effect of masking.
    pub score_delta: f64,
    /// Lower end of the 95% interval of `score_delta`; empty if it was not tested.
    pub delta_low: Option<f64>,
    /// Upper end of the 95% interval of `score_delta`.
    pub delta_high: Option<f64>,
    /// Lower end of the 95% interval that holds for all rows of the family at once; empty until the family is complete.
    pub simultaneous_low: Option<f64>,
    /// Upper end of the simultaneous interval.
    pub simultaneous_high: Option<f64>,
    /// Two-sided p-value: paired t-test for `accuracy`, otherwise swaps of segments (approximate randomisation, Noreen 1989).
    pub p_value: Option<f64>,
    /// Two-sided p-value of the paired bootstrap, for comparison only; empty for `accuracy`.
    pub p_bootstrap: Option<f64>,
    /// The paper's p-value: one-sided paired bootstrap in the observed direction (Koehn 2004); empty for `accuracy`.
    pub p_koehn: Option<f64>,
    /// `p_value` adjusted for the family-wise error rate: step-down max-T (Westfall and Young 1993), for `accuracy` Holm
    /// (1979).
    pub p_adjusted: Option<f64>,
    /// `p_value` adjusted for the false discovery rate (Benjamini and Hochberg 1995).
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of the unpaired t-test; `accuracy` only.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided mid-p of McNemar's test; `accuracy` only.
    pub p_mcnemar: Option<f64>,
    /// Probability of showing that heads are dispensable if they cost nothing but changed equally many segments; empty in older
    /// files.
    pub power: Option<f64>,
    /// Number of segments at which `power` would be 80%; empty if fewer than 20 segments change.
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
