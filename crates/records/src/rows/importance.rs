//! Rows of scores of heads.
use serde::{Deserialize, Serialize};

use super::Row;

/// One row of `importance`: what is known of a single head (Michel et al. 2019, Section 4.1, and orders to compare with).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportanceRow {
    /// Attention type: `enc-enc`, `enc-dec`, `dec-dec` or `self`.
    pub attention: String,
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

impl Row for ImportanceRow {
    /// Attention type, layer and head.
    type Key = (String, usize, usize);

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
        (self.attention.clone(), self.layer, self.head)
    }

    fn name(&self) -> String {
        format!("{}:{}:{}", self.attention, self.layer, self.head)
    }
}
