//! How much of a sweep is computed at once, within a bound of memory.
use tch::Device;

use crate::Error;
use crate::args::Machine;

/// How much is computed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Bound of a batch in tokens, padding included.
    pub tokens: usize,
    /// Variants that are rows of one batch.
    pub together: usize,
    /// Whether what the intact model computes of each batch is kept for later head sets.
    pub keeps_trunks: bool,
}

/// What the plan depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Bytes that may be used.
    memory: u64,
    workers: u64,
    /// Whether variants are to ride together: on a GPU, which wants many rows.
    rides: bool,
    /// What the batches are made of.
    load: Load,
}

/// What a split asks of the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Tokens of a batch where there is memory for them.
    pub batch: u64,
    /// Bytes that are kept of a token between head sets.
    pub kept: u64,
    /// Bytes that a token takes on its way through the model.
    pub way: u64,
    /// Tokens of the longest segment.
    pub longest: u64,
    /// Tokens of all segments, each as long as the longest one of its batch.
    pub all: u64,
}

impl Sizes {
    pub(crate) fn new(machine: &Machine, load: Load) -> Self {
        let (memory, workers) = (machine.memory, machine.workers() as u64);
        Self { memory, workers, rides: machine.device != Device::Cpu, load }
    }

    /// # Errors
    /// If the memory is too small for one segment.
    pub(crate) fn plan(self) -> Result<Plan, Error> {
        let Load { batch, kept, way, longest, all } = self.load;
        let needed = longest * way * self.workers;
        if self.memory < needed {
            return Err(Error::Memory { memory: self.memory, needed, tokens: longest });
        }
        let trunks = all * kept;
        let keeps_trunks = trunks <= (self.memory - needed) / 2;
        let free = self.memory - if keeps_trunks { trunks } else { 0 };
        let tokens = free / self.workers / way;
        let together = if self.rides { tokens / batch } else { 1 };
        Ok(Plan { tokens: tokens.min(batch) as usize, together: together.max(1) as usize, keeps_trunks })
    }
}

/// Tokens of all segments, each padded to the longest one of its batch.
pub(crate) fn padded(lengths: &[usize], batches: &[Vec<usize>]) -> u64 {
    let padded = |batch: &Vec<usize>| batch.len() * batch.iter().map(|&row| lengths[row]).max().unwrap_or(0);
    batches.iter().map(padded).sum::<usize>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { batch: 2_048, kept: 10, way: 200, longest: 50, all: 40_000 };
    const SIZES: Sizes = Sizes { memory: 1_000_000, workers: 2, rides: false, load: LOAD };

    fn sizes(all: u64) -> Sizes {
        Sizes { load: Load { all, ..LOAD }, ..SIZES }
    }

    /// Of a million bytes the intact model's take 400,000, and each of two workers has 300,000 for 200 bytes a token.
    #[test]
    fn batches_shrink_to_the_memory_there_is() {
        let plan = SIZES.plan().unwrap();
        assert_eq!(plan, Plan { tokens: 1_500, together: 1, keeps_trunks: true });
        let plan = sizes(60_000).plan().unwrap();
        assert_eq!(plan, Plan { tokens: 2_048, together: 1, keeps_trunks: false });
        let plan = Sizes { memory: 10_000_000, rides: true, workers: 1, ..SIZES }.plan().unwrap();
        // 9,600,000 bytes are 48,000 tokens, 23 batches
        assert_eq!(plan, Plan { tokens: 2_048, together: 23, keeps_trunks: true });
    }

    #[test]
    fn too_little_memory_for_one_segment_is_refused_with_what_is_needed() {
        let small = Sizes { memory: 10_000, ..SIZES };
        let message = small.plan().unwrap_err().to_string();
        assert!(message.contains("--memory 10000") && message.contains("50 tokens"), "{message}");
        let Err(Error::Memory { needed, .. }) = small.plan() else { panic!("{message}") };
        for all in [100, 800, 40_000] {
            assert!(Sizes { memory: needed, ..sizes(all) }.plan().is_ok());
            assert!(Sizes { memory: needed - 1, ..sizes(all) }.plan().is_err());
        }
    }

    /// 2 segments padded to 5 and 1 of 7.
    #[test]
    fn padding_counts() {
        assert_eq!(padded(&[5, 7, 3], &[vec![0, 2], vec![1]]), 17);
    }
}
