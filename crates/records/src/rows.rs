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

/// One row of `ablate-one`: the model without a single head (Michel et al. 2019, Table 1).
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
    /// Score without the head, in the unit of the metric.
    pub score: f64,
    /// `score` minus `base_score`, in the unit of the metric; below 0 the head was useful.
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
    }
}
