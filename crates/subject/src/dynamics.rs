//! Training checkpoints that are kept.
use serde::{Deserialize, Serialize};
use training::Stay;

use corpus::splits::check;

/// Checkpoints that are kept after training, for `training-dynamics`. They do not influence training, so they are not part of its settings.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DynamicsSpec {
    /// At the end of these epochs, counted from 1.
    #[serde(default)]
    pub epochs: Vec<usize>,
    /// After these numbers of parameter updates, for training with few epochs.
    #[serde(default)]
    pub steps: Vec<usize>,
}

impl DynamicsSpec {
    /// Converts to the type that training takes.
    pub(crate) fn stay(&self) -> Stay<'_> {
        Stay { epochs: &self.epochs, steps: &self.steps }
    }

    /// Refuses invalid values; `epochs`: of the training, `None` if the model is not trained here.
    pub(crate) fn validate(&self, epochs: Option<usize>) -> Result<(), String> {
        let Some(epochs) = epochs else {
            return Err(
                "[dynamics] needs [training]: a model that is used unchanged has no checkpoints".to_owned()
            );
        };
        let rises = |numbers: &[usize]| numbers.windows(2).all(|pair| pair[0] < pair[1]);
        check(&[
            ("[dynamics] names no checkpoint: set epochs or steps", self.epochs.len() + self.steps.len() > 0),
            ("dynamics.epochs must be increasing numbers from 1 to training.epochs", {
                rises(&self.epochs) && self.epochs.iter().all(|epoch| (1..=epochs).contains(epoch))
            }),
            ("dynamics.steps must be increasing numbers of updates, from 1", {
                rises(&self.steps) && self.steps.first() != Some(&0)
            }),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_must_exist_in_the_training() {
        let fault = |epochs: &[usize], steps: &[usize], of| {
            DynamicsSpec { epochs: epochs.to_vec(), steps: steps.to_vec() }.validate(of)
        };
        assert_eq!(fault(&[1, 3], &[], Some(3)), Ok(()));
        assert_eq!(fault(&[], &[20, 40], Some(3)), Ok(()));
        assert!(fault(&[], &[], Some(3)).unwrap_err().contains("names no checkpoint"));
        for epochs in [[0, 1], [2, 4], [2, 1], [2, 2]] {
            assert!(fault(&epochs, &[], Some(3)).unwrap_err().starts_with("dynamics.epochs"), "{epochs:?}");
        }
        for steps in [[0, 1], [2, 1]] {
            assert!(fault(&[], &steps, Some(3)).unwrap_err().starts_with("dynamics.steps"), "{steps:?}");
        }
        assert!(fault(&[1], &[], None).unwrap_err().contains("needs [training]"));
    }
}
