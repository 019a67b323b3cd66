//! Rows of the relevance of heads.
use heads::{Attention, HeadId};
use serde::{Deserialize, Serialize};

use super::Row;
use crate::check::{GREATEST, Limit, finite, head_limits};

/// One row of `relevance`: the share of the prediction attributed to a head (Voita et al. 2019, Section 4, Figures 1a and 2a).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelevanceRow {
    /// Attention type.
    pub attention: Attention,
    /// Layer, counted from 1.
    pub layer: usize,
    /// Head, counted from 1.
    pub head: usize,
    /// Mean over target positions of the head's relevance, divided by the sum of absolute relevances in its layer, -1 to 1.
    ///
    /// Differs from the paper, which does not state its normalisation: relevance has either sign, so a plain sum may be near 0.
    pub relevance: f64,
    /// Lower end of the 95% interval of `relevance`, by resampling segments; empty with few resamples.
    pub relevance_low: Option<f64>,
    /// Upper end of the 95% interval of `relevance`.
    pub relevance_high: Option<f64>,
    /// Mean relevance before division by the layer's sum; the largest logit counts as 1.
    pub undivided: f64,
    /// Mean share of relevance that is lost or counted twice, equal in all rows.
    pub lost: f64,
    /// Number of target positions.
    pub targets: usize,
}

impl RelevanceRow {
    /// Returns a caveat if more than 1% of the relevance is lost or added. Above 100% no share is given: results by the paper's rule, as in
    /// earlier versions, divide by sums near 0.
    pub fn doubt(lost: f64) -> Option<String> {
        let share = if lost > 1.0 { "more than 100%".to_owned() } else { format!("{:.1}%", 100.0 * lost) };
        (lost > 0.01)
            .then(|| format!("{share} of the relevance is lost or added between logits and embeddings"))
    }

    /// Returns its head.
    pub fn head_id(&self) -> HeadId {
        HeadId::numbered(self.attention, self.layer, self.head)
    }
}

impl Row for RelevanceRow {
    type Key = (&'static str, usize, usize);

    fn key(&self) -> Self::Key {
        (self.attention.name(), self.layer, self.head)
    }

    fn name(&self) -> String {
        self.head_id().to_string()
    }

    fn limits(&self) -> Vec<Limit> {
        let shares = [
            ("relevance", Some(self.relevance)),
            ("relevance_low", self.relevance_low),
            ("relevance_high", self.relevance_high),
        ]
        .map(|(column, share)| Limit::optional(column, share, -1.0..=1.0, "-1 to 1"));
        let lost = Limit::new("lost", self.lost, 0.0..=GREATEST, "0 to 1e100");
        let sums = finite(&[("undivided", Some(self.undivided))]);
        head_limits(self.layer, self.head).into_iter().chain(shares).chain([lost]).chain(sums).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_percent_of_lost_relevance_is_reported() {
        assert_eq!([0.0, 0.01].map(RelevanceRow::doubt), [None, None]);
        assert!(RelevanceRow::doubt(0.238).unwrap().starts_with("23.8% of"));
        assert!(RelevanceRow::doubt(3.6e11).unwrap().starts_with("more than 100% of"));
    }
}
