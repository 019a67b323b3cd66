//! Predicts scores of masked models from a loss linear in the gates (attribution patching: Nanda 2023; Syed, Rager and Conmy 2023).
use std::collections::{BTreeMap, BTreeSet};

use core_masking::{HeadId, HeadSet, Measure};
use stats::{Cell, Cells, Segments};

use crate::error::Error;
use crate::evaluation::Purpose;
use crate::models::Models;
use crate::scored::Scored;
use crate::task::{PredictedBy, Scores, Task};
use crate::task_subject::TaskSubject;

impl<T: Task> TaskSubject<T> {
    /// See [`Subject::first_order`](crate::Subject::first_order).
    pub(crate) fn first_order(
        &self,
        on: &Scored,
        base: &Segments,
        sets: &[HeadSet],
    ) -> Result<Option<Vec<Vec<Cells>>>, Error> {
        let encoded = self.encode(on)?;
        let Some(predicts) = self.task.predicts(&encoded) else { return Ok(None) };
        let scores = match &predicts {
            PredictedBy::Losses(_) | PredictedBy::LogOdds => Vec::new(),
            PredictedBy::Decisions(scores) => self.scores(&encoded, *scores)?,
        };
        let effects = self.effects((on, &encoded))?;
        let base: Vec<Cells> = (0..base.len()).map(|place| base.cells(place)).collect();
        let of_set = |set: &HeadSet| {
            let rows = T::encoded_lengths(&encoded).len();
            let change =
                |row: usize| set.iter().filter_map(|head| effects.get(&head)).map(|own| own[row]).sum();
            let changes: Vec<f64> = (0..rows).map(change).collect();
            let mut cells = base.clone();
            match &predicts {
                PredictedBy::Losses(segments) => {
                    let mut sums = vec![0.0; cells.len()];
                    changes.iter().zip(segments).for_each(|(change, &segment)| sums[segment] += change);
                    let changed = cells.iter_mut().zip(sums);
                    changed.for_each(|(own, change)| own[0] = shifted(own[0], change));
                }
                PredictedBy::Decisions(_) => {
                    let decided = cells.iter_mut().zip(&scores).zip(changes);
                    decided.for_each(|((own, scores), change)| {
                        own[1] = decision(scores, (own[0], own[1]), change)
                    });
                }
                PredictedBy::LogOdds => cells.iter_mut().zip(changes).for_each(|(own, change)| {
                    own[0] = shifted(own[0], gain(f64::from(own[0].value()), change));
                }),
            }
            cells
        };
        Ok(Some(sets.iter().map(of_set).collect()))
    }

    fn scores(&self, encoded: &T::Encoded, of_batch: Scores<T>) -> Result<Vec<Vec<f64>>, Error> {
        let measures = BTreeSet::new();
        let need = self.task.need(&self.models, Purpose::Measuring(&measures));
        let lengths = T::encoded_lengths(encoded);
        let mut scores = vec![Vec::new(); lengths.len()];
        let job = |models: &Models<T::Model>, rows: &[usize]| of_batch(models.quickest(), encoded, rows);
        self.over_batches(&self.models, (&need, &lengths), "scoring classes", job, |rows, found| {
            rows.iter().zip(found).for_each(|(&row, found)| scores[row] = found);
            Ok(())
        })?;
        Ok(scores)
    }

    /// Returns first-order effects of masking each head on the loss of each encoded segment.
    fn effects(&self, on: (&Scored, &T::Encoded)) -> Result<BTreeMap<HeadId, Vec<f64>>, Error> {
        let measured = self.measured(on, &HeadSet::none(), &BTreeSet::from([Measure::FirstOrder]))?;
        let means = &measured[&Measure::FirstOrder];
        let mut faulty = BTreeSet::new();
        let mut of_head = |head: HeadId| {
            let derivatives = &means.terms(head)?.derivatives;
            faulty.extend((0..derivatives.len()).filter(|&place| !derivatives[place].is_finite()));
            let effect = |derivative: &f64| if derivative.is_finite() { -derivative } else { 0.0 };
            Some((head, derivatives.iter().map(effect).collect()))
        };
        let found = self.models.layout().heads().into_iter().filter_map(&mut of_head).collect();
        if !faulty.is_empty() {
            words::warn(&format!(
                "split `{}`: the gradient is not finite in {}, so nothing is predicted for them",
                on.0.split,
                words::count(faulty.len(), "text")
            ));
        }
        Ok(found)
    }
}

fn shifted(cell: Cell, change: f64) -> Cell {
    Cell::Decimal((f64::from(cell.value()) + change) as f32)
}

/// Returns the log-odds of the class or choice `right` against all others.
///
/// - `scores`: log-probabilities up to a common constant
pub(crate) fn log_odds(scores: &[f64], right: usize) -> f64 {
    let others = || (0..scores.len()).filter(|&place| place != right).map(|place| scores[place]);
    let best = others().fold(f64::NEG_INFINITY, f64::max);
    scores[right] - best - others().map(|score| (score - best).exp()).sum::<f64>().ln()
}

/// Returns the first-order change of the log-odds log(p / (1 - p)) if the loss -log p changes by `change`: d log p = (1 - p) d log-odds.
fn gain(log_odds: f64, change: f64) -> f64 {
    if change == 0.0 { 0.0 } else { -change / (1.0 / (1.0 + log_odds.exp())).max(f64::MIN_POSITIVE) }
}

/// Returns the predicted class if the loss of the right class (its negative log-probability) changes by `change`. Takes the change of
/// its lead over the best other class from the log-odds, which is exact for two classes only.
fn decision(scores: &[f64], (right, decided): (Cell, Cell), change: f64) -> Cell {
    let Some(place) = right.count().map(|class| class as usize).filter(|&class| class < scores.len()) else {
        return decided;
    };
    let best = |best: usize, other: usize| if scores[other] > scores[best] { other } else { best };
    let Some(rival) = (0..scores.len()).filter(|&class| class != place).reduce(best) else { return decided };
    let lead = scores[place] - scores[rival];
    let moved = lead + gain(log_odds(scores, place), change);
    match (lead > 0.0, moved > 0.0) {
        (true, false) => Cell::Count(rival as u32),
        (false, true) => right,
        _ => decided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The right class leads by 1: log p falls by (1 - p) = 1 / (1 + e) times the decrease of the lead.
    #[test]
    fn a_decision_changes_once_the_lead_of_its_class_is_lost() {
        let share = 1.0 / (1.0 + 1.0_f64.exp());
        let decided = |scores: &[f64], own: [u32; 2], lost: f64| {
            decision(scores, (Cell::Count(own[0]), Cell::Count(own[1])), lost * share)
        };
        assert_eq!(decided(&[0.0, 1.0], [1, 1], 0.99), Cell::Count(1));
        assert_eq!(decided(&[0.0, 1.0], [1, 1], 1.01), Cell::Count(0));
        assert_eq!(decided(&[0.0, 1.0], [1, 1], -9.0), Cell::Count(1));
        // with three classes, the best other class wins
        assert_eq!(decided(&[-30.0, 1.0, 0.0], [1, 1], 1.01), Cell::Count(2));
        // the decision is wrong: the right class trails by 1, and p is 1 / (1 + e)
        let gained =
            |gain: f64| decision(&[1.0, 0.0], (Cell::Count(1), Cell::Count(0)), -gain * (1.0 - share));
        assert_eq!([gained(0.99), gained(1.01)], [Cell::Count(0), Cell::Count(1)]);
        // certain decisions stay
        assert_eq!(decided(&[0.0, 2000.0], [1, 1], 0.0), Cell::Count(1));
        let lost = decision(&[2000.0, 0.0], (Cell::Count(1), Cell::Count(0)), -1e-3);
        assert_eq!(lost, Cell::Count(0), "p is 0, and the lead grows by 0.001");
    }
}
