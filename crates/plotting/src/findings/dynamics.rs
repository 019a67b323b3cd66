//! Pruning curves of checkpoints: the rows of `training-dynamics` (Michel et al. 2019, Section 6).
use std::collections::BTreeMap;

use records::DynamicsRow;
use words::fixed;

use crate::findings::error::{Result, faulty};
use crate::findings::metric::Metric;
use crate::findings::results::{Results, interval, percent};
use crate::findings::source::ResultFile;

/// Scores below this are printed as 0.0, so no percentages of them exist.
const PRINTS_AS_ZERO: f64 = 0.05;

/// Scores of a model during training, with more and more heads masked.
#[derive(Debug, Clone)]
pub struct Dynamics {
    /// The file that was read.
    pub file: ResultFile,
    /// Metric of the scores.
    pub metric: Metric,
    /// Checkpoints in training order.
    pub checkpoints: Vec<Checkpoint>,
}

/// One checkpoint, with a pruning curve by importance over all heads.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Epoch that ends here, counted from 1; `None` within an epoch.
    pub epoch: Option<usize>,
    /// Number of updates so far.
    pub updates: usize,
    /// Steps with more and more heads masked, starting with none.
    pub steps: Vec<DynamicsRow>,
    is_nats: bool,
}

/// Returns the share of the heads that a row masks, in percent.
pub fn share(row: &DynamicsRow) -> f64 {
    percent(row.masked, row.heads)
}

impl Checkpoint {
    /// Returns the score of the full model, in the unit of the metric.
    pub fn base(&self) -> f64 {
        self.steps[0].base_score
    }

    /// Returns the first step that masks this many heads.
    pub fn step(&self, masked: usize) -> Option<&DynamicsRow> {
        self.steps.iter().find(|row| row.masked == masked)
    }

    /// `true` if percentages of its score exist: the printed score is above 0.
    fn is_comparable(&self) -> bool {
        self.is_nats || self.base() >= PRINTS_AS_ZERO
    }

    /// Returns a score in percent of the full model's; `None` if the latter is printed as 0 or below.
    ///
    /// Differs from the paper, which only has BLEU: nats are converted to 1/perplexity = exp(-nats), the geometric mean of the token
    /// probabilities, which falls towards 0 as the model gets worse. Percentages of nats are meaningless, and those of perplexity
    /// unbounded. `None` too if 1/perplexity overflows.
    pub fn kept(&self, score: f64) -> Option<f64> {
        if self.is_nats {
            return Some(100.0 * (self.base() - score).exp()).filter(|percent| percent.is_finite());
        }
        self.is_comparable().then(|| 100.0 * score / self.base())
    }

    /// Returns the ends of a row's interval in percent of the full model's score, the lower one first.
    pub fn kept_interval(&self, row: &DynamicsRow) -> Option<(f64, f64)> {
        let (low, high) = interval(row)?;
        let (low, high) = (self.kept(low)?, self.kept(high)?);
        Some((low.min(high), low.max(high)))
    }

    /// Returns the share masked at the last step before the first that keeps less than `least` percent of the score, and whether the curve
    /// ends there, so that more might be masked. `None` if percentages do not exist, an earlier step is missing, or no step masks a head.
    pub fn removable(&self, least: f64) -> Option<(f64, bool)> {
        let mut last = None;
        for (index, row) in self.steps.iter().enumerate() {
            let kept = self.kept(row.score)?;
            if row.step != index {
                return None;
            }
            if kept < least {
                return Some((last.map_or(0.0, share), false));
            }
            last = Some(row);
        }
        let last = last.filter(|row| row.masked > 0)?;
        Some((share(last), last.masked < last.heads))
    }
}

impl Dynamics {
    /// Reads a file of `training-dynamics`.
    pub fn read(file: ResultFile) -> Result<Self> {
        let results = Results::<DynamicsRow>::read(file)?;
        let (metric, Results { file, rows }) = (results.metric(), results);
        let checkpoint = |steps: &[DynamicsRow]| Checkpoint {
            epoch: steps[0].epoch,
            updates: steps[0].updates,
            steps: steps.to_vec(),
            is_nats: metric.is_nats(),
        };
        let checkpoints = rows.chunk_by(|one, next| one.updates == next.updates).map(checkpoint).collect();
        Ok(Self { file, metric, checkpoints })
    }

    /// Returns the printed score of the full model at a checkpoint: `20.1`, or `3.217` nats per token.
    pub fn full_model_score(&self, checkpoint: &Checkpoint) -> String {
        if self.metric.is_nats() {
            return self.metric.amount(checkpoint.base());
        }
        fixed(checkpoint.base(), 1)
    }

    /// Returns the checkpoints with scores above 0, for which percentages exist.
    pub fn comparable(&self) -> Result<Vec<&Checkpoint>> {
        let found: Vec<_> = self.checkpoints.iter().filter(|checkpoint| checkpoint.is_comparable()).collect();
        if found.is_empty() {
            let fault = "has no checkpoint with a score above 0 to compare others with";
            return Err(faulty(&self.file.path, fault));
        }
        if self.shares().is_empty() {
            return Err(faulty(&self.file.path, "has no step with masked heads"));
        }
        Ok(found)
    }

    /// Returns the shares of masked heads, as number and percent; more than ten are reduced to those nearest to 10, 20, … 100%, as in the
    /// paper.
    pub fn shares(&self) -> Vec<(usize, f64)> {
        let steps = self.checkpoints.iter().flat_map(|one| &one.steps).filter(|row| row.masked > 0);
        let all: BTreeMap<_, _> = steps.map(|row| (row.masked, share(row))).collect();
        if all.len() <= 10 {
            return all.into_iter().collect();
        }
        let nearest = |ten: u8| {
            let gap = |percent: f64| (percent - 10.0 * f64::from(ten)).abs();
            all.iter().min_by(|one, other| gap(*one.1).total_cmp(&gap(*other.1)))
        };
        let tens: BTreeMap<_, _> = (1..=10).filter_map(nearest).collect();
        tens.into_iter().map(|(&masked, &percent)| (masked, percent)).collect()
    }

    /// `true` if every checkpoint ends an epoch; otherwise checkpoints are numbered by updates.
    pub fn is_by_epoch(&self) -> bool {
        self.checkpoints.iter().all(|checkpoint| checkpoint.epoch.is_some())
    }

    /// Returns the number of a checkpoint, in epochs or updates.
    pub fn number(&self, checkpoint: &Checkpoint) -> usize {
        checkpoint.epoch.filter(|_| self.is_by_epoch()).unwrap_or(checkpoint.updates)
    }

    /// Returns the name of a checkpoint: `epoch 3`, `252 updates`.
    pub fn name(&self, checkpoint: &Checkpoint) -> String {
        if self.is_by_epoch() {
            return format!("epoch {}", self.number(checkpoint));
        }
        format!("{} updates", checkpoint.updates)
    }

    /// Names checkpoints without percentages.
    pub fn left_out(&self) -> Option<String> {
        let left_out = self.checkpoints.iter().filter(|checkpoint| !checkpoint.is_comparable());
        let names: Vec<_> = left_out.map(|checkpoint| self.name(checkpoint)).collect();
        (!names.is_empty())
            .then(|| format!("no percentages of a score of 0.0 or below: {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(is_nats: bool, scores: &[f64]) -> Checkpoint {
        let row = |(step, &score): (usize, &f64)| DynamicsRow {
            base_score: scores[0],
            score,
            step,
            masked: 2 * step,
            heads: 10,
            ..DynamicsRow::default()
        };
        Checkpoint { epoch: None, updates: 1, steps: scores.iter().enumerate().map(row).collect(), is_nats }
    }

    /// Of 20 points, 18 are 90% and 16 are 80%; the later 19 does not count. One more nat keeps 1/e.
    #[test]
    fn the_share_ends_before_the_first_step_that_keeps_less() {
        let curve = checkpoint(false, &[20.0, 19.0, 18.0, 16.0, 19.0]);
        assert_eq!(curve.removable(90.0), Some((40.0, false)));
        assert_eq!(curve.removable(80.0), Some((80.0, true)));
        assert_eq!(checkpoint(false, &[20.0, 1.0]).removable(90.0), Some((0.0, false)));
        assert_eq!(checkpoint(false, &[0.04, 0.04]).removable(90.0), None);
        let mut gap = checkpoint(false, &[20.0, 20.0, 20.0]);
        drop(gap.steps.remove(1));
        assert_eq!(gap.removable(90.0), None);
        let nats = checkpoint(true, &[3.0, 4.0]);
        assert!((nats.kept(4.0).unwrap() - 100.0 / std::f64::consts::E).abs() < 1e-9);
        let poor = checkpoint(true, &[1e6, 1.0]);
        assert!(poor.is_comparable() && poor.kept(1.0).is_none());
    }
}
