//! Rows of scores of heads.
use heads::{Attention, HeadId, Measure};
use serde::{Deserialize, Serialize};

use super::Row;
use crate::check::{Limit, finite, head_limits};

/// One row of `importance`: a measure of a single head (Michel et al. 2019, Section 4.1, and others to compare with).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreRow {
    /// Attention type.
    pub attention: Attention,
    /// Layer, counted from 1 as in the paper.
    pub layer: usize,
    /// Head, counted from 1 as in the paper.
    pub head: usize,
    /// Name of the measure.
    pub measure: Measure,
    /// Its value, in its unit.
    pub value: f64,
}

impl ScoreRow {
    /// The row of a head.
    pub fn new(head: HeadId, measure: Measure, value: f64) -> Self {
        let (attention, layer, head) = head.numbers();
        Self { attention, layer, head, measure, value }
    }

    /// Its head.
    pub fn head_id(&self) -> HeadId {
        HeadId::numbered(self.attention, self.layer, self.head)
    }
}

impl Row for ScoreRow {
    /// Attention type, layer, head and measure.
    type Key = (&'static str, usize, usize, Measure);

    fn key(&self) -> Self::Key {
        (self.attention.name(), self.layer, self.head, self.measure)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.head_id(), self.measure)
    }

    fn limits(&self) -> Vec<Limit> {
        let value = finite(&[("value", Some(self.value))]);
        head_limits(self.layer, self.head).into_iter().chain(value).collect()
    }
}
