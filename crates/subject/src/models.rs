//! A model in single precision and optionally in bf16.
use std::sync::{Arc, Mutex, PoisonError};

use core_masking::{GatedModel, HeadLayout, Replacement};
use tch::Kind;
use training::Precision;

use crate::error::Error;
use crate::scored::Sample;

/// A model in full and optionally in reduced precision.
#[derive(Debug)]
pub(crate) struct Models<M> {
    pub exact: M,
    /// In bf16, if requested.
    pub quick: Option<M>,
    /// Mean head outputs, by the segments on which they were measured.
    means: Arc<Mutex<Vec<(Sample, Replacement)>>>,
}

impl<M: GatedModel> Models<M> {
    pub(crate) fn new(exact: M, precision: Precision) -> Result<Self, core_masking::Error> {
        let quick = match precision {
            Precision::F32 => None,
            Precision::Bf16 => Some(exact.to_kind(Kind::BFloat16)?),
        };
        Ok(Self { quick, ..Self::alone(exact) })
    }

    /// Uses one model for all work.
    pub(crate) fn alone(exact: M) -> Self {
        Self { exact, quick: None, means: Arc::default() }
    }

    /// Uses `exact`, and `other` in place of the bf16 model.
    pub(crate) fn beside(exact: M, other: M) -> Self {
        Self { quick: Some(other), ..Self::alone(exact) }
    }

    pub(crate) fn quickest(&self) -> &M {
        self.quick.as_ref().unwrap_or(&self.exact)
    }

    pub(crate) fn layout(&self) -> HeadLayout {
        self.exact.layout()
    }

    /// Returns one copy per thread that shares the tensors; each copy computes on a single thread.
    pub(crate) fn of_threads(&self, workers: usize) -> Result<Vec<Self>, core_masking::Error> {
        tch::set_num_threads(1);
        let share = |_| {
            let quick = self.quick.as_ref().map(GatedModel::share).transpose()?;
            Ok(Self { exact: self.exact.share()?, quick, means: Arc::clone(&self.means) })
        };
        (0..workers).map(share).collect()
    }

    /// Returns mean head outputs, cached after the first call of `measure`.
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

    /// Returns models of the same precision for another exact model.
    pub(crate) fn with_exact(&self, exact: M) -> Result<Self, core_masking::Error> {
        Self::new(exact, if self.quick.is_some() { Precision::Bf16 } else { Precision::F32 })
    }

    pub(crate) fn sizes(&self) -> Bytes {
        let of_number = |model: &M| model.options().0.elt_size_in_bytes() as u64;
        let (number, quick) = (of_number(&self.exact), self.quick.as_ref().map_or(0, of_number));
        Bytes { number, model: (number + quick) * self.exact.weights().parameters() }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes {
    /// Of a number in the exact model, which reads other texts even if the bf16 model scores; bf16 numbers take less.
    pub number: u64,
    /// Of all models.
    pub model: u64,
}
