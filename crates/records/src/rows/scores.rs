//! Rows of criteria that rank heads.
use heads::{Attention, HeadId, Measure};
use serde::{Deserialize, Serialize};
use stats::bootstrap::Interval;

use super::Row;
use crate::check::{Limit, finite, head_limits};

/// One row of `importance`: a criterion for a head (Michel et al. 2019, Section 4.1, and others).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreRow {
    /// Attention type.
    pub attention: Attention,
    /// Layer, counted from 1.
    pub layer: usize,
    /// Head, counted from 1.
    pub head: usize,
    /// Name of the criterion.
    pub measure: Measure,
    /// Value in the unit of the criterion.
    pub value: f64,
    /// Lower end of the 95% interval of `value` over segments; empty if unknown.
    pub value_low: Option<f64>,
    /// Upper end of the 95% interval of `value`.
    pub value_high: Option<f64>,
}

impl ScoreRow {
    /// Builds the row of a head.
    pub fn new(head: HeadId, measure: Measure, value: f64, interval: Option<Interval>) -> Self {
        let (attention, layer, head) = head.numbers();
        let (value_low, value_high) = (interval.map(|ends| ends.low), interval.map(|ends| ends.high));
        Self { attention, layer, head, measure, value, value_low, value_high }
    }

    /// Returns its head.
    pub fn head_id(&self) -> HeadId {
        HeadId::numbered(self.attention, self.layer, self.head)
    }
}

impl Row for ScoreRow {
    type Key = (&'static str, usize, usize, Measure);

    const LATER: &'static [&'static str] = &["value_low", "value_high"];

    fn key(&self) -> Self::Key {
        (self.attention.name(), self.layer, self.head, self.measure)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.head_id(), self.measure)
    }

    fn limits(&self) -> Vec<Limit> {
        let value = finite(&[
            ("value", Some(self.value)),
            ("value_low", self.value_low),
            ("value_high", self.value_high),
        ]);
        head_limits(self.layer, self.head).into_iter().chain(value).collect()
    }
}
