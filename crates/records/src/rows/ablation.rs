//! Rows of experiments that mask heads for each head.
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
    }
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
            ..Self::default()
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

    tested_columns!();
}
