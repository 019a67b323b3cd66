//! Rows of scores of heads.
use heads::{Attention, HeadId};
use serde::{Deserialize, Serialize};

use super::Row;
use crate::check::{Limit, finite, head_limits};

/// One row of `importance`: what is known of a single head (Michel et al. 2019, Section 4.1, and orders to compare with).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportanceRow {
    /// Attention type.
    pub attention: Attention,
    /// Layer, counted from 1 as in the paper.
    pub layer: usize,
    /// Head, counted from 1 as in the paper.
    pub head: usize,
    /// I_h of Equation 2: mean over examples of |dL/dξ|, in nats.
    pub example: f64,
    /// `example` divided by the l2 norm of its layer, 0 to 1.
    pub example_normalised: f64,
    /// I_h as the authors' code has it: mean over tokens of |dL/dξ|, in nats.
    pub token: f64,
    /// `token` divided by the l2 norm of its layer, 0 to 1.
    pub token_normalised: f64,
    /// Mean over examples of the sum of |dL/dA| over the attention weights A, in nats.
    pub attention_gradient: f64,
    /// Mean entropy of the rows of A, in nats.
    pub entropy: f64,
    /// Mean of the rows' greatest weight, 0 to 1, the end-of-sentence symbol left out as a key.
    pub confidence: f64,
    /// w I_h + (1 - w) entropy / log(keys), 0 to 1, where I_h is `example_normalised` or, by choice, `token_normalised`.
    pub importance_entropy: f64,
    /// Score that is lost without the head, by `ablate-one`, in the unit of the metric; empty where that was not run.
    pub oracle: Option<f64>,
}

impl ImportanceRow {
    /// Its head.
    pub fn head_id(&self) -> HeadId {
        HeadId::numbered(self.attention, self.layer, self.head)
    }
}

impl Row for ImportanceRow {
    /// Attention type, layer and head.
    type Key = (&'static str, usize, usize);

    const COLUMNS: &'static [&'static str] = &[
        "attention",
        "layer",
        "head",
        "example",
        "example_normalised",
        "token",
        "token_normalised",
        "attention_gradient",
        "entropy",
        "confidence",
        "importance_entropy",
        "oracle",
    ];

    fn key(&self) -> Self::Key {
        (self.attention.name(), self.layer, self.head)
    }

    fn name(&self) -> String {
        self.head_id().to_string()
    }

    fn limits(&self) -> Vec<Limit> {
        let scores = finite(&[
            ("example", Some(self.example)),
            ("example_normalised", Some(self.example_normalised)),
            ("token", Some(self.token)),
            ("token_normalised", Some(self.token_normalised)),
            ("attention_gradient", Some(self.attention_gradient)),
            ("entropy", Some(self.entropy)),
            ("confidence", Some(self.confidence)),
            ("importance_entropy", Some(self.importance_entropy)),
            ("oracle", self.oracle),
        ]);
        head_limits(self.layer, self.head).into_iter().chain(scores).collect()
    }
}
