//! Fine-tuning objective of a classifier: Devlin et al. (2019), Section 3.2 and Appendix A.3. With one output the loss is the squared
//! error, as transformers uses it for STS-B.
use core_masking::classifier::LabelledBatch;
use core_masking::loss::of_labels;
use core_masking::{Classifier, GatedModel, Gates, ModelDropout};
use corpus::batches::{length_grouped, length_sorted};
use stats::{Cells, Metric, Segments};
use tch::{Kind, Tensor};
use training::{Objective, Validation};

use super::encoder::FineTuningSpec;
use super::inputs::{BATCH_TOKENS, Texts, outcomes};
use crate::error::Error;

#[derive(Debug, Clone, Copy)]
pub(crate) struct FineTuningObjective {
    pub(super) settings: FineTuningSpec,
    pub(super) metric: Metric,
}

impl Objective for FineTuningObjective {
    type Model = Classifier;
    type Examples = Texts;
    type Outcome = Cells;
    type Error = Error;

    fn tokens(texts: &Texts, row: usize) -> usize {
        texts.tokens(row)
    }

    fn predictions(texts: &Texts, rows: &[usize]) -> usize {
        texts.predictions(rows)
    }

    fn loss(
        &self,
        model: &Classifier,
        texts: &Texts,
        rows: &[usize],
        gates: &Gates,
        dropout: &ModelDropout,
    ) -> Result<Tensor, Error> {
        Ok(model.losses(&texts.labelled_batch(model, rows)?, gates, dropout).sum(None))
    }

    fn validate(
        model: &Classifier,
        texts: &Texts,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Validation<Cells>, Error> {
        let LabelledBatch { inputs: batch, labels } = texts.labelled_batch(model, rows)?;
        let logits = model.forward(&batch, gates, &ModelDropout::OFF); // [batch, labels]
        Ok(Validation {
            loss: of_labels(&logits, &labels).sum(Kind::Double).double_value(&[]),
            outcomes: outcomes(&logits, texts, rows)?,
        })
    }

    fn score(&self, outcomes: &[Cells]) -> Result<Option<f64>, Error> {
        Ok(Some(Segments::from_cells(self.metric, outcomes)?.score()?))
    }

    fn batches(&self, train: &Texts, seed: u64) -> Vec<Vec<usize>> {
        let lengths: Vec<usize> = train.lengths().collect();
        length_grouped(&lengths, self.settings.batch_size, seed)
    }

    fn dev_batches(&self, dev: &Texts) -> Vec<Vec<usize>> {
        let lengths: Vec<(usize, usize)> = dev.lengths().map(|length| (length, 0)).collect();
        length_sorted(&lengths, BATCH_TOKENS)
    }

    fn learning_rate(&self, step: usize, steps: usize) -> f64 {
        linear_decay(&self.settings, step, steps)
    }
}

/// Returns the learning rate after linear warm-up and linear decay, which would reach 0 one update after the last.
fn linear_decay(settings: &FineTuningSpec, step: usize, steps: usize) -> f64 {
    let warmup = (settings.warmup_share * steps as f64).round();
    let (step, end) = (step as f64, steps as f64 + 1.0);
    let share = if step <= warmup { step / warmup } else { (end - step) / (end - warmup) };
    settings.learning_rate * share
}

#[cfg(test)]
mod tests {
    use super::*;
    use training::Keep;

    fn settings(warmup_share: f64) -> FineTuningSpec {
        FineTuningSpec {
            seed: 0,
            replicates: std::num::NonZeroUsize::MIN,
            epochs: 1,
            batch_size: 1,
            learning_rate: 1.0,
            warmup_share,
            weight_decay: 0.0,
            clip_norm: 1.0,
            keep: Keep::Last,
        }
    }

    /// Warm-up in 2 of 8 updates: 1/2, 1. Then 1/7 less per update, from 1 at update 2 to 0 at update 9.
    #[test]
    fn the_learning_rate_rises_and_falls_linearly() {
        let rates: Vec<f64> = (1..=8).map(|step| linear_decay(&settings(0.25), step, 8)).collect();
        let expected = [1.0 / 2.0, 1.0, 6.0 / 7.0, 5.0 / 7.0, 4.0 / 7.0, 3.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0];
        assert_eq!(rates, expected);
    }

    #[test]
    fn a_schedule_can_be_all_decay_or_all_warm_up() {
        assert_eq!(linear_decay(&settings(0.0), 1, 3), 3.0 / 4.0);
        assert_eq!(linear_decay(&settings(1.0), 3, 3), 1.0);
    }
}
