//! A quick model and an exact one, which looks again at decisions that are close.
//!
//! Decisions are those of the exact model as long as masking heads does not make the quick one err much more than it does
//! with all heads open, where its largest error is measured.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use core_masking::{GatedModel, HeadLayout, Replacement};
use tch::{Kind, no_grad};
use training::{Precision, workers};

use crate::error::Error;
use crate::evaluation::{Plan, Purpose};
use crate::subject::{Sample, Scored};

/// A decision of the quick model counts if it is further from any other than this many times the largest error that it
/// made on the intact model.
const MARGIN: f64 = 1.5;

/// Segments, of all lengths, on which the error of the quick model is measured, if there are as many.
const CALIBRATED: usize = 512;

/// A model as it is, and in fewer bits.
#[derive(Debug)]
pub(crate) struct Models<M> {
    /// In single precision.
    pub exact: M,
    /// In bf16, if that is asked for.
    pub quick: Option<M>,
    /// Bounds of close decisions of the quick model, by what is scored, as far as they were measured.
    bounds: Arc<Mutex<Vec<(Scored, f64)>>>,
    /// Mean contexts, by the segments that they were measured on.
    means: Arc<Mutex<Vec<(Sample, Replacement)>>>,
}

impl<M: GatedModel> Models<M> {
    /// # Errors
    /// Never, since all tensors are there.
    pub(crate) fn new(exact: M, precision: Precision) -> Result<Self, core_masking::Error> {
        let quick = match precision {
            Precision::F32 => None,
            Precision::Bf16 => Some(exact.to_kind(Kind::BFloat16)?),
        };
        Ok(Self { quick, ..Self::alone(exact) })
    }

    /// A model that does all of the work.
    pub(crate) fn alone(exact: M) -> Self {
        Self { exact, quick: None, bounds: Arc::default(), means: Arc::default() }
    }

    /// A model, and in the place of a quick one another that is like it.
    pub(crate) fn beside(exact: M, other: M) -> Self {
        Self { quick: Some(other), ..Self::alone(exact) }
    }

    /// The model that does most of the work.
    pub(crate) fn quickest(&self) -> &M {
        self.quick.as_ref().unwrap_or(&self.exact)
    }

    pub(crate) fn layout(&self) -> HeadLayout {
        self.exact.layout()
    }

    /// The models on the same tensors for each of these threads, each of which computes alone.
    pub(crate) fn of_threads(&self, workers: usize) -> Result<Vec<Self>, core_masking::Error> {
        tch::set_num_threads(1);
        let share = |_| {
            let quick = self.quick.as_ref().map(GatedModel::share).transpose()?;
            let (bounds, means) = (Arc::clone(&self.bounds), Arc::clone(&self.means));
            Ok(Self { exact: self.exact.share()?, quick, bounds, means })
        };
        (0..workers).map(share).collect()
    }

    /// Means of what the heads read, which `measure` finds unless they are known.
    ///
    /// # Errors
    /// If `measure` fails.
    pub(crate) fn means(
        &self,
        of: &Sample,
        measure: impl FnOnce() -> Result<Replacement, Error>,
    ) -> Result<Replacement, Error> {
        let known = || self.means.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().iter().find(|(sample, _)| sample == of).map(|(_, means)| means.share());
        if let Some(means) = found {
            return Ok(means);
        }
        let means = measure()?;
        known().push((of.clone(), means.share()));
        Ok(means)
    }

    /// Models in the same precision, of another exact one.
    pub(crate) fn with_exact(&self, exact: M) -> Result<Self, core_masking::Error> {
        Self::new(exact, if self.quick.is_some() { Precision::Bf16 } else { Precision::F32 })
    }

    /// Sizes that memory depends on.
    pub(crate) fn sizes(&self) -> Bytes {
        let of_number = |model: &M| model.options().0.elt_size_in_bytes() as u64;
        let [exact, quickest] = [&self.exact, self.quickest()].map(of_number);
        let quick = if self.quick.is_some() { quickest } else { 0 };
        Bytes { exact, quickest, model: (exact + quick) * self.exact.weights().parameters() }
    }

    /// Rule by which the exact model makes decisions again; none if there is no quick one. Measured once for a split.
    ///
    /// - `segments`: number of segments
    /// - `largest_error`: of the quick model on some of them in the difference of two scores, all heads open
    ///
    /// # Errors
    /// If `largest_error` fails, or what it returns is no number.
    pub(crate) fn second_look(
        &self,
        (plan, scored): (&Plan, &Scored),
        segments: usize,
        largest_error: impl Fn(&Pair<'_, M>, &[usize]) -> Result<f64, Error> + Sync,
    ) -> Result<Option<SecondLook>, Error> {
        if self.quick.is_none() {
            return Ok(None);
        }
        let bounds = || self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = bounds().iter().find(|(known, _)| known == scored).map(|&(_, bound)| bound);
        if let Some(bound) = known {
            return Ok(Some(SecondLook::new(bound)));
        }
        let every = segments.div_ceil(CALIBRATED);
        let job = |models: &Self, item: usize| {
            // Which segments are looked at must not depend on how they are batched.
            let rows: Vec<usize> =
                plan.batches[item].iter().copied().filter(|row| row % every == 0).collect();
            let error = match &models.quick {
                Some(quick) if !rows.is_empty() => {
                    no_grad(|| largest_error(&Pair { exact: &models.exact, quick }, &rows))?
                }
                _ => 0.0,
            };
            if error.is_finite() { Ok(error) } else { Err(Error::not_finite()) }
        };
        let mut largest = 0.0_f64;
        workers::in_order(&mut self.of_threads(plan.workers)?, plan.batches.len(), job, |_, error| {
            largest = largest.max(error);
            Ok::<_, Error>(())
        })?;
        bounds().push((scored.clone(), MARGIN * largest));
        Ok(Some(SecondLook::new(MARGIN * largest)))
    }
}

/// Sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes {
    /// Of a number of the exact model.
    pub exact: u64,
    /// Of a number of the quickest one.
    pub quickest: u64,
    /// Of all models.
    pub model: u64,
}

impl Bytes {
    /// Of a number where a model is put to some use: the exact one may look again while head sets are scored.
    pub(crate) fn of(self, purpose: Purpose<'_>) -> u64 {
        if matches!(purpose, Purpose::Scoring) { self.exact } else { self.quickest }
    }
}

/// Both models.
#[derive(Debug)]
pub(crate) struct Pair<'a, M> {
    pub exact: &'a M,
    pub quick: &'a M,
}

/// Close decisions of a quick model are made again by an exact one.
#[derive(Debug)]
pub(crate) struct SecondLook {
    /// Difference of the two best scores of the quick model from which on its decision counts.
    bound: f64,
    decided: AtomicUsize,
    /// Decisions that the exact model has made again.
    again: AtomicUsize,
}

impl SecondLook {
    fn new(bound: f64) -> Self {
        Self { bound, decided: AtomicUsize::new(0), again: AtomicUsize::new(0) }
    }

    /// Has close decisions made again. What that says of the quick model's error raises the bound of these decisions, if need
    /// be, and more of them are close.
    ///
    /// - `leads`: of each decision, the difference of the two best scores
    /// - `decide`: makes decisions again, given their places, and returns the quick model's largest error in a difference of
    ///   two of their scores
    pub(crate) fn take(
        &self,
        leads: &[f64],
        mut decide: impl FnMut(&[usize]) -> Result<f64, Error>,
    ) -> Result<(), Error> {
        self.decided.fetch_add(leads.len(), Ordering::Relaxed);
        let (mut done, mut bound) = (f64::NEG_INFINITY, self.bound);
        loop {
            let close = |&place: &usize| (done..bound).contains(&leads[place]);
            let close: Vec<usize> = (0..leads.len()).filter(close).collect();
            if close.is_empty() {
                return Ok(());
            }
            self.again.fetch_add(close.len(), Ordering::Relaxed);
            done = bound;
            bound = bound.max(MARGIN * decide(&close)?);
        }
    }

    /// A line on the decisions that were made again.
    pub(crate) fn report(&self) -> String {
        format!(
            "{} of {} decisions were made again in f32: closer than {:.3}, {MARGIN} times the largest error of bf16 on the \
             intact model, or on those looked at",
            self.made_again(),
            self.decided.load(Ordering::Relaxed),
            self.bound,
        )
    }

    /// Number of decisions that the exact model has made again.
    pub(crate) fn made_again(&self) -> usize {
        self.again.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Below 1 are the first two. The exact model finds an error of 2 there, so that up to 3 all are looked at, and one of 1
    /// among those, which changes nothing.
    #[test]
    fn errors_that_are_found_make_more_decisions_close() {
        let look = SecondLook::new(1.0);
        let (mut seen, mut errors) = (Vec::new(), [2.0, 1.0].into_iter());
        let decide = |places: &[usize]| {
            seen.push(places.to_vec());
            Ok(errors.next().unwrap())
        };
        look.take(&[0.0, 3.0, 0.5, 2.9, 1.0, 40.0], decide).unwrap();
        assert_eq!(seen, [vec![0, 2], vec![3, 4]]);
        assert_eq!((look.made_again(), look.decided.into_inner()), (4, 6));
    }
}
