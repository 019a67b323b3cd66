//! What is kept of batches between head sets.
use std::sync::{Mutex, PoisonError};

use core_masking::Trunk;

use super::Plan;
use crate::error::Error;

/// What the last head sets left of each batch, if there is room for it.
pub(crate) struct Trunks {
    slots: Vec<Mutex<Option<Trunk>>>,
    kept: bool,
}

impl Trunks {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { slots: plan.batches.iter().map(|_| Mutex::new(None)).collect(), kept: plan.keeps_trunks }
    }

    /// Does some work on a batch with what is left of it, and keeps what the work leaves.
    pub(crate) fn with<T>(
        &self,
        batch: usize,
        work: impl FnOnce(Option<Trunk>) -> Result<(T, Trunk), Error>,
    ) -> Result<T, Error> {
        let slot = || self.slots[batch].lock().unwrap_or_else(PoisonError::into_inner);
        let left = slot().as_ref().map(Trunk::share);
        let (found, trunk) = work(left)?;
        if self.kept {
            *slot() = Some(trunk);
        }
        Ok(found)
    }
}
