//! Rows of experiments that mask heads, one for each head.
use heads::{Attention, HeadId};
use stats::MetricName;

use super::{BASE, Row, TestedRow, tested_columns, tested_row};
use crate::check::{Limit, head_limits, test_limits};

tested_row! {
    /// One row of `ablate-one` (a masked head; Michel et al. 2019, Table 1) or `ablate-all-but-one` (a head that is kept alone in its
    /// layer; Tables 2, 3, 5 and 6).
    pub struct AblationRow {
        /// Attention type.
        pub attention: Attention,
        /// Layer, counted from 1.
        pub layer: usize,
        /// Head, counted from 1.
        pub head: usize,
        [tests]
        /// Segments in the sample at each look, joined by `+`, if heads are measured until they are decided. The effect is then an
        /// estimate for all segments, and the interval holds at every look. Empty if all segments were measured.
        #[serde(default)]
        pub looks: String,
        /// Correlation of measured and first-order effects over the segments of the sample; empty without a control variate.
        pub correlation: Option<f64>,
    }
}

impl AblationRow {
    /// Returns a row whose effect was not tested.
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
            ..Self::default()
        }
    }

    /// Returns its head.
    pub fn head_id(&self) -> HeadId {
        HeadId::numbered(self.attention, self.layer, self.head)
    }
}

impl Row for AblationRow {
    type Key = (&'static str, usize, usize, &'static str);

    const LATER: &'static [&'static str] = &["looks", "correlation"];

    fn key(&self) -> Self::Key {
        (self.attention.name(), self.layer, self.head, self.metric.name())
    }

    /// Returns its head, such as `enc-enc:6:13`.
    fn name(&self) -> String {
        self.head_id().to_string()
    }

    fn limits(&self) -> Vec<Limit> {
        let head = head_limits(self.layer, self.head).into_iter();
        let correlation = Limit::optional("correlation", self.correlation, -1.0..=1.0, "-1 to 1 or empty");
        head.chain(test_limits(self, self.score_delta)).chain([correlation]).collect()
    }

    fn fault(&self) -> Option<String> {
        let is_ascending = |looks: &[usize]| looks.is_sorted_by(|one, next| 0 < *one && one < next);
        let is_fine = self.looks.is_empty() || sizes(&self.looks).is_some_and(|looks| is_ascending(&looks));
        (!is_fine).then(|| "`looks` must be ascending sizes joined by `+`, such as 48+96".to_owned())
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("metric", format!("`{}`", self.metric)), ("base_score", self.base_score.to_string())]
    }
}

impl TestedRow for AblationRow {
    fn family(&self) -> String {
        self.attention.to_string()
    }

    fn base(&self) -> String {
        BASE.to_owned()
    }

    fn looks(&self) -> Option<Vec<usize>> {
        sizes(&self.looks).filter(|looks| !looks.is_empty())
    }

    fn add_look(&mut self, sample: usize) {
        let before = if self.looks.is_empty() { String::new() } else { format!("{}+", self.looks) };
        self.looks = format!("{before}{sample}");
    }

    fn record_correlation(&mut self, correlation: Option<f64>) {
        self.correlation = correlation;
    }

    tested_columns!();
}

/// Parses sizes joined by `+`; `None` if one is not a number.
fn sizes(text: &str) -> Option<Vec<usize>> {
    text.split('+').filter(|size| !size.is_empty()).map(|size| size.parse().ok()).collect()
}
