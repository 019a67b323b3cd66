//! A split that is scored again and again.
use core_masking::HeadSet;
use subject::{Evaluator, Scored, Subject};

/// A split that is read when it is first needed, and then kept, beside one other.
pub struct Split<'a> {
    subject: &'a dyn Subject,
    scored: &'a Scored,
    evaluator: Option<Box<dyn Evaluator + 'a>>,
}

impl<'a> Split<'a> {
    pub fn new(subject: &'a dyn Subject, scored: &'a Scored) -> Self {
        Self { subject, scored, evaluator: None }
    }

    /// The split, ready to be scored.
    ///
    /// # Errors
    /// If it is at fault.
    pub fn evaluator(&mut self) -> Result<&mut (dyn Evaluator + 'a), subject::Error> {
        let evaluator = match self.evaluator.take() {
            Some(evaluator) => evaluator,
            None => self.subject.evaluator(self.scored, 1)?,
        };
        Ok(self.evaluator.insert(evaluator).as_mut())
    }

    /// Scores of these sets.
    ///
    /// # Errors
    /// If the split is at fault.
    pub fn scores(&mut self, sets: &[HeadSet]) -> Result<Vec<f64>, subject::Error> {
        let mut scores = Vec::with_capacity(sets.len());
        self.evaluator()?.evaluate(sets, &vec![true; sets.len()], &mut |_, evaluation| {
            scores.push(evaluation.score);
            Ok(())
        })?;
        Ok(scores)
    }
}
