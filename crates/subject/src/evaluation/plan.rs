//! How much of a sweep is computed at once, and what is kept between head sets, within a bound of memory.
use std::sync::{Mutex, PoisonError};

use core_masking::Trunk;
use corpus::batches::longest_first;
use tch::Device;
use training::Machine;

use crate::error::Error;

/// Head sets that are evaluated together at the most. More would share more, but results are handed on, and rows written,
/// only when all of them are there.
pub(crate) const MOST_TOGETHER: usize = 16;

/// How much is computed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Places of the segments of each batch.
    pub batches: Vec<Vec<usize>>,
    /// Head sets that are rows of one batch.
    pub sets_per_batch: usize,
    /// Whether what the intact model computes of each batch is kept for later head sets.
    pub keeps_trunks: bool,
}

/// What a split asks of the memory.
pub(crate) struct Load<'a> {
    /// Tokens of each segment.
    pub lengths: Vec<usize>,
    /// Tokens of a batch, padding included, where there is memory for them.
    pub batch_tokens: usize,
    /// Bytes of a segment of so many tokens on its way through the model; more for longer ones.
    pub segment_bytes: Box<dyn Fn(usize) -> u64 + 'a>,
    /// Bytes that each thread needs whatever the batch.
    pub thread_bytes: u64,
    /// Bytes of what enters a layer, for one token.
    pub trunk_bytes: u64,
}

impl Plan {
    /// # Errors
    /// If the memory is too small for one segment.
    pub(crate) fn new(machine: &Machine, load: &Load<'_>) -> Result<Self, Error> {
        let (memory, workers) = (machine.memory, machine.workers() as u64);
        let longest = load.lengths.iter().copied().max().unwrap_or(0);
        let needed = workers * (load.thread_bytes + (load.segment_bytes)(longest));
        if memory < needed {
            return Err(Error::Memory { memory, needed, tokens: longest as u64 });
        }
        let mut tokens = load.batch_tokens;
        let mut batches = load.batches(tokens);
        let trunks = load.trunk_bytes * batches.iter().map(|batch| load.padded(batch)).sum::<u64>();
        let keeps_trunks = trunks <= (memory - needed) / 2;
        let free = (memory - if keeps_trunks { trunks } else { 0 }) / workers - load.thread_bytes;
        // Batches of one segment fit.
        while tokens > 1 && load.largest_batch_bytes(&batches) > free {
            tokens /= 2;
            batches = load.batches(tokens);
        }
        let sets_per_batch = match machine.device {
            Device::Cpu => 1, // whose caches one set fills
            _ => (free / load.largest_batch_bytes(&batches).max(1)).clamp(1, MOST_TOGETHER as u64) as usize,
        };
        Ok(Self { batches, sets_per_batch, keeps_trunks })
    }
}

impl Load<'_> {
    fn batches(&self, tokens: usize) -> Vec<Vec<usize>> {
        longest_first(self.lengths.iter().copied(), tokens)
    }

    fn longest(&self, batch: &[usize]) -> usize {
        batch.iter().map(|&row| self.lengths[row]).max().unwrap_or(0)
    }

    /// Tokens of a batch, padding included.
    fn padded(&self, batch: &[usize]) -> u64 {
        (batch.len() * self.longest(batch)) as u64
    }

    /// Bytes of the batch that takes most.
    fn largest_batch_bytes(&self, batches: &[Vec<usize>]) -> u64 {
        let bytes = |batch: &Vec<usize>| batch.len() as u64 * (self.segment_bytes)(self.longest(batch));
        batches.iter().map(bytes).max().unwrap_or(0)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::machine;

    /// 200 bytes a token, and 1,000 for each of two threads.
    fn load(lengths: Vec<usize>) -> Load<'static> {
        Load {
            lengths,
            batch_tokens: 400,
            segment_bytes: Box::new(|tokens| 200 * tokens as u64),
            thread_bytes: 1_000,
            trunk_bytes: 10,
        }
    }

    fn plan(memory: u64, device: Device) -> Result<Plan, Error> {
        Plan::new(&Machine { memory, device, ..machine() }, &load(vec![20; 100]))
    }

    fn sizes(plan: &Plan) -> (usize, usize, bool) {
        (plan.batches[0].len(), plan.sets_per_batch, plan.keeps_trunks)
    }

    /// A segment takes 4,000 bytes, all trunks 20,000. Of 180,000 bytes those leave 80,000 to each thread, 79,000 without
    /// what it needs anyway: 19 segments, and half a batch of 20 is 10. Of 49,999 there is no room for trunks, and each
    /// thread has 23,999 for 5 segments.
    #[test]
    fn batches_shrink_to_the_memory_there_is() {
        assert_eq!(sizes(&plan(1_000_000, Device::Cpu).unwrap()), (20, 1, true));
        assert_eq!(sizes(&plan(182_000, Device::Cpu).unwrap()), (20, 1, true));
        assert_eq!(sizes(&plan(180_000, Device::Cpu).unwrap()), (10, 1, true));
        assert_eq!(sizes(&plan(49_999, Device::Cpu).unwrap()), (5, 1, false));
    }

    /// One thread has 979,000 bytes for batches of 80,000.
    #[test]
    fn a_gpu_computes_several_sets_at_once() {
        assert_eq!(sizes(&plan(1_000_000, Device::Cuda(0)).unwrap()), (20, 12, true));
        assert_eq!(sizes(&plan(100_000_000, Device::Cuda(0)).unwrap()), (20, MOST_TOGETHER, true));
    }

    #[test]
    fn too_little_memory_for_one_segment_is_refused_with_what_is_needed() {
        let message = plan(5_000, Device::Cpu).unwrap_err().to_string();
        assert!(message.contains("--memory 5000") && message.contains("20 tokens"), "{message}");
        let Err(Error::Memory { needed, .. }) = plan(5_000, Device::Cpu) else { panic!("{message}") };
        assert_eq!(needed, 2 * (1_000 + 20 * 200));
        assert!(plan(needed - 1, Device::Cpu).is_err());
        assert_eq!(sizes(&plan(needed, Device::Cpu).unwrap()), (1, 1, false));
    }

    #[test]
    fn segments_of_any_length_are_all_in_a_batch() {
        for memory in [20_000, 50_000, 1_000_000] {
            let lengths: Vec<usize> = (0..30).map(|row| row * 7 % 31).collect();
            let plan = Plan::new(&Machine { memory, ..machine() }, &load(lengths)).unwrap();
            let mut rows = plan.batches.concat();
            rows.sort_unstable();
            assert_eq!(rows, (0..30).collect::<Vec<_>>());
        }
    }
}
