//! Rows of training logs.
use serde::{Deserialize, Serialize};

use super::Row;
use crate::check::{Limit, finite};

/// One row of a training log: an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingRow {
    /// Epoch, counted from 1.
    pub epoch: usize,
    /// Parameter updates so far.
    pub step: usize,
    /// Training loss, in nats per predicted token or example, with label smoothing.
    pub train_loss: f64,
    /// Loss on the development split, in nats per predicted token or example, without label smoothing.
    pub dev_loss: f64,
    /// Score on the development split, in the unit of the metric; empty if training does not score.
    pub dev_score: Option<f64>,
    /// Learning rate of the last update.
    pub learning_rate: f64,
    /// `true` if this is the best epoch so far, by `dev_score` or otherwise by `dev_loss`.
    pub best: bool,
}

impl Row for TrainingRow {
    type Key = (usize, usize);

    fn key(&self) -> Self::Key {
        (self.epoch, self.step)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.epoch, self.step)
    }

    fn title(&self) -> String {
        format!("epoch {}, step {}", self.epoch, self.step)
    }

    fn limits(&self) -> Vec<Limit> {
        finite(&[
            ("train_loss", Some(self.train_loss)),
            ("dev_loss", Some(self.dev_loss)),
            ("dev_score", self.dev_score),
            ("learning_rate", Some(self.learning_rate)),
        ])
    }
}
