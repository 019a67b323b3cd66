//! The row types, one for each kind of result file.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A line of a result file. Rows are flat, and their text has no line breaks.
pub trait Row: Serialize + DeserializeOwned {
    /// What makes a row unique in its file; a finished file is in the order of its keys.
    type Key: Ord + Debug;

    /// The header: the names of the fields, in their order.
    const COLUMNS: &'static [&'static str];

    /// The key of this row.
    fn key(&self) -> Self::Key;
}

/// One row of `ablate-one`, the model without a single head (Michel et al. 2019, Table 1), or of `ablate-all-but-one`, the
/// model without all other heads of that head's layer (Tables 2, 3, 5 and 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AblationRow {
    /// Attention type: `enc-enc`, `enc-dec`, `dec-dec` or `self`.
    pub attention: String,
    /// Layer, counted from 1 as in the paper.
    pub layer: usize,
    /// Head, counted from 1 as in the paper.
    pub head: usize,
    /// Metric of the scores: `bleu`, `accuracy`, `f1` or `matthews`.
    pub metric: String,
    /// Score of the intact model, in the unit of the metric: points, 0 to 100, or -100 to 100 for `matthews`.
    pub base_score: f64,
    /// Score with the heads masked, in the unit of the metric.
    pub score: f64,
    /// `score` minus `base_score`, in the unit of the metric; below 0 what is masked was useful.
    pub score_delta: f64,
    /// Lower end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_low: Option<f64>,
    /// Upper end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_high: Option<f64>,
    /// p-value of `score_delta`, 0 to 1: by paired t-test for `accuracy`, two-sided; by paired bootstrap for all else,
    /// one-sided on the side that was observed. Empty if it was not tested.
    pub p_value: Option<f64>,
    /// `p_value` after Holm (1979) within the attention type; empty until all its heads are there.
    pub p_holm: Option<f64>,
    /// `p_value` after Benjamini and Hochberg (1995), likewise.
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of the unpaired t-test, 0 to 1; empty if it was not made, as for all but `accuracy`.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided p-value of McNemar's exact test, likewise.
    pub p_mcnemar: Option<f64>,
}

impl Row for AblationRow {
    /// Attention type, layer, head and metric.
    type Key = (String, usize, usize, String);

    const COLUMNS: &'static [&'static str] = &[
        "attention",
        "layer",
        "head",
        "metric",
        "base_score",
        "score",
        "score_delta",
        "delta_low",
        "delta_high",
        "p_value",
        "p_holm",
        "p_benjamini_hochberg",
        "p_unpaired_t",
        "p_mcnemar",
    ];

    fn key(&self) -> Self::Key {
        (self.attention.clone(), self.layer, self.head, self.metric.clone())
    }
}

/// One row of a training log: the model at one validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingRow {
    /// Epoch, counted from 1.
    pub epoch: usize,
    /// Parameter updates so far.
    pub step: usize,
    /// Training loss, in nats per predicted token or example, label smoothing included.
    pub train_loss: f64,
    /// Loss on the development set, in nats per predicted token or example, without label smoothing.
    pub dev_loss: f64,
    /// Score on the development set, in the unit of the subject's metric; empty where training does not score.
    pub dev_score: Option<f64>,
    /// Learning rate of the last update.
    pub learning_rate: f64,
    /// Whether this is the best epoch so far, by `dev_score` or, without one, by `dev_loss`.
    pub best: bool,
}

impl Row for TrainingRow {
    /// Epoch and step.
    type Key = (usize, usize);

    const COLUMNS: &'static [&'static str] =
        &["epoch", "step", "train_loss", "dev_loss", "dev_score", "learning_rate", "best"];

    fn key(&self) -> Self::Key {
        (self.epoch, self.step)
    }
}

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
    /// w `example_normalised` + (1 - w) entropy / log(keys), 0 to 1.
    pub importance_entropy: f64,
    /// Score that is lost without the head, by `ablate-one`, in points; empty where that was not run.
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
}

/// One row of `iterative-prune`: the model without the heads that come first in some order (Michel et al. 2019, Figures 3,
/// 4 and 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruningRow {
    /// Attention type whose heads are masked, or `all`.
    pub attention: String,
    /// What the heads are ordered by: `importance`, `oracle`, `random`, `entropy`, `confidence`, `attention-gradient`,
    /// `importance-entropy`; or how they are searched for: `greedy-forward`, `swap`.
    pub order: String,
    /// Seed of a random order; empty for all others.
    pub order_seed: Option<u64>,
    /// Step of the curve, counted from 0, where nothing is masked.
    pub step: usize,
    /// Number of masked heads.
    pub masked: usize,
    /// Number of heads that could be masked: those of the attention type, or of the model.
    pub heads: usize,
    /// Metric of the scores: `bleu`, `accuracy`, `f1` or `matthews`.
    pub metric: String,
    /// Score of the intact model, in points.
    pub base_score: f64,
    /// Score with the heads masked, in points.
    pub score: f64,
    /// `score` minus `base_score`, in points.
    pub score_delta: f64,
    /// Lower end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_low: Option<f64>,
    /// Upper end of the 95 % interval of `score_delta`; empty if it was not tested.
    pub delta_high: Option<f64>,
    /// p-value of `score_delta`, 0 to 1, as in [`AblationRow`]; empty at step 0, or if it was not tested.
    pub p_value: Option<f64>,
    /// `p_value` after Holm (1979) within the curve; empty until all its steps are there.
    pub p_holm: Option<f64>,
    /// `p_value` after Benjamini and Hochberg (1995), likewise.
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of the unpaired t-test, 0 to 1; empty if it was not made, as for all but `accuracy`.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided p-value of McNemar's exact test, likewise.
    pub p_mcnemar: Option<f64>,
    /// Score on the split that the heads were searched on, in points; empty for orders.
    pub search_score: Option<f64>,
    /// The masked heads, joined by `+`: `enc-enc:1:2+enc-enc:6:13`; empty at step 0.
    pub masked_heads: String,
}

impl Row for PruningRow {
    /// Attention type, order, seed of a random order, and step.
    type Key = (String, String, Option<u64>, usize);

    const COLUMNS: &'static [&'static str] = &[
        "attention",
        "order",
        "order_seed",
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
        "p_holm",
        "p_benjamini_hochberg",
        "p_unpaired_t",
        "p_mcnemar",
        "search_score",
        "masked_heads",
    ];

    fn key(&self) -> Self::Key {
        (self.attention.clone(), self.order.clone(), self.order_seed, self.step)
    }
}

/// One row of `cross-domain`: how the effects of masking single heads agree between two splits (Michel et al. 2019,
/// Section 3.4, Figure 2). The effects themselves are rows of `ablate-one`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrelationRow {
    /// Attention type whose heads are compared, or `all`.
    pub attention: String,
    /// Number of heads.
    pub heads: usize,
    /// Metric of the scores: `bleu`, `accuracy`, `f1` or `matthews`.
    pub metric: String,
    /// Score of the intact model on the first split, in points.
    pub first_base_score: f64,
    /// Score of the intact model on the second split, in points.
    pub second_base_score: f64,
    /// Pearson's r between the scores, -1 to 1; empty if one side does not vary.
    pub pearson: Option<f64>,
    /// Its two-sided p-value, 0 to 1, by t with `heads` - 2 degrees of freedom.
    pub pearson_p_value: Option<f64>,
    /// Spearman's rho, -1 to 1; empty if one side does not vary.
    pub spearman: Option<f64>,
    /// Its two-sided p-value, likewise.
    pub spearman_p_value: Option<f64>,
    /// How many heads of each split `top_overlap` is about: ten, or all if there are fewer.
    pub top: usize,
    /// How many of the heads whose masking costs most on one split are among those on the other.
    pub top_overlap: usize,
    /// What chance would give: `top`² / `heads`.
    pub top_overlap_by_chance: f64,
}

impl Row for CorrelationRow {
    /// Attention type.
    type Key = String;

    const COLUMNS: &'static [&'static str] = &[
        "attention",
        "heads",
        "metric",
        "first_base_score",
        "second_base_score",
        "pearson",
        "pearson_p_value",
        "spearman",
        "spearman_p_value",
        "top",
        "top_overlap",
        "top_overlap_by_chance",
    ];

    fn key(&self) -> Self::Key {
        self.attention.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<R: Row>(row: &R) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.serialize(row).unwrap();
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        text.lines().next().unwrap().to_owned()
    }

    /// Plots and other people's scripts read columns by name.
    #[test]
    fn headers_are_pinned() {
        let ablation = AblationRow {
            attention: "self".to_owned(),
            layer: 1,
            head: 1,
            metric: "bleu".to_owned(),
            base_score: 1.0,
            score: 1.0,
            score_delta: 0.0,
            delta_low: None,
            delta_high: None,
            p_value: None,
            p_holm: None,
            p_benjamini_hochberg: None,
            p_unpaired_t: None,
            p_mcnemar: None,
        };
        let header = "attention,layer,head,metric,base_score,score,score_delta,delta_low,delta_high,\
                      p_value,p_holm,p_benjamini_hochberg,p_unpaired_t,p_mcnemar";
        assert_eq!(fields(&ablation), header);
        assert_eq!(AblationRow::COLUMNS.join(","), header);

        let training = TrainingRow {
            epoch: 1,
            step: 1,
            train_loss: 1.0,
            dev_loss: 1.0,
            dev_score: None,
            learning_rate: 1.0,
            best: true,
        };
        let header = "epoch,step,train_loss,dev_loss,dev_score,learning_rate,best";
        assert_eq!(fields(&training), header);
        assert_eq!(TrainingRow::COLUMNS.join(","), header);

        let importance = ImportanceRow {
            attention: "self".to_owned(),
            layer: 1,
            head: 1,
            example: 1.0,
            example_normalised: 1.0,
            token: 1.0,
            token_normalised: 1.0,
            attention_gradient: 1.0,
            entropy: 1.0,
            confidence: 1.0,
            importance_entropy: 1.0,
            oracle: None,
        };
        let header = "attention,layer,head,example,example_normalised,token,token_normalised,attention_gradient,\
                      entropy,confidence,importance_entropy,oracle";
        assert_eq!(fields(&importance), header);
        assert_eq!(ImportanceRow::COLUMNS.join(","), header);

        let pruning = PruningRow {
            attention: "all".to_owned(),
            order: "importance".to_owned(),
            order_seed: None,
            step: 0,
            masked: 0,
            heads: 1,
            metric: "bleu".to_owned(),
            base_score: 1.0,
            score: 1.0,
            score_delta: 0.0,
            delta_low: None,
            delta_high: None,
            p_value: None,
            p_holm: None,
            p_benjamini_hochberg: None,
            p_unpaired_t: None,
            p_mcnemar: None,
            search_score: None,
            masked_heads: String::new(),
        };
        let header = "attention,order,order_seed,step,masked,heads,metric,base_score,score,score_delta,delta_low,\
                      delta_high,p_value,p_holm,p_benjamini_hochberg,p_unpaired_t,p_mcnemar,search_score,masked_heads";
        assert_eq!(fields(&pruning), header);
        assert_eq!(PruningRow::COLUMNS.join(","), header);

        let correlation = CorrelationRow {
            attention: "all".to_owned(),
            heads: 1,
            metric: "bleu".to_owned(),
            first_base_score: 1.0,
            second_base_score: 1.0,
            pearson: None,
            pearson_p_value: None,
            spearman: None,
            spearman_p_value: None,
            top: 1,
            top_overlap: 1,
            top_overlap_by_chance: 1.0,
        };
        let header = "attention,heads,metric,first_base_score,second_base_score,pearson,pearson_p_value,spearman,\
                      spearman_p_value,top,top_overlap,top_overlap_by_chance";
        assert_eq!(fields(&correlation), header);
        assert_eq!(CorrelationRow::COLUMNS.join(","), header);
    }
}
